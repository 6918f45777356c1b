//! Agents of files, as sessions of the binary have them: the user's, a trusted project's, and those of another
//! program.

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use super::{answer, failure, misuse};

const SCRIPT: &str = "on *\n  text \"done\"\n";

fn home() -> (Home, tempfile::TempDir) {
    let user = tempfile::tempdir().unwrap();
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    (home.with_variable("HOME", user.path().to_str().unwrap()), user)
}

fn put(path: std::path::PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn manifest(description: &str) -> String {
    format!("---\nmode: all\ndescription: {description}\n---\nDo it.\n")
}

/// The modes of a new session with what each says of itself, and what was told.
async fn session(home: &Home, arguments: &[&str]) -> (Vec<(String, String)>, String, String) {
    let agent = home.start_with(arguments);
    agent.initialize().await;
    let made = agent.client.expect("session/new", json!({ "cwd": home.workspace(), "mcpServers": [] })).await;
    let id = made["sessionId"].as_str().unwrap().to_owned();
    agent.prompt(&id, "go").await.unwrap();
    let updates = agent.client.updates(&id);
    let thoughts = updates.iter().filter(|update| update["sessionUpdate"] == "agent_thought_chunk");
    let told = thoughts.map(|update| update["content"]["text"].as_str().unwrap()).collect();
    agent.finish(home).await;
    let text = |mode: &Value, key: &str| mode[key].as_str().unwrap_or_default().to_owned();
    let modes = made["modes"]["availableModes"].as_array().unwrap().iter();
    let modes = modes.map(|mode| (text(mode, "id"), text(mode, "description"))).collect();
    (modes, text(&made["modes"], "currentModeId"), told)
}

fn described(modes: &[(String, String)], id: &str) -> Option<String> {
    modes.iter().find(|mode| mode.0 == id).map(|mode| mode.1.clone())
}

#[tokio::test]
async fn agents_come_from_the_home_and_from_a_trusted_project_which_wins() {
    let (home, user) = home();
    put(home.home().join("agents/reviewer.md"), &manifest("of the home"));
    put(home.home().join("agents/mine.md"), &manifest("of the home, too"));
    put(home.home().join("agents/broken.md"), "---\nmode: all\ndescription: x\nmax_steps: none\n---\nx");
    put(
        user.path().join(".claude/agents/of-claude.md"),
        "---\nname: of-claude\ndescription: x\ntools: Read, Flyy\n---\nx",
    );
    put(home.workspace().join(".attache/agents/reviewer.md"), &manifest("of the project"));
    let schema = "---\nmode: all\ndescription: x\noutput_schema: found.json\n---\nx";
    put(home.workspace().join(".attache/agents/strict.md"), schema);
    put(home.workspace().join(".attache/agents/found.json"), r#"{"type":"object"}"#);
    let (modes, current, told) = session(&home, &[]).await;
    assert_eq!(current, "build");
    assert_eq!(
        described(&modes, "reviewer").as_deref(),
        Some("of the home"),
        "nobody trusts the project yet"
    );
    assert_eq!(described(&modes, "strict"), None);
    assert!(told.contains(".attache/agents/found.json, .attache/agents/reviewer.md"), "{told}");
    assert!(told.contains("Some agents were left out: "), "{told}");
    assert!(told.contains("agents/broken.md: line 4: `max_steps` must be a whole number"), "{told}");
    assert!(told.contains("of-claude.md: line 4: there is no tool `Flyy`"), "{told}");

    answer(&home, &["trust", home.workspace().to_str().unwrap(), "--yes"]).await;
    let (modes, _, told) = session(&home, &[]).await;
    let ids: Vec<&str> = modes.iter().map(|mode| &*mode.0).collect();
    assert_eq!(ids, ["build", "plan", "reviewer", "strict", "mine"], "those of another program are no modes");
    assert_eq!(described(&modes, "reviewer").as_deref(), Some("of the project"));
    assert!(told.contains("home/agents/reviewer.md: there is an agent `reviewer` already: "), "{told}");

    put(home.workspace().join(".attache/agents/found.json"), r#"{"type":"array"}"#);
    let (modes, ..) = session(&home, &[]).await;
    assert_eq!(described(&modes, "reviewer").as_deref(), Some("of the home"), "it is another project now");
}

#[tokio::test]
async fn the_agent_of_new_sessions_can_be_chosen_and_a_wrong_one_is_named_with_the_nearest() {
    let (home, _user) = home();
    put(home.home().join("agents/reviewer.md"), &manifest("Reviews."));
    assert_eq!(session(&home, &["--agent", "reviewer"]).await.1, "reviewer");
    let told = misuse(&home, &["acp", "--agent", "reviewr"]).await;
    assert!(told.contains("option --agent: there is no agent `reviewr` (did you mean `reviewer`?); available: build, plan, reviewer"), "{told}");
    let told = misuse(&home, &["acp", "--agent", "explore"]).await;
    assert!(told.contains("`explore` is an agent that can't be a mode"), "{told}");
    home.write_config("agent = \"plan\"\n");
    assert_eq!(session(&home, &[]).await.1, "plan");
    assert_eq!(session(&home, &["--agent", "build"]).await.1, "build");
    home.write_config("agent = \"nobody\"\n");
    let told = failure(&home, &["acp"]).await;
    assert!(told.contains("config.toml:2: there is no agent `nobody`"), "{told}");
}

#[tokio::test]
async fn a_trusted_project_chooses_the_agent_of_its_sessions_unless_the_user_does() {
    let (home, _user) = home();
    put(home.workspace().join(".attache/config.toml"), "agent = \"reviewer\"\n");
    put(home.workspace().join(".attache/agents/reviewer.md"), &manifest("Reviews."));
    assert_eq!(session(&home, &[]).await.1, "build");
    answer(&home, &["trust", home.workspace().to_str().unwrap(), "--yes"]).await;
    assert_eq!(session(&home, &[]).await.1, "reviewer");
    assert_eq!(session(&home, &["--agent", "plan"]).await.1, "plan");
}
