//! Servers of other people, pinned in `peers/`, through `attache acp`: over stdio, streamable HTTP and SSE.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::stage::{call, calls, home, open, session, shown, until_settled};

pub(crate) fn peer(name: &str) -> PathBuf {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    PathBuf::from(peers).join(name)
}

/// The program of an npm server.
fn program(server: &str) -> PathBuf {
    peer("mcp").join("node_modules/@modelcontextprotocol").join(server).join("dist/index.js")
}

fn stdio(name: &str, server: &str, arguments: &[Value]) -> Value {
    let arguments: Vec<Value> =
        std::iter::once(json!(program(server))).chain(arguments.iter().cloned()).collect();
    json!({ "name": name, "command": "node", "args": arguments, "env": [] })
}

/// A model that makes these calls, one after the other.
fn script(calls: &[(&str, Value)]) -> String {
    let steps = calls.iter().map(|(tool, arguments)| format!("  call {tool} {arguments}\n  ---\n"));
    format!(
        "model vision images=true\non \"go\"\n{}  text \"done\"\non *\n  text \"ok\"\n",
        steps.collect::<String>()
    )
}

/// What the pinned server offers.
fn every_tool() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("all_echo", json!({ "message": "hello" }), "Echo: hello"),
        ("all_get-sum", json!({ "a": 2, "b": 3 }), "5"),
        ("all_get-tiny-image", json!({}), "image"),
        ("all_get-env", json!({}), "PATH"),
        ("all_get-annotated-message", json!({ "messageType": "success", "includeImage": false }), "success"),
        ("all_get-resource-links", json!({ "count": 2 }), "[resource "),
        ("all_get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 }), "[resource "),
        ("all_get-structured-content", json!({ "location": "New York" }), "temperature"),
        ("all_trigger-long-running-operation", json!({ "duration": 1, "steps": 4 }), "completed"),
        ("all_toggle-simulated-logging", json!({}), "logging"),
        ("all_toggle-subscriber-updates", json!({}), "pdates"),
        ("all_get-roots-list", json!({}), "file://"),
        ("all_trigger-elicitation-request", json!({}), "Ada Lovelace"),
        ("all_trigger-url-elicitation", json!({ "url": "https://example.org/login" }), "completed the URL"),
        (
            "all_trigger-url-elicitation",
            json!({ "url": "https://example.org/again", "errorPath": true }),
            "The user goes to https://modelcontextprotocol.io now",
        ),
        ("all_trigger-sampling-request", json!({ "prompt": "say it", "maxTokens": 50 }), "sampled words"),
        ("all_simulate-research-query", json!({ "topic": "tides" }), "Research Report: tides"),
        (
            "all_simulate-research-query",
            json!({ "topic": "moons", "ambiguous": true }),
            "accepted without selection",
        ),
        (
            "all_gzip-file-as-resource",
            json!({ "name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource" }),
            "application/gzip",
        ),
        ("all_resources", json!({}), "demo://resource"),
        (
            "all_resources",
            json!({ "uri": "demo://resource/dynamic/text/1" }),
            "demo://resource/dynamic/text/1",
        ),
        // It completes what is a number, and nothing else.
        (
            "all_resources",
            json!({ "template": "demo://resource/dynamic/text/{resourceId}", "argument": "resourceId", "value": "17" }),
            "17\\n",
        ),
        (
            "all_resources",
            json!({ "template": "demo://resource/dynamic/text/{resourceId}", "argument": "resourceId", "value": "x" }),
            "Nothing is suggested for resourceId",
        ),
    ]
}

