//! Whole prompts as a collector sees them.

use std::collections::BTreeMap;

use attache_testkit::binary::Home;
use attache_testkit::client::Reply;
use attache_testkit::http_server::{Answer, HttpServer};
use serde_json::{Value, json};

use crate::receiver::{ReceivedSpan, Receiver, whole_traces};

const SCRIPT: &str = r#"
model narrow context=20000 max_output=1000
on "fill"
  call read {"path":"a.txt"}
  ---
  text "filled"
  usage input=19500 output=1
on "work"
  call id=missing read {"path":"missing.txt"}
  call id=written write {"path":"canary.txt","content":"canary content\n"}
  usage input=40 output=10
  ---
  text "the canary sings"
  usage input=50 output=5 cache_read=30
on "<conversation>"*
  text "canary note"
  usage input=9 output=3
on "Stop the work here"*
  text "canary note"
  usage input=9 output=3
on *
  text "fine"
"#;

fn home(receiver: &Receiver, more: &str) -> Home {
    let home =
        Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT).with_variable("COLLECTOR_KEY", "key-canary-1");
    home.write_config(&format!("[telemetry]\nendpoint = \"{}\"\n{more}\n", receiver.address));
    std::fs::write(home.workspace().join("a.txt"), "some text\n".repeat(200)).unwrap();
    home
}

/// Fills the window, then one turn with everything in it.
async fn work(home: &Home) {
    let agent = home.start_with(&["--model", "script/narrow"]);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(home).await;
    agent.prompt(&session, "fill").await.unwrap();
    agent.prompt(&session, "work").await.unwrap();
    agent.finish(home).await;
}

fn names(spans: &[ReceivedSpan]) -> BTreeMap<&str, usize> {
    let mut names = BTreeMap::new();
    for span in spans {
        *names.entry(span.name.as_str()).or_default() += 1;
    }
    names
}

#[tokio::test]
async fn a_prompt_with_tools_a_question_a_failure_and_a_compaction_is_one_whole_trace() {
    let receiver = Receiver::start().await;
    let home =
        home(&receiver, "headers = { x-key = \"Bearer ${COLLECTOR_KEY}\" }\nservice_name = \"my agent\"");
    work(&home).await;
    let spans = receiver.finish().await;
    let traces = whole_traces(&spans);
    assert_eq!(traces.len(), 2, "{:?}", traces.iter().map(|trace| names(trace)).collect::<Vec<_>>());
    let trace = &traces[1];
    let found = names(trace);
    let expected = [
        // One of them asks for the headings that the first summary did not have.
        ("chat narrow", 4),
        ("compaction.run", 1),
        ("permission.evaluate", 2),
        ("session.run", 2),
        ("session.turn", 1),
        ("tool.call", 2),
    ];
    assert_eq!(found, BTreeMap::from(expected), "{trace:#?}");
    let span = |name: &str, call: &str| {
        let of_call = |span: &&ReceivedSpan| call.is_empty() || span.text("gen_ai.tool.call.id") == call;
        trace.iter().filter(|span| span.name == name).find(of_call).unwrap()
    };
    let missing = span("tool.call", "missing");
    assert_eq!((missing.status, missing.text("error.type")), (2, "tool_error"), "{missing:#?}");
    let written = span("tool.call", "written");
    assert_eq!((written.status, written.text("gen_ai.tool.name")), (0, "write"));
    assert_eq!(span("permission.evaluate", "written").text("attache.permission.by"), "person");
    let compaction = span("compaction.run", "");
    let note = trace.iter().find(|span| span.parent == compaction.id).unwrap();
    assert_eq!((note.name.as_str(), note.kind), ("chat narrow", 3));
    assert_eq!(note.attributes["gen_ai.usage.input_tokens"], 9);
    let last = trace.iter().rfind(|span| span.name == "chat narrow").unwrap();
    assert_eq!(last.attributes["gen_ai.usage.input_tokens"], 80);
    assert_eq!(last.attributes["gen_ai.response.finish_reasons"], json!(["stop"]));
    for span in &spans {
        assert_eq!(
            (span.resource["service.name"].as_str(), span.scope.as_str()),
            (Some("my agent"), "attache")
        );
        assert_eq!(span.headers["x-key"], "Bearer key-canary-1");
        assert!(span.message.is_empty());
    }
    // The header holds one, and no span does.
    for span in &spans {
        let told = format!("{:?} {:?} {}", span.attributes, span.resource, span.name);
        assert!(!told.contains("canary") && !told.contains(home.workspace().to_str().unwrap()), "{told}");
    }
    assert!(!home.log().contains("key-canary"), "{}", home.log());
}

