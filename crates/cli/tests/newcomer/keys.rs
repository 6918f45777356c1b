//! Keys as a person handles them: typed, checked, kept, looked at, forgotten.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use attache_testkit::http_server::HttpServer;
use attache_testkit::pseudo_terminal;

use crate::stage::{
    CANARY, address_of_nobody, anthropic, chat_server, newcomer, refusing_server, run, run_with, says,
    write_config,
};

#[tokio::test]
async fn a_key_is_taken_from_a_pipe_checked_kept_shown_without_itself_and_forgotten() {
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    let home = newcomer().with_variable("ANTHROPIC_BASE_URL", &server.url());
    let said = run_with(&home, "auth login anthropic", &format!("{CANARY}\n")).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    let file = home.home().join("credentials.json");
    says(
        &said.remarks,
        &[
            "https://platform.claude.com",
            "anthropic accepts the key (1 models).",
            "no keyring on this machine",
        ],
    );
    says(&said.answer, &[file.to_str().unwrap(), "only you can read"]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(server.requests()[0].header("x-api-key"), Some(CANARY));

    let status = run(&home, "auth status").await;
    assert_eq!(status.code, Some(0), "{}", status.all());
    let line = status.answer.lines().find(|line| line.starts_with("anthropic ")).unwrap();
    assert!(line.contains(file.to_str().unwrap()) && line.ends_with("(…8796)"), "{line}");
    says(
        &status.answer,
        &[
            "openai      no key: set OPENAI_API_KEY or run `attache auth login openai`",
            "ollama      needs no key",
        ],
    );

    let models = run(&home, "models").await;
    says(&models.answer, &["Model of new sessions: anthropic/claude-sonnet-5", "anthropic · key from"]);
    let gone = run(&home, "auth logout anthropic").await;
    says(&gone.answer, &["Deleted the key of anthropic from"]);
    let again = run(&home, "auth logout anthropic").await;
    assert_eq!((again.code, again.answer.as_str()), (Some(0), "No key of anthropic is stored.\n"));
    assert!(!std::fs::read_to_string(&file).unwrap().contains(CANARY));
    for said in [said, status, models, gone] {
        assert!(!said.all().contains(CANARY), "{}", said.all());
    }
}

#[tokio::test]
async fn a_wrong_key_is_not_kept_unless_that_is_wanted() {
    let server = refusing_server().await;
    let home = newcomer().with_variable("ANTHROPIC_BASE_URL", &server.url());
    let said = run_with(&home, "auth login anthropic", &format!("{CANARY}\n")).await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.remarks,
        &[
            "anthropic does not accept this key",
            "invalid x-api-key: [key]",
            "Nothing was stored",
            "--no-check",
            "platform.claude.com",
        ],
    );
    assert!(!said.all().contains(CANARY), "{}", said.all());
    assert!(!home.home().join("credentials.json").exists());
    let said = run_with(&home, "auth login anthropic --no-check", CANARY).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    assert_eq!(server.requests().len(), 1, "it was not tried again");
}

#[tokio::test]
async fn a_key_that_can_not_be_checked_is_kept_and_that_is_told() {
    let home = newcomer().with_variable("OPENAI_BASE_URL", &address_of_nobody());
    let said = run_with(&home, "auth login openai", &format!("{CANARY}\n")).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(&said.remarks, &["The key could not be checked: nothing answers at", "stored all the same"]);
    assert!(home.home().join("credentials.json").exists());
}

/// Three providers that need something else than a key.
#[tokio::test]
async fn a_login_says_what_else_there_is_to_do() {
    let home = newcomer();
    let said = run_with(&home, "auth login ollama", "").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(&said.remarks, &["needs no key", "https://ollama.com/download", "`attache models`"]);
    assert!(!said.remarks.contains("Get a key"), "{}", said.all());

    let said = run_with(&home, "auth login azure", CANARY).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    let config = home.home().join("config.toml");
    says(
        &said.remarks,
        &["set AZURE_BASE_URL", config.to_str().unwrap(), "[providers.azure]", "base_url = \"https://…\""],
    );
    let home = newcomer().with_variable("AZURE_BASE_URL", &address_of_nobody());
    let said = run_with(&home, "auth login azure", CANARY).await;
    assert!(!said.remarks.contains("Still to do"), "{}", said.all());

    let said = run_with(&home, "auth login", "").await;
    assert_eq!(said.code, Some(1), "{}", said.all());
    says(
        &said.remarks,
        &["which provider is the key for?", "attache auth login PROVIDER (anthropic, openai"],
    );
}

