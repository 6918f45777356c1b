//! What a model's server is sent by the binary: whole bodies, laid out for reading, and what the fixed part of
//! them costs.
//!
//! `requests/NAME.json` is a body. `UPDATE_EXPECT=1` rewrites them; read them before you commit them. A case of
//! one's own: a conversation as `Case::new(answers)`, its prompts, and a name for each body that matters.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod forty_turns;

use std::path::Path;

use attache_testkit::binary::Home;
use attache_testkit::http_server::{Answer, HttpServer};
use serde_json::{Value, json};

/// What the contract allows the system prompt, and the first request with every tool.
const SYSTEM_PROMPT_BYTES: usize = 3_500;
const FIRST_REQUEST_BYTES: usize = 12_000;

/// A home whose only model answers from here.
struct Case {
    server: HttpServer,
    home: Home,
}

impl Case {
    async fn new(dialect: &str, answers: Vec<Answer>) -> Self {
        Self::with(dialect, answers, 100_000, "").await
    }

    /// With another context, and more lines of configuration.
    async fn with(dialect: &str, answers: Vec<Answer>, context: u64, more: &str) -> Self {
        let server = HttpServer::in_order(answers).await;
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), "").with_variable("MOCK_KEY", "sk-0123456789");
        // Every tool is offered: the model sees pictures, and somebody searches.
        let config = format!(
            "model = \"mock/model-1\"\n{more}\n[web_search]\nprovider = \"searxng\"\nbase_url = \"{url}\"\n\n\
             [providers.mock]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key_env = \"MOCK_KEY\"\n\n\
             [providers.mock.models.\"model-1\"]\ncontext = {context}\nmax_output = 4000\nimages = true\n",
            url = server.url()
        );
        std::fs::write(home.home().join("config.toml"), config).unwrap();
        Self { server, home }
    }

    /// The bodies that were sent, in order.
    fn bodies(&self) -> Vec<Vec<u8>> {
        self.server.requests().into_iter().map(|request| request.body).collect()
    }

    /// Everything that differs from run to run has a name.
    fn named(&self, body: &[u8], session: &str) -> Value {
        let mut text = String::from_utf8(body.to_vec()).unwrap();
        for (real, name) in [
            (self.home.workspace().display().to_string(), "$ROOT"),
            (self.home.home().display().to_string(), "$HOME"),
            (session.to_owned(), "$SESSION"),
        ] {
            text = text.replace(&real, name);
        }
        let mut body: Value = serde_json::from_str(&text).unwrap();
        name_lines(&mut body);
        body
    }
}