/// `server`: its entry in the user's configuration, where alone it may be let ask a model.
async fn check_everything(server: &str) {
    let tools = every_tool();
    let made: Vec<(&str, Value)> =
        tools.iter().map(|(tool, arguments, _)| (*tool, arguments.clone())).collect();
    let home = home(&format!(
        "{}on \"Resource \"*\n  text \"sampled words\"\non \"wait\"\n  call all_trigger-long-running-operation {{\"duration\":600,\"steps\":3000}}\n  ---\n  text \"done\"\n",
        script(&made)
    ));
    home.write_config(&format!(
        "small_model = \"script/vision\"\n[mcp.all]\nsampling = true\ncall_timeout_ms = 60000\n{server}\n"
    ));
    let agent = home.start_with(&["--model", "script/vision"]);
    let elicitation = json!({ "form": {}, "url": {} });
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": elicitation } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" if params["mode"] == "url" => Reply::Result(json!({ "action": "accept" })),
        "elicitation/create" => {
            Reply::Result(json!({ "action": "accept", "content": { "name": "Ada Lovelace" } }))
        }
        _ => Reply::choose("allow_once", params),
    });
    let id = open(&agent, &home, &[]).await;
    until_settled(&agent, &id).await;
    let mark = agent.client.mark();
    let results = calls(&agent, &id, "go").await;
    assert_eq!(results.len(), tools.len());
    for (result, (tool, arguments, expected)) in results.iter().zip(&tools) {
        let status = if arguments["errorPath"] == true { "failed" } else { "completed" };
        assert_eq!(result["status"], status, "{tool}: {result}");
        assert!(result.to_string().contains(expected), "{tool}: {result}");
    }
    let picture = &results[tools.iter().position(|(tool, ..)| *tool == "all_get-tiny-image").unwrap()];
    let blocks = picture["content"].as_array().unwrap().iter().map(|block| &block["content"]);
    let is_picture = |block: &Value| {
        block["type"] == "image"
            && block["mimeType"] == "image/png"
            && block["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo"))
    };
    assert!(blocks.into_iter().any(is_picture), "{picture}");
    let is_live = |update: &Value| update["status"] == "in_progress" && shown(update).contains(" of 4");
    assert!(agent.client.updates_since(mark, &id).iter().any(is_live), "progress is live");
    let listed = {
        let mark = agent.client.mark();
        agent.prompt(&id, "/mcp").await.unwrap();
        agent.client.updates_since(mark, &id).iter().map(Value::to_string).collect::<String>()
    };
    for name in listed.split('`').filter(|word| word.starts_with("all_")) {
        assert!(tools.iter().any(|(tool, ..)| *tool == name), "{name} is not called");
    }
    check_prompts(&agent, &id).await;
    check_cancel(&agent, &id).await;
    agent.finish(&home).await;
}

