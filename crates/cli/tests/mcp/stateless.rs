//! Servers without a hello (revision 2026-07-28): the official Python SDK, pinned in `peers/`, over stdio and
//! streamable HTTP, and one of ours that asks for too much.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::peers::{peer, until_it_listens};
use crate::stage::{call, calls, home, named, open, session, shown, until_settled};

const SCRIPT: &str = "model small\non \"go\"\n  call sdk_echo {\"text\":\"grüß dich\\n\"}\n  ---\n  \
    call sdk_paint {}\n  ---\n  call sdk_think {}\n  ---\n  call sdk_count {}\n  ---\n  \
    call sdk_resources {\"uri\":\"demo://one\"}\n  ---\n  text \"done\"\n\
    on \"grow\"\n  call sdk_grow {}\n  ---\n  text \"done\"\non \"grown\"\n  call sdk_grown {}\n  ---\n  text \"done\"\n\
    on \"wait\"\n  call sdk_wait {}\n  ---\n  text \"done\"\non \"What\"*\n  text \"Four.\"\n";

fn server() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/stateless_sdk.py").to_str().unwrap().to_owned()
}

async fn begin(home: &Home, entry: &str) -> (Agent, String) {
    home.write_config(&format!(
        "small_model = \"script/small\"\n[mcp.sdk]\nsampling = true\ncall_timeout_ms = 20000\n{entry}\n"
    ));
    let agent = home.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" => Reply::Result(json!({ "action": "accept", "content": { "colour": "red" } })),
        _ => Reply::choose("allow_once", params),
    });
    let id = open(&agent, home, &[]).await;
    // Python takes its time to begin.
    for _ in 0..120 {
        if told(&agent, &id).await.contains("ready") {
            return (agent, id);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("it does not get ready: {}", told(&agent, &id).await);
}

async fn told(agent: &Agent, id: &str) -> String {
    let mark = agent.client.mark();
    agent.prompt(id, "/mcp").await.unwrap();
    agent.client.updates_since(mark, id).iter().map(Value::to_string).collect()
}

/// What a server with a hello can, one without can, too.
async fn check_everything(home: &Home, entry: &str) {
    let stopped = home.workspace().join("stopped");
    let (agent, id) = begin(home, entry).await;
    let mark = agent.client.mark();
    let results = calls(&agent, &id, "go").await;
    let root = format!("file://{}", home.workspace().canonicalize().unwrap().display());
    for (result, expected) in results.iter().zip([
        "echo: grüß dich",
        &format!("red in {root}"),
        "the model says Four.",
        "counted",
        "what it holds",
    ]) {
        assert!(shown(result).contains(expected) && result["status"] == "completed", "{expected}: {result}");
    }
    assert_eq!(results.len(), 5);
    let is_live =
        |update: &Value| update["status"] == "in_progress" && shown(update).contains("2 of 3: step");
    assert!(agent.client.updates_since(mark, &id).iter().any(is_live), "progress is live");
    let asked = agent.client.received();
    let form = asked.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    assert_eq!(form["params"]["message"], "The MCP server sdk asks: Which colour?");
    agent.prompt(&id, "/sdk:greet Ada").await.unwrap();
    // Tools that are new come with the next turn, and a resource that was read and has changed is told of.
    call(&agent, &id, "grow").await;
    let mut grown = json!(null);
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        grown = call(&agent, &id, "grown").await;
        if grown["status"] == "completed" {
            break;
        }
    }
    assert!(shown(&grown).contains("here"), "{grown}");
    // A call that is cancelled ends at the server, too.
    let mark = agent.client.mark();
    let prompt = agent.prompt(&id, "wait");
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        agent.client.notify("session/cancel", json!({ "sessionId": id }));
    };
    let (answer, ()) = tokio::join!(prompt, cancelling);
    assert_eq!(answer.unwrap()["stopReason"], "cancelled");
    for _ in 0..50 {
        if stopped.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(stopped.exists(), "{:?}", agent.client.updates_since(mark, &id));
    agent.finish(home).await;
    let exported = home.command().args(["sessions", "export", &id]).output().await.unwrap();
    let rows = String::from_utf8(exported.stdout).unwrap();
    assert_eq!(rows.matches("Resources that you have read have changed: demo://one").count(), 1, "{rows}");
    assert!(rows.contains("Greet Ada."), "{rows}");
}

#[tokio::test]
async fn the_python_sdk_over_stdio() {
    let home = home(SCRIPT);
    let (path, stopped) = (peer("mcp-python").join("python"), home.workspace().join("stopped"));
    let env = format!("env = {{ PYTHONPATH = {}, STOPPED = {} }}", json!(path), json!(stopped));
    check_everything(&home, &format!("command = [\"python3\", {}, \"stdio\"]\n{env}", json!(server()))).await;
}

#[tokio::test]
async fn the_python_sdk_over_streamable_http() {
    let home = home(SCRIPT);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("python3");
    command.arg(server()).args(["http", &port.to_string()]).stdin(Stdio::null()).kill_on_drop(true);
    command.env("PYTHONPATH", peer("mcp-python").join("python"));
    command.env("STOPPED", home.workspace().join("stopped"));
    let _child = command.spawn().unwrap();
    until_it_listens(port).await;
    check_everything(&home, &format!("url = \"http://127.0.0.1:{port}/mcp\"")).await;
}

/// One tool for each thing that a server must not do.
#[tokio::test]
async fn a_server_that_wants_too_much_before_it_answers_is_refused() {
    let tools = [
        ("endless", "wanted something more than 10 times"),
        ("much", "100 things at once"),
        ("nothing", "does not say what"),
        ("shell", "terminal/create is not known here"),
        ("hologram", "a result of the kind hologram, which is not known here"),
        ("sampling", "does not let servers ask its model"),
        ("slow", "all done by red"),
        ("lost", "the task is failed and has no result: it went wrong"),
        ("state", "the state came back"),
    ];
    let made: String = tools.iter().map(|(tool, _)| format!("  call bare_{tool} {{}}\n  ---\n")).collect();
    let home = home(&format!("on *\n{made}  text \"done\"\n"));
    let agent = home.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" => Reply::Result(json!({ "action": "accept", "content": { "colour": "red" } })),
        _ => Reply::choose("allow_once", params),
    });
    let id = open(&agent, &home, &[named("bare", "stateless")]).await;
    until_settled(&agent, &id).await;
    let results = calls(&agent, &id, "go").await;
    assert_eq!(results.len(), tools.len());
    for (result, (tool, expected)) in results.iter().zip(tools) {
        assert!(shown(result).contains(expected), "{tool}: {result}");
    }
    let asked = agent.client.received();
    let forms = asked.iter().filter(|message| message["method"] == "elicitation/create").count();
    assert_eq!(forms, 11 + 1, "each round of `endless` one, and the task one");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_of_another_time_is_named_with_its_revisions() {
    let home = home("on *\n  text \"ok\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("later", "later"), named("good", "good")]).await;
    let mut said = String::new();
    for _ in 0..40 {
        said = told(&agent, &id).await;
        if said.contains("2099-01-01") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let expected = "it speaks other revisions of the protocol (2099-01-01) than attache (2026-07-28 and";
    assert!(said.contains(expected), "{said}");
    agent.finish(&home).await;
}
