//! `attache models` with something to show: a vendor with a key, a server on this machine, a gateway without a
//! list.

use attache_testkit::http_server::{Answer, HttpServer};
use serde_json::json;

use crate::stage::{chat_server, newcomer, run, says, write_config};

#[tokio::test]
async fn a_vendor_with_a_key_shows_its_models_with_sizes_prices_and_what_they_take() {
    let home = newcomer().with_variable("ANTHROPIC_API_KEY", "sk-x");
    let said = run(&home, "models").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(
        &said.answer,
        &[
            "Model of new sessions: anthropic/",
            "(the first available one)",
            "anthropic · key from ANTHROPIC_API_KEY",
        ],
    );
    let model = said.answer.lines().find(|line| line.starts_with("  claude")).unwrap();
    assert!(
        model.contains('$') && model.contains("images") && (model.contains('k') || model.contains('M')),
        "{model}"
    );
    for line in said.answer.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let all = run(&home, "models anthropic").await;
    assert!(all.answer.lines().count() > 3 && !all.answer.contains(" more: attache models"), "{}", all.all());
    let other = run(&home, "models openai").await;
    assert_eq!(other.code, Some(0));
    says(&other.answer, &["openai · no key: set OPENAI_API_KEY", "gpt-"]);
}

#[tokio::test]
async fn a_server_of_this_machine_is_found_and_used_when_there_is_no_key() {
    let server = chat_server().await;
    let home = newcomer().with_variable("VLLM_BASE_URL", &format!("{}/v1", server.url()));
    let said = run(&home, "models").await;
    says(
        &said.answer,
        &["Model of new sessions: vllm/qwen3-coder", "vllm · at http://127.0.0.1:", "  qwen3-coder", "66k"],
    );
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let answer = agent.prompt(&session, "hi").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    agent.finish(&home).await;
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(&said.answer, &["ok    key            vllm: no key needed", "ok    endpoint", "attache init"]);
}

#[tokio::test]
async fn a_key_decides_the_default_and_a_configured_server_joins_when_it_has_answered() {
    let server = chat_server().await;
    let home = newcomer().with_variable("ANTHROPIC_API_KEY", "sk-x");
    let provider =
        format!("[providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n", server.url());
    write_config(&home, &provider);
    let agent = home.start();
    agent.initialize().await;
    server.wait_for_requests(1).await;
    let session = agent.new_session(&home.workspace()).await;
    let current = || {
        let messages = format!("{:?}", agent.client.received());
        (messages.contains("local/qwen3-coder"), messages)
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !current().0 {
        assert!(std::time::Instant::now() < deadline, "{}", current().1);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let model = json!({"sessionId": session, "configId": "model", "value": "local/qwen3-coder"});
    agent.client.expect("session/set_config_option", model).await;
    agent.prompt(&session, "hi").await.unwrap();
    agent.finish(&home).await;
    let said = run(&home, "models").await;
    says(
        &said.answer,
        &["Model of new sessions: anthropic/claude-sonnet-5", "local · at http://127.0.0.1:", "qwen3-coder"],
    );
}

#[tokio::test]
async fn a_configured_model_that_is_not_listed_is_a_slip() {
    let server = chat_server().await;
    let home = newcomer().with_variable("VLLM_BASE_URL", &format!("{}/v1", server.url()));
    write_config(&home, "model = \"vllm/qwen3-codr\"\n");
    let said = run(&home, "models").await;
    says(&said.answer, &["vllm/qwen3-codr (", "), but vllm does not list it; did you mean qwen3-coder?"]);
    let listed = run(&home, "models vllm").await;
    says(&listed.answer, &["Columns: context in tokens"]);
}

#[tokio::test]
async fn a_configured_model_of_a_server_here_has_the_size_the_server_says_from_the_start() {
    let server = chat_server().await;
    let home = newcomer().with_variable("ANTHROPIC_API_KEY", "sk-x");
    let config = format!(
        "model = \"local/qwen3-coder\"\n[providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n",
        server.url()
    );
    write_config(&home, &config);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "hi").await.unwrap();
    let usage = agent
        .client
        .received()
        .into_iter()
        .find(|message| message["params"]["update"]["sessionUpdate"] == "usage_update");
    assert_eq!(usage.unwrap()["params"]["update"]["size"], 65_536);
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_configured_model_is_used_as_it_is_and_stated_sizes_win() {
    let server = chat_server().await;
    let home = newcomer();
    write_config(
        &home,
        &format!(
            "model = \"gate/qwen3-coder\"\n[providers.gate]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n\
             [providers.gate.models.qwen3-coder]\ncontext = 32768\nimages = true\nprice = {{ input = 0.5, output = 2 }}\n",
            server.url()
        ),
    );
    let said = run(&home, "models gate").await;
    says(&said.answer, &["gate · at http://127.0.0.1:", "qwen3-coder", "33k", "$0.5 $2", "images"]);
    let asked = server.requests().len();
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "hi").await.unwrap();
    agent.finish(&home).await;
    assert_eq!(server.requests().last().unwrap().json()["model"], "qwen3-coder");
    let is_list = |path: &str| path.ends_with("/models");
    assert!(
        !server.requests()[asked..].iter().any(|request| is_list(&request.path)),
        "what is stated is not asked"
    );
}

#[tokio::test]
async fn a_server_without_a_list_takes_any_name() {
    let server = HttpServer::in_order([Answer::json(404, &json!({"detail": "Not Found"}))]).await;
    let home = newcomer();
    write_config(
        &home,
        &format!("[providers.gate]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n", server.url()),
    );
    let said = run(&home, "models gate").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(&said.remarks, &["/v1/models", "status 404"]);
    write_config(
        &home,
        &format!(
            "model = \"gate/x\"\n[providers.gate]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n",
            server.url()
        ),
    );
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "a list is not needed, an answer is: {}", said.all());
    says(
        &said.answer,
        &["warn  model", "is not in the catalogue", "warn  endpoint", "it usually ends with /v1"],
    );
}

