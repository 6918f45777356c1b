//! A configured provider that gives no models is named by `session/new`, with its address and what to do.

use attache_testkit::binary::Home;
use attache_testkit::http_server::{Answer, HttpServer, Request};
use serde_json::json;

use crate::stage::{address_of_nobody, chat_server, newcomer, run, says, write_config};

async fn refused(home: &Home) -> String {
    let agent = home.start();
    agent.initialize().await;
    let params = json!({"cwd": home.workspace(), "mcpServers": []});
    let error = agent.client.request("session/new", params).await.unwrap_err();
    assert_eq!(error.code, -32000);
    agent.finish(home).await;
    error.message
}

fn with_own(base_url: &str, more: &str) -> Home {
    let home = newcomer();
    let settings = format!("[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{base_url}\"\n{more}\n");
    write_config(&home, &settings);
    home
}

#[tokio::test]
async fn a_server_that_does_not_run_is_named() {
    let nobody = address_of_nobody();
    let told = refused(&with_own(&format!("{nobody}/v1"), "")).await;
    says(
        &told,
        &[
            &format!("own can't be used: nothing answers at {nobody}/v1/models"),
            "Start the server, or correct base_url of [providers.own]",
        ],
    );
    assert!(!told.contains("Set an API key variable"), "{told}");
}

#[tokio::test]
async fn an_address_without_its_version_is_named_with_the_right_one() {
    let server = chat_server().await;
    let told = refused(&with_own(&server.url(), "")).await;
    says(&told, &["own can't be used: ", &format!("The server has its models at {}/v1", server.url())]);
}

#[tokio::test]
async fn a_refused_key_is_named_with_where_it_comes_from() {
    let server =
        HttpServer::start(|_: &Request| Answer::json(401, &json!({"error": {"message": "invalid key"}})))
            .await;
    let home = with_own(&format!("{}/v1", server.url()), "api_key_env = \"OWN_KEY\"")
        .with_variable("OWN_KEY", "sk-wrong-0123456789");
    let told = refused(&home).await;
    says(&told, &["own can't be used: ", "status 401", "invalid key", "The key comes from OWN_KEY"]);
    let told = refused(&with_own(&format!("{}/v1", server.url()), "api_key_env = \"OWN_KEY\"")).await;
    says(&told, &["own can't be used: no key: set OWN_KEY, or `attache auth login own`"]);
}

#[tokio::test]
async fn a_server_without_models_is_named() {
    let server =
        HttpServer::start(|_: &Request| Answer::json(200, &json!({"object": "list", "data": []}))).await;
    let told = refused(&with_own(&format!("{}/v1", server.url()), "")).await;
    says(&told, &["own can't be used: ", "/v1 lists no models", "`model = \"own/NAME\"`"]);
}

/// What `session/new` says, `doctor` says, too.
#[tokio::test]
async fn a_server_that_only_a_variable_names_is_named_by_doctor_too() {
    let server = chat_server().await;
    for (address, problem) in [
        (format!("{}/v1", address_of_nobody()), "nothing answers at http://127.0.0.1:".to_owned()),
        (server.url(), format!("The server has its models at {}/v1", server.url())),
    ] {
        let home = newcomer().with_variable("OLLAMA_BASE_URL", &address);
        let told = refused(&home).await;
        says(&told, &["ollama can't be used: ", &problem]);
        says(&run(&home, "doctor").await.answer, &["ollama can't be used: ", &problem]);
    }
}
