//! C2: SIGKILL around a tool call and its permission: run at most once, closed or asked again, the turn
//! continues.

use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::story::{agent_text, call_status, leave, nothing_is_lost, started, until, user_messages};

const SCRIPT: &str = r#"
on "append"
  text "going to append "
  call bash {"command":"echo ran >> journal; sleep 0.03; echo end >> journal"}
  ---
  text "appended"
on "long"
  call bash {"command":"echo ran >> journal; sleep 60; echo end >> journal"}
  ---
  text "never"
on "serve"
  call bash {"command":"echo ran >> journal; trap '' TERM; (setsid sleep 600 &); sleep 600","background":true}
  ---
  text "served"
on "look"
  call bash_background {"action":"output","name":"bg_1"}
  ---
  text "looked"
on "two"
  call bash {"command":"echo first >> journal"}
  call bash {"command":"echo second >> journal"}
  ---
  text "both"
on *
  text "fine"
"#;

fn journal(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.workspace().join("journal")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn runs(home: &Home) -> usize {
    journal(home).iter().filter(|line| *line == "ran").count()
}

fn is_question(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

async fn until_asked(agent: &Agent) -> Value {
    agent.client.wait_for("a permission request", is_question).await
}

fn allow(agent: &Agent, question: &Value) {
    agent.client.reply(&question["id"], Reply::choose("allow_once", &question["params"]));
}

struct Stage {
    home: Home,
    agent: Agent,
    session: String,
}

/// A process that has been asked to run `prompt` and leaves questions open.
async fn asked(prompt: &str) -> (Stage, Value) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let agent = started(&home).await;
    let session = agent.new_session(&home.workspace()).await;
    agent.client.set_policy(|_, _| Reply::Never);
    drop(agent.start_prompt(&session, prompt));
    let question = until_asked(&agent).await;
    (Stage { home, agent, session }, question)
}

impl Stage {
    async fn kill(mut self) -> (Home, String, Vec<Value>) {
        self.agent.kill().await;
        self.agent.client.wait_for_end().await;
        self.agent.client.finish_cut();
        let shown = self.agent.client.updates(&self.session);
        (self.home, self.session, shown)
    }
}

#[tokio::test]
async fn killed_with_an_open_question_it_is_asked_again_and_allow_continues_the_turn() {
    for method in ["session/load", "session/resume"] {
        let (stage, _) = asked("append").await;
        let (home, session, shown) = stage.kill().await;
        assert_eq!(runs(&home), 0);
        let agent = started(&home).await;
        agent.client.set_policy(|_, _| Reply::Never);
        let pending = agent
            .client
            .start(method, json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []}));
        let id = pending.id;
        pending.answer().await.unwrap();
        let question = until_asked(&agent).await;
        let received = agent.client.received();
        let answered = received.iter().position(|message| message["id"] == id).unwrap();
        let asked = received.iter().position(is_question).unwrap();
        assert!(answered < asked, "{method}: asked again only after it has been answered");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(runs(&home), 0, "{method}: nothing runs before the answer");
        allow(&agent, &question);
        until("the turn to go on", Duration::from_secs(20), || {
            agent_text(&agent.client.updates(&session)).ends_with("appended")
        })
        .await;
        assert_eq!(runs(&home), 1, "{method}");
        if method == "session/load" {
            nothing_is_lost(&shown, &agent.client.updates(&session)).unwrap();
        }
        assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
        agent.finish(&home).await;
        let again = started(&home).await;
        let story = again.load(&session, &home.workspace()).await;
        assert_eq!(user_messages(&story), ["append", "hello"]);
        assert_eq!(agent_text(&story), "going to append appendedfine");
        again.finish(&home).await;
        assert_eq!(runs(&home), 1, "{method}");
    }
}

