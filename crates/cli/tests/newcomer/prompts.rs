//! The same mistakes as an editor meets them: in the answer to a prompt.

use std::time::Duration;

use attache_testkit::http_server::{Answer, HttpServer, Piece, Request};
use serde_json::json;

use crate::stage::{
    CANARY, address_of_nobody, chat, chat_server, newcomer, refusing_server, says, write_config,
};

#[tokio::test]
async fn a_wrong_key_answers_the_prompt_with_what_to_do() {
    let server = refusing_server().await;
    let home = newcomer()
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CANARY);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert_eq!(error.code, -32000, "{error:?}");
    says(
        &error.message,
        &[
            "invalid x-api-key: [key]",
            "ANTHROPIC_API_KEY",
            "attache auth login anthropic",
            "https://platform.claude.com",
        ],
    );
    assert!(!error.message.contains(CANARY));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_model_that_does_not_exist_answers_in_the_words_of_the_server_and_says_where_to_look() {
    let server = chat_server().await;
    let home = newcomer().with_variable("OLLAMA_BASE_URL", &format!("{}/v1", server.url()));
    write_config(&home, "model = \"ollama/nope\"\n");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    says(&error.message, &["The model `nope` does not exist.", "attache models ollama"]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_that_is_down_answers_with_its_address_and_where_to_look() {
    let home = newcomer();
    let nobody = address_of_nobody();
    write_config(
        &home,
        &format!(
            "model = \"local/m\"\n[providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{nobody}/v1\"\n"
        ),
    );
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    says(&error.message, &[&format!("local can't be reached at {nobody}/v1"), "attache doctor"]);
    agent.finish(&home).await;
}

/// Lists its models only after a while.
async fn slow_server(time: Duration) -> HttpServer {
    HttpServer::start(move |request: &Request| {
        let mut answer = chat(request);
        if request.method == "GET" {
            answer.body.insert(0, Piece::Wait(time));
        }
        answer
    })
    .await
}

#[tokio::test]
async fn a_server_that_lists_its_models_slowly_is_waited_for_if_there_is_no_other() {
    let server = slow_server(Duration::from_millis(1500)).await;
    let home = newcomer().with_variable("OLLAMA_BASE_URL", &format!("{}/v1", server.url()));
    let agent = home.start();
    let session = agent.open_session(&home).await;
    assert_eq!(agent.prompt(&session, "hi").await.unwrap()["stopReason"], "end_turn");
    agent.finish(&home).await;
}

#[tokio::test]
async fn what_a_server_says_too_late_for_one_session_counts_for_the_next() {
    let server = slow_server(Duration::from_secs(7)).await;
    let home = newcomer();
    let table = format!("[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n", server.url());
    write_config(&home, &table);
    let agent = home.start();
    agent.initialize().await;
    let new = || json!({"cwd": home.workspace(), "mcpServers": []});
    let error = agent.client.request("session/new", new()).await.unwrap_err();
    says(&error.message, &["own can't be used", "did not answer within", "try again"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let session = agent.new_session(&home.workspace()).await;
    assert_eq!(agent.prompt(&session, "hi").await.unwrap()["stopReason"], "end_turn");
    let lists = server.requests().iter().filter(|request| request.path == "/v1/models").count();
    assert!(lists <= 2, "one question at a time: {lists}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn an_address_with_a_doubled_version_is_answered_with_the_right_one() {
    let server = HttpServer::start(|request: &Request| match request.path.strip_prefix("/v1/v1") {
        Some(_) => Answer::json(404, &json!({"detail": "Not Found"})),
        None => chat(request),
    })
    .await;
    let home = newcomer();
    let table = format!(
        "model = \"own/qwen3-coder\"\n[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1/v1\"\n",
        server.url()
    );
    write_config(&home, &table);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    let right = format!("{}/v1: set base_url of [providers.own] to it", server.url());
    says(&error.message, &["status 404", &right]);
    assert!(!error.message.contains("dialect ="), "{}", error.message);
    agent.finish(&home).await;
}
