//! goose, a widely used agent of others, behind attache and in its chat; its models are a scripted server.

use attache_testkit::binary::Home;
use attache_testkit::http_server::{Answer, HttpServer, Request};
use serde_json::{Value, json};

use crate::peer::*;

/// An OpenAI-compatible server that says what a prompt names.
async fn model() -> HttpServer {
    HttpServer::start(answer).await
}

fn answer(request: &Request) -> Answer {
    if request.method == "GET" {
        return Answer::json(
            200,
            &json!({ "object": "list", "data": [{ "id": "gpt-test", "object": "model" }] }),
        );
    }
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let text = text(&last);
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] })
    };
    // Requests without tools are about titles.
    let (deltas, reason) = if body["tools"].as_array().is_none_or(Vec::is_empty) {
        (vec![json!({ "content": "A title" })], "stop")
    } else if last["role"] == "tool" {
        (vec![json!({ "content": format!("It said: {}", text.trim()) })], "stop")
    } else if text.contains("run it") {
        let command = json!({ "command": "echo hi > out.txt; echo done" });
        (vec![json!({ "content": "I will. " }), call("shell", command)], "tool_calls")
    } else if text.contains("how many") {
        let asked = messages.iter().filter(|message| message["role"] == "user").count();
        (vec![json!({ "content": format!("{asked} questions") })], "stop")
    } else {
        (vec![json!({ "content": "Hello " }), json!({ "content": "there." })], "stop")
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
        let chunk = json!({
            "id": "x", "object": "chat.completion.chunk", "model": "gpt-test", "choices": [choice],
            "usage": if reason.is_null() { Value::Null } else { usage },
        });
        format!("data: {chunk}\n\n")
    };
    let said: String = deltas.into_iter().map(|delta| chunk(delta, Value::Null)).collect();
    Answer::events(format!("{said}{}data: [DONE]\n\n", chunk(json!({}), reason.into())))
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
            parts.iter().filter_map(|part| part["text"].as_str()).collect()
        }
    }
}

fn program() -> String {
    let program = peers().join("goose/node_modules/@aaif/goose-binary-linux-x64/bin/goose");
    program.to_str().unwrap().to_owned()
}

fn variables(server: &HttpServer, root: &std::path::Path) -> Vec<(&'static str, String)> {
    vec![
        ("GOOSE_PATH_ROOT", root.to_str().unwrap().to_owned()),
        ("GOOSE_PROVIDER", "openai".to_owned()),
        ("GOOSE_MODEL", "gpt-test".to_owned()),
        ("GOOSE_MODE", "approve".to_owned()),
        ("GOOSE_DISABLE_KEYRING", "1".to_owned()),
        ("GOOSE_TELEMETRY_ENABLED", "false".to_owned()),
        ("OPENAI_HOST", server.url()),
        ("OPENAI_API_KEY", "k".to_owned()),
    ]
}

fn goose(server: &HttpServer, root: &std::path::Path) -> Home {
    let env: Vec<String> =
        variables(server, root).iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let command = json!([program(), "acp"]);
    let entry = format!("backend = \"acp\"\ncommand = {command}\nenv = {{ {} }}\n", env.join(", "));
    home_with(&entry, "on *\n text \"not asked\"")
}

