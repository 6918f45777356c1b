//! `attache trust`, and what sessions of a project follow before and after it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
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
    put(&home, ".claude/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nHelp.\u{1b}[31m\n");
    let project = home.workspace().canonicalize().unwrap();
    let project = project.to_str().unwrap();
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/default", false));
    let page = configuration(&home).await;
    assert!(
        page.contains("(not used until you trust it: attache trust ") && !page.contains("other"),
        "{page}"
    );
    let words = "The project has configuration that is not used until you trust it: .attache/config.toml, \
                 .claude/agents/helper.md. To see it and to trust it: /trust, or attache trust ";
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
    let page = configuration(&home).await;
    let line = format!("model = \"script/other\"  # {project}/.attache/config.toml:1\n");
    assert!(page.contains(&line) && page.contains("pattern = \"touch *\""), "{page}");

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

/// A process whose client shows forms and gives this word to the question about the project; how often it was
/// asked.
async fn asked(home: &Home, word: &'static str) -> (Agent, Arc<Mutex<Vec<String>>>) {
    let agent = home.start();
    let messages = Arc::new(Mutex::new(Vec::new()));
    let told = messages.clone();
    agent.client.set_policy(move |method, params| match method {
        "elicitation/create" => {
            told.lock().unwrap().push(params["message"].as_str().unwrap().to_owned());
            Reply::Result(serde_json::json!({ "action": "accept", "content": { "trust": word } }))
        }
        _ => Reply::choose("reject_once", params),
    });
    let capabilities = serde_json::json!({ "elicitation": { "form": {} } });
    let handshake = serde_json::json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    agent.client.expect("initialize", handshake).await;
    (agent, messages)
}

async fn until_told(agent: &Agent, session: &str, words: &str) {
    for _ in 0..500 {
        if thoughts(agent, session).contains(words) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{words} was never told: {}", thoughts(agent, session));
}

#[tokio::test]
async fn a_client_with_forms_is_asked_once_about_the_same_content() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    put(&home, ".attache/config.toml", CONFIG);
    let canary = home.workspace().join("canary");
    let (agent, messages) = asked(&home, "no").await;
    let session = agent.new_session(&home.workspace()).await;
    until_told(&agent, &session, "The project's configuration is not used: You are not asked again").await;
    agent.new_session(&home.workspace()).await;
    agent.prompt(&session, "go").await.unwrap();
    assert!(!canary.exists());
    agent.finish(&home).await;
    let shown = messages.lock().unwrap().join("");
    assert!(
        shown.contains("model = \"script/other\"") && shown.matches("Do you trust").count() == 1,
        "{shown}"
    );

    let (agent, messages) = asked(&home, "yes").await;
    let session = agent.new_session(&home.workspace()).await;
    agent.prompt(&session, "go").await.unwrap();
    agent.finish(&home).await;
    assert!(messages.lock().unwrap().is_empty(), "who declined is not asked by another process either");
    assert_eq!(answer(&home, &["trust", "--list"]).await, "You trust no project yet.\n");

    put(&home, ".attache/config.toml", &format!("{CONFIG}# changed\n"));
    let (agent, messages) = asked(&home, "yes").await;
    let session = agent.new_session(&home.workspace()).await;
    until_told(&agent, &session, "You trust the project").await;
    agent.prompt(&session, "go").await.unwrap();
    assert!(canary.exists(), "its rule lets the command pass in the session that was open already");
    agent.finish(&home).await;
    assert_eq!(messages.lock().unwrap().len(), 1);
    assert!(answer(&home, &["trust", "--list"]).await.contains(".attache/config.toml"));
}

#[tokio::test]
async fn any_client_can_agree_by_a_command_to_what_it_has_shown() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    put(&home, ".attache/config.toml", CONFIG);
    let agent = home.start();
    agent.client.always_choose("reject_once");
    let session = agent.open_session(&home).await;
    let said = async |words: &str| {
        let before = agent.client.agent_text(&session).len();
        agent.prompt(&session, words).await.unwrap();
        agent.client.agent_text(&session)[before..].to_owned()
    };
    let told = said("/trust yes").await;
    assert!(told.starts_with("You have not seen it as it is now.") && told.contains("touch *"), "{told}");
    put(&home, ".attache/config.toml", &CONFIG.replace("touch *", "touch c*"));
    let told = said("/trust yes").await;
    assert!(told.starts_with("You have not seen it as it is now.") && told.contains("touch c*"), "{told}");
    assert!(said("go").await.contains("done"));
    assert!(!home.workspace().join("canary").exists());
    assert!(said("/trust").await.contains("`/trust yes` agrees to exactly this"));
    assert!(said("/trust yes").await.starts_with("You trust the project as it is now."));
    assert!(said("/trust").await.starts_with("Nothing needs your consent"));
    said("go").await;
    assert!(home.workspace().join("canary").exists());
    agent.finish(&home).await;
}

/// `--print-config` in the project.
async fn configuration(home: &Home) -> String {
    let mut command = home.command();
    let output = command.arg("--print-config").current_dir(home.workspace()).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Each of several processes at once keeps what the others wrote.
#[tokio::test]
async fn projects_that_are_trusted_at_the_same_time_are_all_trusted() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let names: Vec<String> = (0..12).map(|number| format!("project_{number}")).collect();
    for name in &names {
        put(&home, &format!("{name}/.attache/config.toml"), CONFIG);
    }
    let places = names.iter().map(|name| home.workspace().join(name).to_str().unwrap().to_owned());
    let places: Vec<String> = places.collect();
    let trusting = places.iter().map(|place| answer_of(&home, place));
    futures_util::future::join_all(trusting).await;
    let list = answer(&home, &["trust", "--list"]).await;
    assert_eq!(list.lines().count(), names.len(), "{list}");
}

async fn answer_of(home: &Home, place: &str) -> String {
    answer(home, &["trust", place, "--yes"]).await
}

#[tokio::test]
async fn a_trusted_file_with_mistakes_is_told_and_nothing_of_it_counts() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    put(&home, ".attache/config.toml", &format!("sandbox = \"off\"\n{CONFIG}"));
    let project = home.workspace();
    answer(&home, &["trust", project.to_str().unwrap(), "--yes"]).await;
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/default", false));
    assert!(told.contains("config.toml:1: a project can't set `sandbox`"), "{told}");
}

/// A hook with a mistake is left out alone, also where a project may not have what it says.
#[tokio::test]
async fn a_bad_hook_of_a_trusted_project_is_told_and_the_rest_counts() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let bad = "[[hooks]]\nevent = \"PreToolUsed\"\ncommand = \"x\"\n[[hooks]]\nevent = \"prompt\"\ncommand = \"touch bad\"\nsandbox = \"off\"\n";
    put(&home, ".attache/config.toml", &format!("{CONFIG}{bad}"));
    let project = home.workspace();
    answer(&home, &["trust", project.to_str().unwrap(), "--yes"]).await;
    let (model, ran, told) = session(&home).await;
    assert_eq!((model.as_str(), ran), ("script/other", true), "the rest counts");
    assert!(told.contains("`hooks[1].event` \"PreToolUsed\" is unknown"), "{told}");
    assert!(told.contains("a project can't set `hooks[2].sandbox`"), "{told}");
    assert!(!home.workspace().join("bad").exists());
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