/// A model is not announced as that of new sessions without a word if its server is down, stated or not.
#[tokio::test]
async fn a_model_that_can_not_be_used_is_not_announced_as_one_that_can() {
    let nobody = crate::stage::address_of_nobody();
    let own = format!("[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{nobody}/v1\"\n");
    let stated = "[providers.own.models.m]\ncontext = 9000\n";
    for config in [format!("model = \"own/m\"\n{own}"), format!("{own}{stated}")] {
        let home = newcomer();
        write_config(&home, &config);
        let said = run(&home, "models").await;
        says(
            &said.answer,
            &[
                "Model of new sessions: own/m (",
                ", but own can't be used now: see below",
                &format!("  own        nothing answers at {nobody}/v1/models"),
                "→ start the server, or correct base_url of [providers.own]",
            ],
        );
        assert!(!said.answer.contains("own · at"), "{}", said.all());
    }
    let home = newcomer();
    write_config(&home, "model = \"anthropic/claude-sonnet-5\"\n");
    let said = run(&home, "models").await;
    says(&said.answer, &["claude-sonnet-5 (", ", but anthropic can't be used now: see below"]);
}

/// The first-run text is for users who have configured nothing.
#[tokio::test]
async fn a_configured_provider_that_failed_is_named_with_its_reason() {
    let server = chat_server().await;
    let home = newcomer();
    write_config(
        &home,
        &format!("[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n", server.url()),
    );
    for line in ["models", "models own", "doctor"] {
        let said = run(&home, line).await;
        let likely =
            format!("the server has its models at {}/v1: set base_url of [providers.own]", server.url());
        says(&said.all(), &["own", &server.url(), "status 404", &likely]);
        assert!(!said.all().contains("ANTHROPIC_API_KEY, OPENAI_API_KEY"), "{}", said.all());
    }
    let said = run(&home, "models").await;
    says(&said.answer, &["No model is available: own can't be used, see below."]);
}
