//! No key, no server, no configuration; and names that do not exist.

use serde_json::json;

use crate::stage::{newcomer, run, says, write_config};

const WAYS: [&str; 3] = ["ANTHROPIC_API_KEY", "attache auth login", "ollama"];

#[tokio::test]
async fn without_anything_the_editor_is_told_the_three_ways() {
    let home = newcomer();
    let agent = home.start();
    let answer = agent.initialize().await;
    assert!(answer["authMethods"].as_array().is_some_and(|methods| !methods.is_empty()), "{answer}");
    assert!(answer["agentCapabilities"]["auth"]["logout"].is_object(), "{answer}");
    let params = json!({"cwd": home.workspace(), "mcpServers": []});
    let error = agent.client.request("session/new", params).await.unwrap_err();
    assert_eq!(error.code, -32000);
    says(&error.message, &WAYS);
    agent.finish(&home).await;
}

#[tokio::test]
async fn without_anything_models_says_why_for_each_provider_within_eighty_columns() {
    let home = newcomer();
    let said = run(&home, "models").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(&said.answer, &WAYS);
    says(
        &said.answer,
        &[
            "No model is available yet",
            "Not usable now",
            "anthropic  no key: set ANTHROPIC_API_KEY, or `attache auth login anthropic`",
            "azure      no address: set AZURE_BASE_URL",
            "ollama     no answer at http://127.0.0.1:",
        ],
    );
    let (_, table) = said.answer.split_once("Not usable now\n").unwrap();
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[tokio::test]
async fn without_anything_doctor_fails_and_says_the_three_ways() {
    let home = newcomer();
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(&said.answer, &WAYS);
    says(&said.answer, &["FAIL  model", "ok    configuration  none (", "ok    store", "One thing is wrong."]);
    says(
        &said.answer,
        &["ok    web search     none; for one, write web_search.provider = \"brave\" (or tavily, "],
    );
}

#[tokio::test]
async fn a_configured_model_without_a_key_names_its_variable_and_its_page() {
    let home = newcomer();
    write_config(&home, "model = \"groq/some-model\"\n");
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.answer,
        &[
            "FAIL  key            groq/some-model can't be used: no key: set GROQ_API_KEY, or `attache auth login groq`",
            "→ get a key at https://console.groq.com/keys",
        ],
    );
}

#[tokio::test]
async fn a_provider_that_does_not_exist_is_answered_with_the_nearest_one() {
    let home = newcomer();
    for line in ["models antropic", "auth login antropic", "auth logout antropic", "acp --model antropic/x"] {
        let said = run(&home, line).await;
        // An option that can't be right is wrong usage.
        let code = if line.contains("--model") { 2 } else { 1 };
        assert_eq!(said.code, Some(code), "{line}: {}", said.all());
        assert_eq!(said.answer, "", "{line}");
        says(&said.remarks, &["did you mean `anthropic`?", "known: anthropic, openai, gemini"]);
    }
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_told_by_doctor_too() {
    let home = newcomer();
    write_config(&home, "[providers.opnai]\n\n[providers.groq]\nbase_url = \"groq.com\"\n");
    for line in ["doctor", "models", "acp"] {
        let said = run(&home, line).await;
        assert_eq!(said.code, Some(1), "{line}: {}", said.all());
        let told = if line == "doctor" { &said.answer } else { &said.remarks };
        says(
            told,
            &[
                "config.toml:1: `providers.opnai`",
                "did you mean `openai`?",
                "config.toml:4: `providers.groq.base_url`",
            ],
        );
    }
}