#[tokio::test]
async fn what_is_no_key_is_refused_without_repeating_it() {
    let home = newcomer();
    for input in ["", "\n", "sk-canary and more\n"] {
        let said = run_with(&home, "auth login openai --no-check", input).await;
        assert_eq!(said.code, Some(1), "{}", said.all());
        assert!(!said.all().contains("canary"), "{}", said.all());
    }
    assert!(!home.home().join("credentials.json").exists());
}

#[tokio::test]
async fn a_variable_wins_and_everybody_says_so() {
    let home = newcomer().with_variable("OPENAI_API_KEY", "sk-from-the-environment");
    let said = run_with(&home, "auth login openai --no-check", CANARY).await;
    says(&said.remarks, &["OPENAI_API_KEY is set and takes precedence"]);
    let status = run(&home, "auth status").await;
    says(&status.answer, &["openai      key from OPENAI_API_KEY (…ment)"]);
    let gone = run(&home, "auth logout openai").await;
    says(&gone.remarks, &["OPENAI_API_KEY is still set"]);
}

#[tokio::test]
async fn a_script_needs_no_key_and_an_own_provider_gets_one() {
    let home = newcomer();
    write_config(
        &home,
        "[providers.hello]\ndialect = \"script\"\nscript = \"x\"\n[providers.gate]\ndialect = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\n",
    );
    let said = run_with(&home, "auth login hello", CANARY).await;
    assert_eq!(said.code, Some(1));
    says(&said.remarks, &["`hello` answers from a script and needs no key"]);
    let said = run_with(&home, "auth login gate --no-check --file", CANARY).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    write_config(&home, "");
    let status = run(&home, "auth status").await;
    says(
        &status.answer,
        &["gate        a key is stored, but nothing is configured; `attache auth logout gate` forgets it"],
    );
}

#[tokio::test]
async fn a_file_of_keys_that_others_can_read_is_refused_everywhere_with_the_way_out() {
    let home = newcomer();
    run_with(&home, "auth login openai --no-check", CANARY).await;
    let file = home.home().join("credentials.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let way_out = format!("chmod 600 {}", file.display());
    for line in ["auth status", "auth logout openai", "models", "doctor"] {
        let said = run(&home, line).await;
        says(&said.all(), &[&way_out]);
        assert!(!said.all().contains(CANARY), "{}", said.all());
        assert!(said.remarks.matches(&way_out).count() <= 1, "one warning: {}", said.all());
        assert!(said.answer.matches(&way_out).count() <= 1, "one reason: {}", said.all());
    }
}

#[tokio::test]
async fn a_key_that_is_typed_is_not_shown() {
    let home = newcomer();
    let (mut person, program) = pseudo_terminal::open();
    let mut child = home
        .command()
        .args(["acp", "--login"])
        .env("OPENAI_BASE_URL", address_of_nobody())
        .stdin(program.try_clone().unwrap())
        .stderr(program)
        .spawn()
        .unwrap();
    let typing = tokio::task::spawn_blocking(move || {
        let mut screen = pseudo_terminal::read_until(&mut person, "Which provider is the key for? ");
        writeln!(person, "openai").unwrap();
        screen += &pseudo_terminal::read_until(&mut person, "Key for openai: ");
        writeln!(person, "{CANARY}").unwrap();
        screen += &pseudo_terminal::read_until(&mut person, "stored all the same");
        screen
    });
    let screen = typing.await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{screen}");
    assert!(screen.contains("  2  openai") && !screen.contains(CANARY), "{screen}");
    let kept = std::fs::read_to_string(home.home().join("credentials.json")).unwrap();
    assert!(kept.contains(CANARY));
}

/// What `models` and `doctor` find out, the login says at once; and what storing the key means.
#[tokio::test]
async fn a_login_at_an_address_without_its_version_names_the_right_one() {
    let server = chat_server().await;
    let home = newcomer().with_variable("OPENAI_BASE_URL", &server.url());
    let said = run_with(&home, "auth login openai", "sk-0123456789\n").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(
        &said.remarks,
        &[
            "The key could not be checked: ",
            &format!("{}/v1", server.url()),
            "new sessions take a model of openai from now on",
            "attache auth logout openai",
        ],
    );
}