#[tokio::test]
async fn a_turn_that_another_process_ends_is_one_trace_all_the_same() {
    let receiver = Receiver::start().await;
    let home = home(&receiver, "");
    let agent = home.start();
    agent.client.set_policy(|_, _| Reply::Never);
    let session = agent.open_session(&home).await;
    let _unanswered = agent.start_prompt(&session, "work");
    let is_question = |message: &Value| message["method"] == "session/request_permission";
    agent.client.wait_for("the question", is_question).await;
    agent.finish(&home).await;
    let agent = home.start();
    agent.client.always_choose("allow_once");
    agent.initialize().await;
    agent.load(&session, &home.workspace()).await;
    agent.client.wait_for("the answer", |message| message.to_string().contains("the canary sings")).await;
    agent.finish(&home).await;
    let spans = receiver.finish().await;
    let [trace] = &whole_traces(&spans)[..] else { panic!("several traces: {spans:#?}") };
    assert_eq!(names(trace)["session.run"], 2, "{trace:#?}");
    assert_eq!(names(trace)["tool.call"], 2, "{trace:#?}");
}

#[tokio::test]
async fn content_goes_along_where_it_is_asked_for_and_secrets_do_not() {
    let receiver = Receiver::start().await;
    let home = home(&receiver, "content = true");
    let secret = format!("sk-ant-api03-{}", "aB3d".repeat(20));
    std::fs::write(home.workspace().join("a.txt"), format!("ANTHROPIC_API_KEY={secret}\nplain text\n"))
        .unwrap();
    work(&home).await;
    let spans = receiver.finish().await;
    whole_traces(&spans);
    let all = format!("{spans:?}");
    assert!(all.contains("canary content") && all.contains("the canary sings") && all.contains("plain text"));
    assert!(!all.contains(&secret), "a secret left");
    let written = spans.iter().find(|span| span.text("gen_ai.tool.call.id") == "written").unwrap();
    assert!(!written.text("gen_ai.tool.name").is_empty());
}

#[tokio::test]
async fn the_doctor_says_where_spans_go_and_what_is_missing() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let told = async |config: &str| {
        home.write_config(config);
        let output = home.command().arg("doctor").output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!told("").await.contains("telemetry"));
    let on = "[telemetry]\nendpoint = \"http://127.0.0.1:1\"\n";
    let said = told(on).await;
    assert!(
        said.contains("ok    telemetry      spans go to http://127.0.0.1:1/v1/traces, without content"),
        "{said}"
    );
    let said = told(&format!("{on}headers = {{ x-key = \"${{NOBODY_SET_THIS}}\" }}\n")).await;
    assert!(said.contains("warn  telemetry      the header x-key: NOBODY_SET_THIS is not set"), "{said}");
}

/// What another program's setup exported is no word of the user.
#[tokio::test]
async fn variables_alone_send_nothing_and_say_the_rest_once_it_is_wanted() {
    let server = HttpServer::start(|_| Answer { status: 200, headers: Vec::new(), body: Vec::new() }).await;
    for (switch, requests) in [(None, 0), (Some("false"), 0), (Some("true"), 1)] {
        let before = server.requests().len();
        let mut home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"fine\"\n")
            .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &server.url())
            .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b")
            .with_variable("OTEL_SERVICE_NAME", "ours")
            .with_variable("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test");
        if let Some(switch) = switch {
            home = home.with_variable("ATTACHE_TELEMETRY_ENABLED", switch);
        }
        let agent = home.start();
        let session = agent.open_session(&home).await;
        agent.prompt(&session, "hello").await.unwrap();
        agent.finish(&home).await;
        let came = server.requests().split_off(before);
        assert_eq!(came.len(), requests, "{switch:?}");
        let Some(request) = came.first() else { continue };
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        let header = |name: &str| request.headers.iter().find(|(known, _)| known == name).cloned();
        assert_eq!(header("x-team").unwrap().1, "a b");
        assert_eq!(header("content-type").unwrap().1, "application/json");
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert!(body.contains("\"ours\"") && body.contains("deployment.environment"), "{body}");
    }
}
