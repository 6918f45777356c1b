//! Commands, agents and skills of other agents, as files of ours.

use super::*;

impl Moving {
    /// One of each form, in the usual places.
    fn with_files() -> Self {
        let moving = Self::new();
        moving.put(
            ".claude/commands/git/pr.md",
            "---\ndescription: Opens a pull request\nallowed-tools: Bash(gh:*)\n---\nOpen one for $ARGUMENTS\n",
        );
        moving.put(".codex/prompts/review.md", "Review $1 with care.\n");
        moving.put(".codex/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDF.\n---\nRun it.\n");
        moving.put(".codex/skills/pdf/more/fields.txt", "fields\n");
        moving.put(".codex/skills/.system/own/SKILL.md", "---\nname: own\ndescription: d\n---\nx\n");
        moving.put(".gemini/commands/plan.toml", "description = \"Plans\"\nprompt = \"Plan {{args}}\"\n");
        moving.put(
            ".config/goose/recipes/release.yaml",
            "title: Release\ndescription: Makes one\nprompt: Release {{ version }}\nparameters:\n  - key: version\n",
        );
        moving.put(
            ".config/opencode/agent/checker.md",
            "---\ndescription: Checks\nmode: subagent\npermission:\n  edit: deny\n---\nYou check.\n",
        );
        moving.put(".config/opencode/command/review.md", "Another review.\n");
        moving.put(".config/opencode/command/bad name.md", "x\n");
        moving
    }

    fn own(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.home.home().join(name)).ok()
    }
}

#[tokio::test]
async fn files_are_listed_with_what_becomes_of_them_and_nothing_is_written() {
    let moving = Moving::with_files();
    let said = moving.import(&["--files"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    for words in ["/git:pr", "commands/git/pr.md", "skills/pdf", "agents/checker.md", "/release", "/plan"] {
        assert!(said.answer.contains(words), "{words}\n{}", said.answer);
    }
    assert!(
        !said.answer.contains("skills/own") && said.told.contains("--files NUMBER"),
        "{}{}",
        said.answer,
        said.told
    );
    let listed = moving.import(&["--files", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.answer).unwrap();
    let state = |name: &str| {
        let one = listed.as_array().unwrap().iter().filter(|one| one["name"] == name);
        one.map(|one| one["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(state("/review"), ["new", "taken"], "{listed}");
    assert_eq!(state("/bad name"), ["unusable"], "{listed}");
    let shown = moving.import(&["codex", "--files", "--all", "--dry-run"]).await;
    assert!(
        shown.answer.contains("would become") && shown.answer.contains("| Review $1 with care."),
        "{}",
        shown.answer
    );
    for name in ["commands", "agents", "skills"] {
        assert!(!moving.home.home().join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn files_are_taken_over_once_and_none_of_ours_is_replaced() {
    let moving = Moving::with_files();
    let commands = moving.home.home().join("commands");
    std::fs::create_dir(&commands).unwrap();
    std::fs::write(commands.join("plan.md"), "My own plan.\n").unwrap();
    let said = moving.import(&["--files", "--all"]).await;
    assert_eq!(said.code, Some(1), "one has a bad name: {}", said.told);
    assert!(said.told.contains("bad name") && said.told.contains("can't be typed"), "{}", said.told);
    assert!(said.answer.contains("left out: `allowed-tools`"), "{}", said.answer);
    assert_eq!(moving.own("commands/plan.md").as_deref(), Some("My own plan.\n"));
    assert_eq!(moving.own("commands/review.md").as_deref(), Some("Review $1 with care.\n"));
    let release = moving.own("commands/release.md").unwrap();
    assert!(release.contains("argument-hint: \"version\"") && release.ends_with("Release $1\n"), "{release}");
    assert_eq!(moving.own("skills/pdf/more/fields.txt").as_deref(), Some("fields\n"));
    let again = moving.import(&["--files", "--all"]).await;
    assert!(!again.answer.contains(" now\n"), "{}", again.answer);
    // A session has them.
    let agent = moving.home.start();
    agent.initialize().await;
    let session = agent.new_session(&moving.home.workspace()).await;
    agent.prompt(&session, "/agents").await.unwrap();
    agent.prompt(&session, "/skills").await.unwrap();
    agent.prompt(&session, "/help").await.unwrap();
    let told = format!("{:?}", agent.client.updates(&session));
    for name in ["checker", "pdf", "git:pr", "release"] {
        assert!(told.contains(name), "{name}\n{told}");
    }
    assert!(!told.contains("left out") && !told.contains("Not all that"), "{told}");
    agent.finish(&moving.home).await;
}

#[tokio::test]
async fn one_is_named_and_another_place_is_read() {
    let moving = Moving::with_files();
    let said = moving.import(&["codex", "--files", "review"]).await;
    assert!(said.code == Some(0) && said.answer.contains("command /review of codex is"), "{}", said.told);
    assert_eq!(moving.own("skills/pdf/SKILL.md"), None);
    let said = moving.import(&["claude", "--files", "nothing"]).await;
    assert!(said.code == Some(1) && said.told.contains("there is no file nothing"), "{}", said.told);
    moving.put("backup/prompts/old.md", "Old.\n");
    let from = moving.place("backup");
    let said = moving.import(&["codex", "--files", "--all", "--from", from.to_str().unwrap()]).await;
    assert!(said.code == Some(0) && moving.own("commands/old.md").is_some(), "{}", said.told);
    let said = moving.import(&["--dry-run"]).await;
    assert_eq!(said.code, Some(2), "{}", said.told);
}
