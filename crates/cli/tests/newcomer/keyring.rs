//! The keyring of a desktop, and a session bus that never answers: nothing waits for it for long, and nothing
//! asks it without need.

use std::path::Path;
use std::time::{Duration, Instant};

use attache_testkit::desktop::Desktop;
use attache_testkit::http_server::HttpServer;
use tokio::net::UnixListener;

use crate::stage::{CANARY, anthropic, newcomer, run, run_with, says};

/// A keyring takes a moment to appear on the bus.
async fn log_in_once_it_says(home: &attache_testkit::binary::Home, words: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let said = run_with(home, "auth login anthropic", CANARY).await;
        assert_eq!(said.code, Some(0), "{}", said.all());
        if said.all().contains(words) {
            return;
        }
        assert!(Instant::now() < deadline, "{}", said.all());
    }
}

#[tokio::test]
async fn a_key_lives_in_the_keyring_and_nowhere_else() {
    let desktop = Desktop::start().await;
    let _keyring = desktop.keyring(&["--unlock"]).await;
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    let home = newcomer()
        .with_variable("DBUS_SESSION_BUS_ADDRESS", desktop.address())
        .with_variable("ANTHROPIC_BASE_URL", &server.url());
    log_in_once_it_says(&home, "Stored the key of anthropic in the keyring.").await;
    let ledger = std::fs::read_to_string(home.home().join("credentials.json")).unwrap();
    assert!(ledger.contains("keyring") && !ledger.contains(CANARY), "{ledger}");
    let status = run(&home, "auth status").await;
    says(&status.answer, &["anthropic   key from the keyring (…8796)"]);
    let doctor = run(&home, "doctor").await;
    says(&doctor.answer, &["ok    key            anthropic: from the keyring, accepted"]);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "hi").await.unwrap();
    agent.finish(&home).await;
    let asked = server.requests();
    let asked = asked.iter().find(|request| request.path == "/v1/messages").unwrap();
    assert_eq!(asked.header("x-api-key"), Some(CANARY));
    let gone = run(&home, "auth logout anthropic").await;
    says(&gone.answer, &["Deleted the key of anthropic from the keyring."]);
    std::fs::write(home.home().join("credentials.json"), r#"{"keys": {"anthropic": {"in": "keyring"}}}"#)
        .unwrap();
    let status = run(&home, "auth status").await;
    says(&status.answer, &["key from the keyring, but the keyring holds no such key"]);
    for (place, bytes) in crate::stage::files_below(Path::new(&home.home())) {
        assert!(!String::from_utf8_lossy(&bytes).contains(CANARY), "the key is in {place}");
    }
}

#[tokio::test]
async fn a_keyring_that_was_never_set_up_gives_way_to_the_file() {
    let desktop = Desktop::start().await;
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    let home = newcomer()
        .with_variable("DBUS_SESSION_BUS_ADDRESS", desktop.address())
        .with_variable("ANTHROPIC_BASE_URL", &server.url());
    log_in_once_it_says(&home, "The keyring is not used: no keyring answers on the session bus.").await;
    let _keyring = desktop.keyring(&["--start"]).await;
    log_in_once_it_says(&home, "The keyring is not used: the keyring is not set up").await;
    let status = run(&home, "auth status").await;
    says(&status.answer, &["credentials.json (…8796)"]);
}

/// Listens where the session bus should be, takes every call and never says a word.
fn mute_bus(directory: &std::path::Path) -> (UnixListener, String) {
    let path = directory.join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    (listener, format!("unix:path={}", path.display()))
}

#[tokio::test]
async fn a_keyring_that_does_not_answer_gives_way_to_the_file_within_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let (_bus, address) = mute_bus(directory.path());
    let home = newcomer().with_variable("DBUS_SESSION_BUS_ADDRESS", &address);
    let begun = Instant::now();
    let said = run_with(&home, "auth login openai --no-check", CANARY).await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    // Two seconds are promised; the rest is for a loaded machine.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    says(&said.remarks, &["The keyring is not used: the keyring did not answer within 2 s."]);
    says(&said.answer, &["credentials.json"]);
}

#[tokio::test]
async fn a_keyring_is_not_asked_as_long_as_nobody_needs_a_key_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, address) = mute_bus(directory.path());
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    let home = newcomer()
        .with_variable("DBUS_SESSION_BUS_ADDRESS", &address)
        .with_variable("ANTHROPIC_API_KEY", CANARY)
        .with_variable("ANTHROPIC_BASE_URL", &server.url());
    std::fs::write(home.home().join("credentials.json"), r#"{"keys": {"openai": {"in": "keyring"}}}"#)
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(home.home().join("credentials.json"), mode).unwrap();
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "hi").await.unwrap();
    agent.finish(&home).await;
    let models = run(&home, "models").await;
    says(&models.answer, &["openai · key from the keyring"]);
    let asked = tokio::time::timeout(Duration::from_millis(1), bus.accept()).await;
    assert!(asked.is_err(), "somebody asked the keyring");
    let status = run(&home, "auth status").await;
    says(&status.answer, &["openai      key from the keyring, but the keyring did not answer within 2 s"]);
}