#[tokio::test]
async fn its_commands_ask_here_and_run_in_our_terminals() {
    let (server, root) = (model().await, tempfile::tempdir().unwrap());
    let home = goose(&server, root.path());
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello there.");
    agent.client.always_choose("allow_once");
    let mark = agent.client.mark();
    let said = told(&agent, &session, "run it").await;
    assert!(said.starts_with("I will. It said: ") && said.contains("done"), "{said}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("out.txt")).unwrap(), "hi\n");
    let updates = agent.client.updates_since(mark, &session);
    let done = updates.iter().rfind(|update| update["status"] == "completed").unwrap();
    assert!(done["content"].to_string().contains("done"), "{done}");
    assert_eq!(done["kind"], "execute", "{done}");
    let asked = agent.client.received().into_iter().find(is_question).unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "shell · echo hi > out.txt; echo done");
    std::fs::remove_file(home.workspace().join("out.txt")).unwrap();
    agent.client.always_choose("reject_once");
    told(&agent, &session, "run it").await;
    assert!(!home.workspace().join("out.txt").exists());
    agent.finish(&home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn it_loads_its_session_in_a_new_process_and_after_a_kill_of_its_own() {
    let (server, root) = (model().await, tempfile::tempdir().unwrap());
    let home = goose(&server, root.path());
    let (agent, session) = opened(&home).await;
    told(&agent, &session, "hi").await;
    assert_eq!(told(&agent, &session, "how many").await, "2 questions");
    agent.finish(&home).await;
    let again = home.start();
    again.initialize().await;
    let updates = again.load(&session, &home.workspace()).await;
    assert_eq!(text_of(&updates), "Hello there.2 questions");
    // All of it is goose's own memory: nothing was told again.
    assert_eq!(told(&again, &session, "how many").await, "3 questions");
    for process in home.processes().into_iter().filter(|process| process.command.contains("bin/goose")) {
        let pid = rustix::process::Pid::from_raw(process.pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let runs = || home.processes().into_iter().any(|process| process.command.contains("bin/goose"));
    while runs() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // That its pipes are closed is known a moment later.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(told(&again, &session, "how many").await, "4 questions");
    again.finish(&home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn its_modes_and_models_are_options_of_the_session() {
    let (server, root) = (model().await, tempfile::tempdir().unwrap());
    let home = goose(&server, root.path());
    let (agent, session) = opened(&home).await;
    told(&agent, &session, "hi").await;
    let set = |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let answer = agent.client.expect("session/set_config_option", set("mode", "auto")).await;
    let options = answer["configOptions"].as_array().unwrap();
    let ids: Vec<&str> = options.iter().filter_map(|option| option["id"].as_str()).collect();
    assert!(ids.contains(&"mode") && ids.contains(&"agent.provider"), "{ids:?}");
    // As its model counted, and with its own commands beside ours.
    let updates = agent.client.updates(&session);
    let used = updates.iter().rfind(|update| update["sessionUpdate"] == "usage_update").unwrap();
    let step = &used["_meta"]["attache"]["stepTokens"];
    assert_eq!((&step["input"], &step["output"]), (&json!(10), &json!(5)), "{used}");
    let commands = |update: &&Value| update["sessionUpdate"] == "available_commands_update";
    let received = agent.client.received();
    let updates: Vec<&Value> = received.iter().map(|message| &message["params"]["update"]).collect();
    let listed = updates.into_iter().rfind(commands).unwrap()["availableCommands"].as_array().unwrap();
    let names: Vec<&str> = listed.iter().filter_map(|command| command["name"].as_str()).collect();
    assert!(names.contains(&"goal") && names.contains(&"agent.compact"), "{names:?}");
    // In its mode `auto` nothing is asked.
    let said = told(&agent, &session, "run it").await;
    assert!(said.contains("done"), "{said}");
    assert!(!agent.client.received().iter().any(is_question));
    agent.finish(&home).await;
}

#[tokio::test]
async fn the_chat_talks_to_it_by_its_command() {
    let (server, root) = (model().await, tempfile::tempdir().unwrap());
    let mut home = Home::new(env!("CARGO_BIN_EXE_attache"), "");
    for (name, value) in variables(&server, root.path()) {
        home = home.with_variable(name, &value);
    }
    let line = format!("'{}' acp", program());
    let chat = |words: &'static str, more: &'static [&'static str]| {
        let mut command = home.command();
        command.args(["chat", "-p", words, "--agent-command", &line]).args(more);
        command.stdin(std::process::Stdio::null());
        async move { command.output().await.unwrap() }
    };
    let ran = chat("hi", &[]).await;
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "Hello there.\n");
    // Nobody is there who could allow a command.
    let ran = chat("run it", &["--output", "json"]).await;
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let object: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(object["denied"][0]["title"], "shell · echo hi > out.txt; echo done");
    let ran = chat("how many", &["--continue"]).await;
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.ends_with(" questions\n") && said != "1 questions\n", "{ran:?}");
    let ran = chat("hi", &["--agent", "chat"]).await;
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(home.orphans(), []);
}