/// In the middle of a call that would go on for ten minutes; the server is there for the next one.
async fn check_cancel(agent: &Agent, id: &str) {
    let pending = agent.start_prompt(id, "wait");
    agent
        .client
        .wait_for("progress of the call", |message| {
            let update = &message["params"]["update"];
            update["status"] == "in_progress" && shown(update).contains("2 of 3000")
        })
        .await;
    agent.client.notify("session/cancel", json!({ "sessionId": id }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    let mark = agent.client.mark();
    agent.prompt(id, "/mcp").await.unwrap();
    let listed: String = agent.client.updates_since(mark, id).iter().map(Value::to_string).collect();
    assert!(listed.contains("): ready; tools:"), "{listed}");
    agent.prompt(id, "/all:simple-prompt").await.unwrap_or_else(|error| panic!("{error:?}"));
}

/// The prompts of the same server, typed as commands.
async fn check_prompts(agent: &Agent, id: &str) {
    for prompt in ["/all:simple-prompt", "/all:args-prompt 'New York'", "/all:resource-prompt Text 1"] {
        agent.prompt(id, prompt).await.unwrap_or_else(|error| panic!("{prompt}: {error:?}"));
    }
    for (typed, suggested) in [
        ("/all:completable-prompt", "Engineering, Sales, Marketing, Support"),
        ("/all:completable-prompt Sales", "David, Eve, Frank"),
    ] {
        let error = format!("{:?}", agent.prompt(id, typed).await.unwrap_err());
        assert!(error.contains(suggested), "{typed}: {error}");
    }
    for (typed, wanted) in [
        ("/all:completable-prompt ", "/all:completable-prompt Engineering "),
        ("/all:completable-prompt Sal", "/all:completable-prompt Sales "),
        ("/all:completable-prompt Sales Ev", "/all:completable-prompt Sales Eve "),
    ] {
        let params = json!({ "sessionId": id, "text": typed });
        let completed = agent.client.expect("_attache/commands/complete", params).await;
        assert_eq!(completed["completions"][0]["text"], wanted, "{typed}: {completed}");
    }
    let params = json!({ "sessionId": id, "text": "/help x" });
    assert_eq!(agent.client.expect("_attache/commands/complete", params).await, json!({ "completions": [] }));
}

#[tokio::test]
async fn everything_over_stdio() {
    check_everything(&format!("command = [\"node\", {}]", json!(program("server-everything")))).await;
}

/// A server that listens; ends with the test.
async fn listening(mode: &str) -> (Child, u16) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("node");
    command.arg(program("server-everything")).arg(mode).env("PORT", port.to_string()).kill_on_drop(true);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until_it_listens(port).await;
    (child, port)
}

pub(crate) async fn until_it_listens(port: u16) {
    for _ in 0..400 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server does not listen");
}

#[tokio::test]
async fn everything_over_streamable_http() {
    let (mut child, port) = listening("streamableHttp").await;
    check_everything(&format!("url = \"http://127.0.0.1:{port}/mcp\"")).await;
    child.kill().await.unwrap();
}

#[tokio::test]
async fn a_server_at_an_address_learns_of_other_directories() {
    let (mut child, port) = listening("streamableHttp").await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let server = json!({ "type": "http", "name": "all", "url": url, "headers": [] });
    let home = home(&script(&[("all_get-roots-list", json!({}))]));
    let agent = home.start();
    let id = session(&agent, &home, std::slice::from_ref(&server)).await;
    let before = call(&agent, &id, "go").await.to_string();
    let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let name = other.path().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(before.contains("file://") && !before.contains(&name), "{before}");
    let params = json!({
        "sessionId": id, "cwd": home.workspace(), "mcpServers": [server],
        "additionalDirectories": [other.path()],
    });
    agent.client.expect("session/resume", params).await;
    // It asks for them when it is told, and its answers follow.
    for _ in 0..60 {
        let now = call(&agent, &id, "go").await.to_string();
        if now.contains(&name) {
            agent.finish(&home).await;
            return child.kill().await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it still has the directories of before");
}

#[tokio::test]
async fn everything_over_sse() {
    let (mut child, port) = listening("sse").await;
    check_everything(&format!("url = \"http://127.0.0.1:{port}/sse\"\ntransport = \"sse\"")).await;
    child.kill().await.unwrap();
}

#[tokio::test]
async fn files_are_written_through_the_filesystem_server() {
    let home = home("on *\n  text \"ok\"\n");
    let root = home.workspace();
    let (path, outside) = (root.join("made.txt"), PathBuf::from("/etc/hostname"));
    home.write_script(&script(&[
        ("fs_write_file", json!({ "path": path, "content": "by a server" })),
        ("fs_read_text_file", json!({ "path": path })),
        ("fs_read_text_file", json!({ "path": outside })),
    ]));
    let agent = home.start();
    let id = session(&agent, &home, &[stdio("fs", "server-filesystem", &[json!(root)])]).await;
    let results = calls(&agent, &id, "go").await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "by a server");
    assert!(shown(&results[1]).contains("by a server"), "{}", results[1]);
    assert_eq!(results[2]["status"], "failed", "{}", results[2]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn the_memory_server_remembers() {
    let home = home("on *\n  text \"ok\"\n");
    let entity = json!({ "name": "attache", "entityType": "agent", "observations": ["speaks ACP"] });
    home.write_script(&script(&[
        ("mem_create_entities", json!({ "entities": [entity] })),
        ("mem_search_nodes", json!({ "query": "attache" })),
    ]));
    let agent = home.start();
    let mut server = stdio("mem", "server-memory", &[]);
    server["env"] = json!([{ "name": "MEMORY_FILE_PATH", "value": home.workspace().join("memory.jsonl") }]);
    let id = session(&agent, &home, &[server]).await;
    let results = calls(&agent, &id, "go").await;
    assert!(shown(&results[1]).contains("speaks ACP"), "{}", results[1]);
    agent.finish(&home).await;
}

fn python(name: &str, module: &str, arguments: &[Value]) -> Value {
    let arguments: Vec<Value> =
        [json!("-m"), json!(module)].into_iter().chain(arguments.iter().cloned()).collect();
    let path = json!([{ "name": "PYTHONPATH", "value": peer("mcp-python").join("python") }]);
    json!({ "name": name, "command": "python3", "args": arguments, "env": path })
}

async fn python_call(home: &Home, server: Value) -> Value {
    let agent = home.start();
    let id = session(&agent, home, &[server]).await;
    // Python takes its time to begin, and longer beside other tests than a first prompt waits.
    for _ in 0..60 {
        let mark = agent.client.mark();
        agent.prompt(&id, "/mcp").await.unwrap();
        let told: String = agent.client.updates_since(mark, &id).iter().map(Value::to_string).collect();
        if told.contains("ready") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let result = call(&agent, &id, "go").await;
    agent.finish(home).await;
    result
}

#[tokio::test]
async fn python_servers_are_called() {
    let home = home("on *\n  text \"ok\"\n");
    home.write_script(&script(&[(
        "clock_convert_time",
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
    )]));
    let result = python_call(&home, python("clock", "mcp_server_time", &[])).await;
    assert!(shown(&result).contains("21:00"), "{result}");
    let root = home.workspace();
    let git =
        std::process::Command::new("git").args(["init", "--quiet"]).current_dir(&root).status().unwrap();
    assert!(git.success());
    std::fs::write(root.join("new.txt"), "x").unwrap();
    home.write_script(&script(&[("git_git_status", json!({ "repo_path": root }))]));
    let result =
        python_call(&home, python("git", "mcp_server_git", &[json!("--repository"), json!(root)])).await;
    assert!(shown(&result).contains("new.txt"), "{result}");
}
