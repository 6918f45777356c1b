//! `attache doctor` when something is wrong with the key, the server, the model, the store or the modes.

use std::os::unix::fs::PermissionsExt;

use crate::stage::{
    CANARY, address_of_nobody, chat_server, newcomer, refusing_server, run, says, write_config,
};

#[tokio::test]
async fn the_first_line_says_which_program_this_is() {
    let said = run(&newcomer(), "doctor").await;
    let first = said.answer.lines().next().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    assert!(first.starts_with(&format!("ok    installed      {version} (")), "{}", said.all());
    says(first, &[std::env::consts::ARCH, "built in a checkout; to renew it: pull, and build again"]);
    let said = run(&newcomer(), "--version").await;
    says(&said.answer, &[&format!("attache {version} ("), std::env::consts::ARCH]);
}

#[tokio::test]
async fn a_wrong_key_is_told_with_its_source() {
    let server = refusing_server().await;
    let home = newcomer()
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CANARY);
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.answer,
        &[
            "FAIL  key            anthropic: from ANTHROPIC_API_KEY, refused",
            "invalid x-api-key: [key]",
            "→ The key comes from ANTHROPIC_API_KEY: set it to a valid one, or unset it and run `attache auth login anthropic`.",
        ],
    );
    assert!(!said.all().contains(CANARY), "{}", said.all());
}

#[tokio::test]
async fn a_server_that_is_down_is_to_be_started() {
    let home = newcomer();
    let config = format!(
        "model = \"local/m\"\n[providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n",
        address_of_nobody()
    );
    write_config(&home, &config);
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.answer,
        &[
            "FAIL  endpoint       local: nothing answers at http://127.0.0.1:",
            "→ start the server, or correct base_url of [providers.local]",
        ],
    );
    let said = run(&home, "models").await;
    says(&said.answer, &["local      nothing answers at http://127.0.0.1:"]);
}

#[tokio::test]
async fn a_model_that_the_server_does_not_list_is_answered_with_the_nearest() {
    let server = chat_server().await;
    let home = newcomer().with_variable("OLLAMA_BASE_URL", &format!("{}/v1", server.url()));
    write_config(&home, "model = \"ollama/qwen3-codre\"\n");
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "the model does not answer: {}", said.all());
    says(
        &said.answer,
        &[
            "warn  model          ollama does not list `qwen3-codre`",
            "→ nearest there: qwen3-coder; all of them: attache models ollama",
            "FAIL  answer         ollama answered with status 404",
        ],
    );
}

#[tokio::test]
async fn the_model_is_asked_for_a_word() {
    let server = chat_server().await;
    let home = newcomer().with_variable("OLLAMA_BASE_URL", &format!("{}/v1", server.url()));
    write_config(&home, "model = \"ollama/qwen3-coder\"\n");
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(&said.answer, &["ok    disk", "MB free", "ok    answer         ollama/qwen3-coder answered after"]);
    assert!(server.requests().last().unwrap().text().contains("Answer with the word OK"));
}

#[tokio::test]
async fn an_address_that_misses_its_version_is_told_with_the_one_that_answers() {
    let server = chat_server().await;
    let home = newcomer();
    let settings = format!(
        "model = \"local/qwen3-coder\"\n[providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{}\"\n",
        server.url()
    );
    write_config(&home, &settings);
    let said = run(&home, "doctor").await;
    let likely = format!(
        "→ the server has its models at {}/v1: set base_url of [providers.local] to it",
        server.url()
    );
    says(&said.answer, &["warn  endpoint       local: ", &likely]);
}

/// A doubled version, the path of one request, another dialect: each is told with the settings that work.
#[tokio::test]
async fn a_wrong_address_or_dialect_is_told_with_the_right_one() {
    let server = chat_server().await;
    let likely = format!("the server has its models at {}/v1: set base_url of [providers.own]", server.url());
    let speaks = "the server speaks openai-chat".to_owned();
    for (dialect, path, expected) in [
        ("openai-chat", "/v1/v1", &likely),
        ("openai-chat", "/v1/chat/completions", &likely),
        ("anthropic", "", &speaks),
    ] {
        let home = newcomer();
        let settings = format!(
            "model = \"own/qwen3-coder\"\n[providers.own]\ndialect = \"{dialect}\"\nbase_url = \"{}{path}\"\n",
            server.url()
        );
        write_config(&home, &settings);
        let said = run(&home, "doctor").await;
        assert_eq!(said.code, Some(1), "{}", said.all());
        says(&said.answer, &["own: ", &server.url(), "→ ", expected]);
    }
}

