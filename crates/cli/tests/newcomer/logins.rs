//! Logging in and out from an editor, while it runs.

use attache_testkit::http_server::HttpServer;
use serde_json::json;

use crate::stage::{CANARY, anthropic, newcomer, run_with, says};

#[tokio::test]
async fn a_key_that_is_stored_meanwhile_is_found_used_and_forgotten_again() {
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    // Not on loopback as far as names go: then the vendor's key is needed.
    let home = newcomer().with_variable("ANTHROPIC_BASE_URL", &server.url());
    crate::stage::write_config(&home, "[providers.anthropic]\napi_key_env = \"NOT_SET_HERE\"\n");
    let agent = home.start();
    agent.initialize().await;
    let error = agent.client.request("authenticate", json!({"methodId": "stored-key"})).await.unwrap_err();
    assert_eq!(error.code, -32000);
    says(&error.message, &["attache auth login"]);
    let said = run_with(&home, "acp --login anthropic", CANARY).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    agent.client.expect("authenticate", json!({"methodId": "stored-key"})).await;
    let session = agent.new_session(&home.workspace()).await;
    let answer = agent.prompt(&session, "hi").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    let sent = server.requests();
    let sent = sent.iter().find(|request| request.path == "/v1/messages").unwrap();
    assert_eq!(sent.header("x-api-key"), Some(CANARY));
    agent.client.expect("logout", json!({})).await;
    let error = agent.prompt(&session, "hi again").await.unwrap_err();
    assert_eq!(error.code, -32000, "{error:?}");
    assert!(!std::fs::read_to_string(home.home().join("credentials.json")).unwrap().contains(CANARY));
    agent.finish(&home).await;
}
