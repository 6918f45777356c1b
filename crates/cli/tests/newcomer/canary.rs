//! A key that must be nowhere: not in the logs, the trace, the database, an error, or the environment of a
//! command.

use attache_testkit::http_server::{Answer, HttpServer, Request};
use serde_json::json;

use crate::stage::{CANARY, files_below, newcomer, run};

/// Has the model run `env`, then fails in words that repeat the key.
fn nosy(request: &Request) -> Answer {
    match request.path.as_str() {
        "/v1/models" => Answer::json(200, &json!({"data": [{"id": "m", "object": "model"}]})),
        _ if request.text().contains("tool_call_id") => {
            let key = request.header("authorization").unwrap_or_default();
            Answer::json(403, &json!({"error": {"message": format!("go away, {key}"), "type": "forbidden"}}))
        }
        _ => {
            let arguments = json!({"command": "env; tr '\\0' '\\n' < /proc/$$/environ; set"}).to_string();
            let call = json!({"id": "c1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant",
                "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}]},
                "finish_reason": null}]});
            let end =
                json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
            Answer::events(format!("data: {call}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
        }
    }
}

#[tokio::test]
async fn a_key_is_sent_to_its_provider_and_is_nowhere_else() {
    let server = HttpServer::start(nosy).await;
    let home = newcomer()
        .with_variable("OPENROUTER_API_KEY", CANARY)
        .with_variable("OPENROUTER_BASE_URL", &format!("{}/v1", server.url()))
        .with_variable("ATTACHE_LOG", "trace");
    let trace = home.workspace().join("trace.jsonl");
    let agent = home.start_with(&["--trace", trace.to_str().unwrap(), "-vvv"]);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    let error = agent.prompt(&session, "look around").await.unwrap_err();
    assert!(error.message.contains("go away, Bearer [key]"), "{error:?}");
    let received = format!("{:?}", agent.client.received());
    assert!(received.contains("PATH="), "the command did run");
    agent.finish(&home).await;
    let doctor = run(&home, "doctor -vvv").await;
    let models = run(&home, "models -vvv").await;
    let printed = run(&home, "--print-config").await;
    let sent = server.requests();
    assert!(sent.iter().any(|request| request.header("authorization") == Some(&format!("Bearer {CANARY}"))));
    let mut places: Vec<(String, Vec<u8>)> = files_below(home.home().parent().unwrap());
    for (place, text) in [
        ("the wire", received),
        ("doctor", doctor.all()),
        ("models", models.all()),
        ("--print-config", printed.all()),
    ] {
        places.push((place.to_owned(), text.into_bytes()));
    }
    assert!(places.iter().any(|(place, _)| place.ends_with("sessions.db")), "the database was looked at");
    assert!(places.iter().any(|(place, _)| place.ends_with("trace.jsonl")), "the trace was looked at");
    for (place, bytes) in places {
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "the key is in {place}");
    }
}