/// An orderly end keeps the question as well: the editor was only restarted.
#[tokio::test]
async fn an_agent_that_ended_well_with_an_open_question_asks_it_again() {
    let (stage, _) = asked("append").await;
    let Stage { home, mut agent, session } = stage;
    agent.terminate();
    agent.wait().await;
    agent.client.finish_cut();
    assert_eq!(runs(&home), 0);
    let agent = started(&home).await;
    agent.client.always_choose("reject_once");
    agent.load(&session, &home.workspace()).await;
    until("the turn to go on", Duration::from_secs(20), || {
        agent_text(&agent.client.updates(&session)).ends_with("appended")
    })
    .await;
    assert_eq!(runs(&home), 0, "rejected");
    assert!(agent.client.updates(&session).iter().any(|update| update["status"] == "failed"));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_new_prompt_after_the_crash_denies_the_open_call() {
    let (stage, _) = asked("append").await;
    let (home, session, _) = stage.kill().await;
    let agent = started(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    agent.load(&session, &home.workspace()).await;
    until_asked(&agent).await;
    assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    assert_eq!(runs(&home), 0);
    let updates = agent.client.updates(&session);
    assert!(updates.iter().any(|update| update["status"] == "failed"), "{updates:?}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn killed_in_a_call_it_is_closed_as_an_error_and_not_run_again() {
    let (stage, question) = asked("long").await;
    allow(&stage.agent, &question);
    until("the command", Duration::from_secs(20), || runs(&stage.home) == 1).await;
    let (home, session, shown) = stage.kill().await;
    assert_eq!(home.orphans(), []);
    let agent = started(&home).await;
    let loaded = agent.load(&session, &home.workspace()).await;
    assert_eq!(call_status(&loaded), Some("failed"), "{loaded:?}");
    let told = serde_json::to_string(&loaded).unwrap();
    assert!(told.contains("aborted by host restart"), "{told}");
    assert!(!shown.is_empty());
    assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
    agent.finish(&home).await;
    assert_eq!(journal(&home), ["ran"]);
}

/// Kills around the answer, the start, the run and the outcome: a command with an effect runs at most once.
#[tokio::test]
async fn around_its_call_a_command_runs_at_most_once() {
    let (mut not_run, mut cut, mut whole) = (0, 0, 0);
    for round in 0..24_u64 {
        let (stage, question) = asked("append").await;
        allow(&stage.agent, &question);
        tokio::time::sleep(Duration::from_millis(round * 4)).await;
        let (home, session, shown) = stage.kill().await;
        assert_eq!(home.orphans(), []);
        let before = journal(&home);
        match before.len() {
            0 => not_run += 1,
            1 => cut += 1,
            _ => whole += 1,
        }
        let agent = started(&home).await;
        // Killed before the answer was stored, it is asked again; the new prompt then denies it.
        agent.client.set_policy(|_, _| Reply::Never);
        let loaded = agent.load(&session, &home.workspace()).await;
        let finished = shown.iter().any(|update| update["status"] == "completed");
        if finished {
            assert!(
                loaded.iter().any(|update| update["status"] == "completed"),
                "round {round}: the outcome is lost"
            );
        }
        assert_eq!(agent.prompt(&session, "hello").await.unwrap()["stopReason"], "end_turn");
        agent.finish(&home).await;
        assert_eq!(journal(&home), before, "round {round}: it ran again");
        assert!(runs(&home) <= 1);
    }
    assert!(
        cut + whole > 0 && not_run + cut > 0,
        "the kills met {not_run} unstarted, {cut} cut, {whole} whole runs"
    );
}

/// The second of two calls is asked about after the first has run; the crash in between repeats neither.
#[tokio::test]
async fn killed_between_two_calls_the_first_is_not_repeated() {
    let (stage, question) = asked("two").await;
    allow(&stage.agent, &question);
    let first = question["id"].clone();
    stage
        .agent
        .client
        .wait_for("the second question", |message| is_question(message) && message["id"] != first)
        .await;
    let (home, session, _) = stage.kill().await;
    assert_eq!(journal(&home), ["first"]);
    let agent = started(&home).await;
    agent.client.always_choose("allow_once");
    agent.load(&session, &home.workspace()).await;
    until("the turn to go on", Duration::from_secs(20), || {
        agent_text(&agent.client.updates(&session)).ends_with("both")
    })
    .await;
    assert_eq!(journal(&home), ["first", "second"]);
    leave(agent).await;
}

/// A command in the background outlives its turn and no process: not one that is killed, not one that ends.
#[tokio::test]
async fn a_command_in_the_background_dies_with_its_process() {
    for is_killed in [true, false] {
        let (stage, question) = asked("serve").await;
        allow(&stage.agent, &question);
        until("the end of the turn", Duration::from_secs(20), || {
            agent_text(&stage.agent.client.updates(&stage.session)).ends_with("served")
        })
        .await;
        assert_eq!(runs(&stage.home), 1);
        let (home, session) = match is_killed {
            true => {
                let (home, session, _) = stage.kill().await;
                (home, session)
            }
            false => {
                let Stage { home, mut agent, session } = stage;
                agent.terminate();
                agent.wait().await;
                agent.client.finish_cut();
                (home, session)
            }
        };
        assert_eq!(home.orphans(), []);
        let agent = started(&home).await;
        agent.load(&session, &home.workspace()).await;
        assert_eq!(agent.prompt(&session, "look").await.unwrap()["stopReason"], "end_turn");
        let told = serde_json::to_string(&agent.client.updates(&session)).unwrap();
        assert!(told.contains("there is no `bg_1`: no command of this name was started"), "{told}");
        agent.finish(&home).await;
        assert_eq!(journal(&home), ["ran"]);
    }
}

#[tokio::test]
async fn a_command_in_the_background_dies_with_its_session() {
    for method in ["session/close", "session/delete"] {
        let (stage, question) = asked("serve").await;
        allow(&stage.agent, &question);
        until("the end of the turn", Duration::from_secs(20), || {
            agent_text(&stage.agent.client.updates(&stage.session)).ends_with("served")
        })
        .await;
        let running = || {
            stage.home.processes().into_iter().filter(|process| process.command.contains("sleep 600")).count()
        };
        assert!(running() > 0, "it runs");
        stage.agent.client.start(method, json!({"sessionId": stage.session})).answer().await.unwrap();
        until("its end", Duration::from_secs(20), || running() == 0).await;
        stage.agent.finish(&stage.home).await;
    }
}
