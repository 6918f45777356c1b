//! P6: nothing before `initialize`, one `initialize` only, the version negotiated down and never echoed.

use serde_json::{Value, json};

use crate::methods::{Sample, samples};
use crate::stage::Stage;

#[tokio::test]
async fn every_method_is_refused_before_initialize_and_nothing_happens() {
    let stage = Stage::silent();
    for Sample { method, params, .. } in samples(&stage.home.workspace(), "ses_x") {
        if method == "initialize" {
            continue;
        }
        let error = stage.refused(method, params).await;
        assert_eq!(error.code, -32600, "{method}: {error:?}");
        assert!(error.message.contains("initialize"), "{method}: {}", error.message);
    }
    stage.agent.client.notify("session/cancel", json!({"sessionId": "ses_x"}));
    stage.agent.initialize().await;
    assert_eq!(stage.rows().sessions, 0);
    let session = stage.agent.new_session(&stage.home.workspace()).await;
    assert!(session.starts_with("ses_"), "{session}");
    stage.finish().await;
}

#[tokio::test]
async fn a_second_initialize_is_an_error_and_changes_nothing() {
    let (stage, session) = Stage::with_session().await;
    let error = stage.refused("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    assert_eq!(error.code, -32600, "{error:?}");
    assert!(error.message.contains("already"), "{}", error.message);
    assert!(stage.agent.prompt(&session, "hi").await.is_ok());
    stage.finish().await;
}

#[tokio::test]
async fn versions_are_negotiated_down() {
    for version in [0, 1, 2, 65_535] {
        let stage = Stage::silent();
        let answer = stage.agent.client.expect("initialize", json!({"protocolVersion": version})).await;
        assert_eq!(answer["protocolVersion"], 1, "client says {version}");
        assert_eq!(answer["agentInfo"]["name"], "attache");
        stage.finish().await;
    }
}

#[tokio::test]
async fn a_version_that_is_none_is_named_and_initialize_can_be_tried_again() {
    let stage = Stage::silent();
    for version in
        [json!("x"), json!("1"), Value::Null, json!(-1), json!(65_536), json!(1.5), json!([1]), json!({})]
    {
        let error = stage.refused("initialize", json!({"protocolVersion": version})).await;
        assert_eq!(error.code, -32602, "{version}: {error:?}");
        assert!(error.message.contains("protocolVersion"), "{version}: {}", error.message);
    }
    let error = stage.refused("initialize", json!({})).await;
    assert!(error.code == -32602 && error.message.contains("protocolVersion"), "{error:?}");
    stage.agent.initialize().await;
    stage.finish().await;
}

/// Fields with a default fall back to it when they make no sense.
#[tokio::test]
async fn bad_capabilities_fall_back() {
    for capabilities in
        [json!("x"), json!(null), json!([]), json!({"fs": 7, "terminal": "yes", "unheard": {}})]
    {
        let stage = Stage::silent();
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": 5});
        stage.agent.client.expect("initialize", params).await;
        stage.finish().await;
    }
}