/// A key that a server of one's own refuses: where it comes from, or how to give one.
#[tokio::test]
async fn a_refused_key_of_an_own_server_is_told_with_what_to_do() {
    let server = refusing_server().await;
    let settings = format!(
        "model = \"own/m\"\n[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n",
        server.url()
    );
    let home = newcomer();
    write_config(&home, &settings);
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.answer,
        &["FAIL  key            own: no key set, and the server wants one", "attache auth login own"],
    );
    let home = newcomer().with_variable("OWN_KEY", CANARY);
    write_config(&home, &format!("{settings}api_key_env = \"OWN_KEY\"\n"));
    let said = run(&home, "doctor").await;
    says(&said.answer, &["FAIL  key            own: from OWN_KEY, refused:", "→ The key comes from OWN_KEY"]);
    assert!(!said.all().contains(CANARY), "{}", said.all());
}

/// A provider of the file that is not the model's is looked at, too, and fails nothing.
#[tokio::test]
async fn another_configured_provider_that_is_down_is_a_warning() {
    let (server, nobody) = (chat_server().await, address_of_nobody());
    let home = newcomer();
    let settings = format!(
        "model = \"own/qwen3-coder\"\n[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"{}/v1\"\n\
         [providers.other]\ndialect = \"openai-chat\"\nbase_url = \"{nobody}/v1\"\n",
        server.url()
    );
    write_config(&home, &settings);
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(
        &said.answer,
        &["warn  provider       other can't be used: nothing answers at ", "→ start the server"],
    );
}

#[tokio::test]
async fn a_store_that_is_not_ours_is_told_and_left_where_it_is() {
    let home = newcomer();
    std::fs::write(home.database(), "no database at all, but long enough to be looked at".repeat(10))
        .unwrap();
    let before = std::fs::read(home.database()).unwrap();
    let said = run(&home, "doctor").await;
    assert_eq!(said.code, Some(1));
    says(&said.answer, &["FAIL  store", "is not a session database of attache", "move this one away"]);
    assert_eq!(std::fs::read(home.database()).unwrap(), before);
}

#[tokio::test]
async fn a_home_that_others_can_enter_is_a_warning() {
    let home = newcomer();
    std::fs::set_permissions(home.home(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = run(&home, "doctor").await;
    says(&said.answer, &["warn  home", "can be entered by others (mode 0755)", "→ chmod 700 "]);
}

#[tokio::test]
async fn the_snippets_for_editors_are_shown() {
    let said = run(&newcomer(), "doctor --editors").await;
    assert_eq!(said.code, Some(0));
    says(&said.answer, &["Zed", "agent_servers", "Neovim", "Emacs"]);
}

#[tokio::test]
async fn what_sessions_have_beside_the_model_is_looked_at_too() {
    let home = newcomer();
    write_config(
        &home,
        "agent = \"buld\"\n[[hooks]]\nevent = \"prompt\"\ncommand = \"true\"\n[mcp.a]\ncommand = [\"x\"]\n[mcp.b]\ncomand = 1\n",
    );
    std::fs::create_dir(home.home().join("agents")).unwrap();
    std::fs::write(home.home().join("agents/bad.md"), "---\nmode: subagnt\n---\nx\n").unwrap();
    let said = run(&home, "doctor").await;
    says(
        &said.answer,
        &[
            "FAIL  agents         ",
            "there is no agent `buld` (did you mean `build`?)",
            "ok    skills         0 of them, and 0 commands",
            "ok    hooks          1 of yours",
            "warn  mcp            b: ",
            "ok    mcp            a (to try them: attache mcp list)",
            "warn  project        Some agents were left out: ",
        ],
    );
    assert!(!said.answer.contains("Ready"), "{}", said.answer);
}
