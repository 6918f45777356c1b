//! The built-in agents, and agents of files beside them.

use super::*;
use crate::agents::manifest::ReadManifest;

fn file(path: &str, text: &str) -> FoundAgent {
    FoundAgent { path: path.into(), text: text.to_owned(), dialect: ManifestDialect::Own }
}

fn load(files: &[FoundAgent]) -> LoadedAgents {
    Agents::builtin().with_files(files, &|_, _| Err("there is no such file".to_owned()))
}

#[test]
fn every_built_in_agent_is_a_file_of_the_same_kind() {
    let agents = Agents::builtin();
    let known: Vec<(&str, AgentMode)> = agents.all().map(|agent| (&*agent.id, agent.mode)).collect();
    assert_eq!(
        known,
        [
            ("build", AgentMode::Primary),
            ("plan", AgentMode::Primary),
            ("explore", AgentMode::Subagent),
            ("title", AgentMode::Hidden),
            ("summary", AgentMode::Hidden),
            ("compaction", AgentMode::Hidden),
        ]
    );
    for (stem, text) in FILES {
        let beside = |_: &str| Err(String::new());
        let file = AgentFile { stem, text, dialect: ManifestDialect::BuiltIn, beside: &beside };
        let ReadManifest { notes, .. } = manifest::parse(&file, &Agents::default()).unwrap();
        assert_eq!(notes, [], "{stem}");
    }
    for reading in agents.all().filter(|agent| *agent.id != *DEFAULT_AGENT) {
        assert_eq!(reading.commands, Commands::OnlyReading, "{}", reading.id);
        assert_eq!(reading.permissions, [pinned("edit", "*", Action::Deny)], "{}", reading.id);
    }
}

/// Start time is a feature: opening a session waits for this.
#[test]
fn reading_agents_takes_no_time() {
    let text = "---\nmode: subagent\ndescription: x\ntools: [read, grep]\n---\nDo it.\n";
    let files: Vec<FoundAgent> = (0..50).map(|number| file(&format!("/a/agent-{number}.md"), text)).collect();
    let start = std::time::Instant::now();
    assert_eq!(load(&files).agents.all().count(), 56);
    assert!(start.elapsed() < std::time::Duration::from_millis(50), "{:?}", start.elapsed());
}

#[test]
fn the_nearest_wins_and_the_other_is_told() {
    let own = |description: &str| format!("---\nmode: primary\ndescription: {description}\n---\nx");
    let loaded = load(&[
        file("/w/.attache/agents/reviewer.md", &own("near")),
        file("/home/agents/reviewer.md", &own("far")),
        file("/home/agents/broken.md", "---\nmode: primary\ndescription: x\neffort: loud\n---\nx"),
        file("/home/agents/plan.md", "---\ndescription: Plans better.\nodd: 1\n---\n"),
    ]);
    assert_eq!(&*loaded.agents.get("reviewer").unwrap().description, "near");
    assert_eq!(
        loaded.left_out,
        [
            "/home/agents/reviewer.md: there is an agent `reviewer` already: /w/.attache/agents/reviewer.md",
            "/home/agents/broken.md: line 4: `effort` must be one of off, low, medium, high, max, not `loud`",
        ]
    );
    assert_eq!(loaded.notes, ["/home/agents/plan.md: line 3: there is no key `odd`"]);
    let modes: Vec<String> =
        loaded.agents.modes().iter().map(|mode| format!("{} {}", mode.id, mode.name)).collect();
    assert_eq!(modes, ["build Build", "plan Plan", "reviewer Reviewer"]);
    assert_eq!(&*loaded.agents.get("plan").unwrap().description, "Plans better.");
}

#[test]
fn a_host_rule_outlives_a_file_of_the_same_id() {
    let mut host = Agents::builtin();
    host.add_permission(DEFAULT_AGENT, pinned("bash", "rm *", Action::Deny));
    let text = "---\nid: build\npermissions: [{permission: bash, action: allow}]\n---\nx";
    let loaded = host.with_files(&[file("/a/b.md", text)], &|_, _| Err(String::new()));
    let rules = &loaded.agents.get(DEFAULT_AGENT).unwrap().permissions;
    assert_eq!(rules[0], pinned("bash", "rm *", Action::Deny));
    assert_eq!(rules.len(), 2);
}

#[test]
fn an_unknown_mode_is_answered_with_the_nearest() {
    let agents = Agents::builtin();
    assert_eq!(
        agents.unknown_mode("mode", "plna"),
        "there is no mode `plna` (did you mean `plan`?); available: build, plan"
    );
    assert_eq!(
        agents.unknown_mode("agent", "explore"),
        "`explore` is an agent that can't be a mode; available: build, plan"
    );
}