/// What the machine and the day say of themselves.
fn name_lines(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("# Environment") => {
            let named = |line: &str| match line.split_once(": ") {
                Some((label @ ("Platform" | "Date"), _)) => format!("{label}: …"),
                _ => line.to_owned(),
            };
            *text = text.split('\n').map(named).collect::<Vec<_>>().join("\n");
        }
        Value::Array(items) => items.iter_mut().for_each(name_lines),
        Value::Object(fields) => fields.values_mut().for_each(name_lines),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check_snapshot(name: &str, body: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    let path = folder.join(format!("{name}.json"));
    let shown = format!("{body:#}\n");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{}", path.display());
}

/// One step of chat completions.
fn step(delta: &Value, finish: &str) -> Answer {
    let said = json!({ "choices": [{ "index": 0, "delta": delta }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
    Answer::events(format!("data: {said}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
}

#[tokio::test]
async fn the_first_two_requests_of_a_session() {
    let answers = vec![
        step(&call("call_1", "read", &json!({ "path": "notes.txt" })), "tool_calls"),
        step(&json!({ "content": "Milk." }), "stop"),
    ];
    let case = Case::new("openai-chat", answers).await;
    std::fs::write(case.home.workspace().join("notes.txt"), "buy milk\n").unwrap();
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    agent.prompt(&session, "What do I have to buy?").await.unwrap();
    agent.finish(&case.home).await;
    let bodies = case.bodies();
    assert_eq!(bodies.len(), 2);
    check_snapshot("first", &case.named(&bodies[0], &session));
    check_snapshot("second", &case.named(&bodies[1], &session));
}

/// What the sandbox does to a command is told behind its output, with what to do.
#[tokio::test]
async fn the_model_is_told_what_the_sandbox_kept_from_its_commands() {
    let commands = [
        (
            json!({ "command": "getent hosts registry.invalid || echo 'curl: (6) Could not resolve host: registry.invalid'" }),
            "with network: true",
        ),
        (
            json!({ "command": "python3 -c \"open('/etc/attache-test', 'w')\"" }),
            "that the user granted and to $TMPDIR only",
        ),
        (json!({ "command": "echo granted", "network": true }), "granted\n[exit 0]"),
    ];
    let calls = commands.iter().enumerate().map(|(number, (arguments, _))| {
        step(&call(&format!("call_{number}"), "bash", arguments), "tool_calls")
    });
    let answers = calls.chain([step(&json!({ "content": "I see." }), "stop")]).collect();
    let case = Case::new("openai-chat", answers).await;
    let agent = case.home.start_with(&["--sandbox", "require"]);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&case.home).await;
    agent.prompt(&session, "Try it").await.unwrap();
    agent.finish(&case.home).await;
    let bodies = case.bodies();
    for (number, (arguments, told)) in commands.iter().enumerate() {
        let body: Value = serde_json::from_slice(&bodies[number + 1]).unwrap();
        let mut results =
            body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
        let result = results.next_back().unwrap()["content"].as_str().unwrap().to_owned();
        assert!(result.contains(told), "{arguments}: {result}");
    }
}

#[tokio::test]
async fn the_fixed_part_of_a_request_is_small_in_every_dialect() {
    for dialect in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let refusal = Answer::json(400, &json!({ "error": { "message": "no" } }));
        let case = Case::new(dialect, vec![refusal]).await;
        let agent = case.home.start();
        let session = agent.open_session(&case.home).await;
        agent.prompt(&session, "Hello").await.unwrap_err();
        agent.finish(&case.home).await;
        let body = &case.bodies()[0];
        let sent: Value = serde_json::from_slice(body).unwrap();
        let system = longest_text(&sent);
        assert!(system.starts_with("You are attache"), "{dialect}: {system}");
        println!("{dialect}: {} bytes, the system prompt {}", body.len(), system.len());
        assert!(system.len() <= SYSTEM_PROMPT_BYTES, "{dialect}: {} bytes\n{system}", system.len());
        assert!(body.len() <= FIRST_REQUEST_BYTES, "{dialect}: {} bytes", body.len());
    }
}

#[tokio::test]
async fn instructions_of_user_and_project_are_part_of_every_request() {
    let answers = (0..2).map(|_| step(&json!({ "content": "Yes." }), "stop")).collect();
    let case = Case::new("openai-chat", answers).await;
    std::fs::write(case.home.home().join("AGENTS.md"), "Answer in one word.\n").unwrap();
    std::fs::write(case.home.workspace().join("AGENTS.md"), "Use tabs. See @docs/style.md.\n").unwrap();
    std::fs::create_dir(case.home.workspace().join("docs")).unwrap();
    std::fs::write(case.home.workspace().join("docs/style.md"), "No abbreviations.\n").unwrap();
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    agent.prompt(&session, "Do you know the rules?").await.unwrap();
    std::fs::write(case.home.workspace().join("docs/style.md"), "Short names.\n").unwrap();
    agent.prompt(&session, "And now?").await.unwrap();
    agent.finish(&case.home).await;
    let bodies = case.bodies();
    let [first, second] = [0, 1].map(|index| case.named(&bodies[index], &session)["messages"].clone());
    let section = "# Project instructions\nOf the user and of the project, for every agent. Follow them; where two differ, the \
                   later one and what the user says now count.\n\
                   <instructions file=\"$HOME/AGENTS.md\">\nAnswer in one word.\n</instructions>\n\
                   <instructions file=\"$ROOT/AGENTS.md\">\nUse tabs. See @docs/style.md.\n</instructions>\n\
                   <instructions file=\"$ROOT/docs/style.md\">\nNo abbreviations.\n</instructions>\n\n# Environment\n";
    let system = longest_text(&first[0]);
    assert!(system.contains(section), "{system}");
    assert_eq!(first[0], second[0], "the system prompt stays the same to the byte");
    let told = serde_json::to_string(&second).unwrap();
    assert!(told.contains("<instructions_changed>") && told.contains("Short names."), "{told}");
}

/// 8,000 tokens in all: what is nearest stays, and who reads and who looks into the log learn what does not.
#[tokio::test]
async fn instructions_beyond_their_room_are_cut_from_the_farthest_and_told() {
    let case = Case::new("openai-chat", vec![step(&json!({ "content": "Yes." }), "stop")]).await;
    let rules = |whose: &str| (0..1_000).map(|rule| format!("{whose} rule {rule:04}.\n")).collect::<String>();
    std::fs::write(case.home.home().join("AGENTS.md"), rules("Farthest")).unwrap();
    std::fs::write(case.home.workspace().join("AGENTS.md"), rules("Nearest")).unwrap();
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    agent.prompt(&session, "Do you know the rules?").await.unwrap();
    let told: String = agent
        .client
        .updates(&session)
        .iter()
        .filter_map(|update| update["content"]["text"].as_str())
        .collect();
    agent.finish(&case.home).await;
    let far = case.home.home().join("AGENTS.md");
    let said = format!("shortened or left out: {}", far.display());
    assert!(told.contains("The project's instructions are too long: 2 of them fit"), "{told}");
    assert!(told.contains(&said), "{told}");
    let log = std::fs::read_to_string(case.home.home().join("logs/attache.log")).unwrap();
    assert!(log.contains("The project's instructions are too long") && log.contains(&said), "{log}");
    let body: Value = serde_json::from_slice(&case.bodies()[0]).unwrap();
    let system = longest_text(&body);
    assert_eq!(system.matches("Nearest rule ").count(), 1_000);
    let kept = system.matches("Farthest rule ").count();
    assert!((1..1_000).contains(&kept), "{kept}");
    assert!(
        system.contains("Farthest rule 0000.") && system.len() < 8_000 * 4 + SYSTEM_PROMPT_BYTES,
        "{}",
        system.len()
    );
}

/// Instructions at three levels and 200 skills: the prompt is as large as its parts may be, and stays the same.
#[tokio::test]
async fn a_project_with_three_levels_of_instructions_and_200_skills() {
    let answers = vec![
        step(&call("call_1", "write", &json!({ "path": "app/api/new.txt", "content": "x\n" })), "tool_calls"),
        step(&call("call_2", "skill", &json!({ "name": "skill-007" })), "tool_calls"),
        step(&json!({ "content": "Yes." }), "stop"),
        step(&json!({ "content": "Still." }), "stop"),
    ];
    let case = Case::new("openai-chat", answers).await;
    let root = case.home.workspace();
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    std::fs::write(case.home.home().join("AGENTS.md"), "Answer in one word.\n").unwrap();
    put("AGENTS.md", "Use tabs.\n");
    put("app/AGENTS.md", "The app has no globals.\n");
    put("app/api/AGENTS.md", "Every route has a test.\n");
    for number in 0..200 {
        let about = "Use it when the user asks for something of this kind, and read what is beside it first.";
        let text = format!(
            "---\nname: skill-{number:03}\ndescription: {number}. {about}\n---\nSteps of {number}.\n"
        );
        put(&format!(".agents/skills/skill-{number:03}/SKILL.md"), &text);
    }
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    agent.client.always_choose("allow_once");
    agent.prompt(&session, "Do you know the rules?").await.unwrap();
    agent.finish(&case.home).await;
    let agent = case.home.start();
    agent.initialize().await;
    agent.load(&session, &root).await;
    agent.prompt(&session, "Still?").await.unwrap();
    agent.finish(&case.home).await;
    let bodies: Vec<Value> = case.bodies().iter().map(|body| case.named(body, &session)).collect();
    let messages: Vec<&Value> = bodies.iter().map(|body| &body["messages"]).collect();
    let system = longest_text(&messages[0][0]);
    check_text_snapshot("three_levels_200_skills", system);
    assert!(messages.iter().all(|sent| sent[0] == messages[0][0]), "the same after a restart, too");
    let last = serde_json::to_string(messages.last().unwrap()).unwrap();
    for told in ["The app has no globals.", "Every route has a test.", "Steps of 7."] {
        assert_eq!(last.matches(told).count(), 1, "{told}: {last}");
    }
    assert!(bodies[0]["tools"].to_string().contains("\"skill\""));
    println!("system prompt {} bytes", system.len());
}

fn check_text_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/requests/{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
}

fn longest_text(value: &Value) -> &str {
    let inner: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().map(longest_text).collect(),
        Value::Object(fields) => fields.values().map(longest_text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    inner.into_iter().max_by_key(|text| text.len()).unwrap_or_default()
}

#[tokio::test]
async fn a_plain_server_needs_no_certificates_and_one_with_tls_says_which_are_missing() {
    let mut case = Case::new("openai-chat", vec![step(&json!({ "content": "Hello." }), "stop")]).await;
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        case.home = case.home.with_variable(name, "/nonexistent");
    }
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    agent.prompt(&session, "Hello").await.unwrap();
    agent.finish(&case.home).await;
    let config = case.home.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("base_url = \"http://", "base_url = \"https://")).unwrap();
    let agent = case.home.start();
    let session = agent.open_session(&case.home).await;
    let error = agent.prompt(&session, "Hello").await.unwrap_err();
    assert!(error.message.contains("SSL_CERT_FILE"), "{error:?}");
    agent.finish(&case.home).await;
    assert_eq!(case.bodies().len(), 1);
}
