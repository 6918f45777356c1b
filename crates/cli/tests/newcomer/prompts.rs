//! The same mistakes as an editor meets them: in the answer to a prompt.

use crate::stage::{CANARY, address_of_nobody, chat_server, newcomer, refusing_server, says, write_config};

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
