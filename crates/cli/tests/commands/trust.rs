//! `attache trust`, and what sessions of a project follow before and after it.

use std::path::Path;

use attache_testkit::binary::{Agent, Home};
use serde_json::Value;

use super::{answer, failure, run};

const SCRIPT: &str =
    "model other\non *\n  call bash {\"command\":\"touch canary\"}\n  ---\n  text \"done\"\n";

const CONFIG: &str = r#"model = "script/other"

[[permissions]]
permission = "bash"
pattern = "touch *"
action = "allow"

[[permissions]]
permission = "edit"
pattern = "canary"
action = "allow"
"#;

fn put(home: &Home, name: &str, text: &str) {
    let path = home.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The model of a new session, whether its command ran unasked, and what was told.
async fn session(home: &Home) -> (String, bool, String) {
    let canary = home.workspace().join("canary");
    drop(std::fs::remove_file(&canary));
    let agent = home.start();
    agent.client.always_choose("reject_once");
    agent.initialize().await;
    let new = serde_json::json!({ "cwd": home.workspace(), "mcpServers": [] });
    let made = agent.client.expect("session/new", new).await;
    let id = made["sessionId"].as_str().unwrap().to_owned();
    agent.prompt(&id, "go").await.unwrap();
    let told = thoughts(&agent, &id);
    agent.finish(home).await;
    (model(&made), canary.exists(), told)
}

fn model(made: &Value) -> String {
    let options = made["configOptions"].as_array().unwrap();
    let model = options.iter().find(|option| option["id"] == "model").unwrap();
    model["currentValue"].as_str().unwrap().to_owned()
}

fn thoughts(agent: &Agent, session: &str) -> String {
    let updates = agent.client.updates(session).into_iter();
    let thoughts = updates.filter(|update| update["sessionUpdate"] == "agent_thought_chunk");
    thoughts.map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn nothing_of_a_project_counts_before_consent_and_a_change_asks_again() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    put(&home, ".attache/config.toml", CONFIG);
    put(&home, ".claude/agents/helper.md", "---\nname: helper\n---\nHelp.\u{1b}[31m\n");
    let project = home.workspace().canonicalize().unwrap();
    let project = project.to_str().unwrap();
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/default", false));
    let words = "The project has configuration that is not used until you trust it: .attache/config.toml, \
                 .claude/agents/helper.md. To see it and to trust it: attache trust ";
    assert!(told.contains(words) && told.matches("not used").count() == 1, "{told}");

    let output = run(&home, &["trust", project]).await;
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "nobody was there to agree");
    assert!(shown.contains("--- .attache/config.toml\nmodel = \"script/other\""), "{shown}");
    assert!(shown.contains("--- .claude/agents/helper.md\n") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(answer(&home, &["trust", "--list"]).await, "You trust no project yet.\n");

    answer(&home, &["trust", project, "--yes"]).await;
    let list = answer(&home, &["trust", "--list"]).await;
    assert_eq!(list, format!("{project}: .attache/config.toml, .claude/agents/helper.md\n"));
    assert_eq!(answer(&home, &["trust", project]).await, format!("You trust {project} as it is.\n"));
    assert_eq!(session(&home).await, ("script/other".to_owned(), true, String::new()));

    put(&home, ".attache/config.toml", &CONFIG.replace("touch *", "rm *"));
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/default", false));
    assert!(told.contains("Changed since you trusted it: .attache/config.toml. "), "{told}");
    let shown = String::from_utf8(run(&home, &["trust", project]).await.stdout).unwrap();
    assert!(shown.contains(".attache/config.toml (changed)\n") && !shown.contains("helper"), "{shown}");

    put(&home, ".attache/config.toml", CONFIG);
    assert!(session(&home).await.1, "what was trusted is trusted");
    answer(&home, &["trust", project, "--revoke"]).await;
    assert!(!session(&home).await.1);
    let told = failure(&home, &["trust", project, "--revoke"]).await;
    assert!(told.contains("was not trusted"), "{told}");
}

#[tokio::test]
async fn a_trusted_file_with_mistakes_is_told_and_nothing_of_it_counts() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    put(&home, ".attache/config.toml", &format!("sandbox = \"off\"\n{CONFIG}"));
    let project = home.workspace();
    answer(&home, &["trust", project.to_str().unwrap(), "--yes"]).await;
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/default", false));
    assert!(told.contains("config.toml:1: `sandbox` can't be set by a project"), "{told}");
}

#[tokio::test]
async fn what_leads_out_of_a_project_or_is_not_there_can_not_be_trusted() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let outside = home.home().join("outside.toml");
    std::fs::write(&outside, CONFIG).unwrap();
    std::fs::create_dir_all(home.workspace().join(".attache")).unwrap();
    std::os::unix::fs::symlink(&outside, home.workspace().join(".attache/config.toml")).unwrap();
    let project = home.workspace();
    let output = run(&home, &["trust", project.to_str().unwrap(), "--yes"]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("has nothing that needs your consent"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it leads out of the project"));
    assert_eq!(session(&home).await.0, "script/default");
    let told = failure(&home, &["trust", "/nonexistent"]).await;
    assert!(told.contains("can't open /nonexistent"), "{told}");
    let file = home.home().join("trust.json");
    std::fs::write(&file, "{}").unwrap();
    let told = failure(&home, &["trust", "--list"]).await;
    assert!(told.contains("is damaged"), "{told}");
    assert_eq!(std::fs::read_to_string(Path::new(&file)).unwrap(), "{}");
}
