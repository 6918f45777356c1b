//! Where we find and keep keys, and that we never show any part of them.

use std::os::unix::fs::PermissionsExt;

use attache_core::ports::mcp::HiddenText;
use attache_mcp::oauth::LoginStore;

use super::*;

const CANARY: &str = "sk-canary-0123456789abcdef";

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn credentials(&self, variables: &[(&str, &str)]) -> Credentials {
        let home = self.directory.path().join("home");
        let mut variables = variables.to_vec();
        variables.push(("ATTACHE_HOME", home.to_str().unwrap()));
        let environment = ProcessEnvironment::from_pairs(&variables);
        let dirs = Dirs::from_environment(&environment).unwrap();
        Credentials::new(&environment, &dirs)
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn found(credentials: &Credentials, provider: &str) -> Option<ApiKey> {
    credentials.read().of(provider, &["FIRST_KEY".to_owned(), "SECOND_KEY".to_owned()]).unwrap()
}

#[test]
fn the_environment_wins_over_what_is_kept_and_its_first_variable_over_the_second() {
    let place = Home::new();
    let bare = place.credentials(&[]);
    assert_eq!(found(&bare, "openai"), None);
    assert_eq!(
        bare.store("openai", &secret(CANARY), KeyPlace::KeyringElseFile).unwrap(),
        Stored::File { file: bare.file().to_owned(), because: Some(KeyringError::NoBus) }
    );
    assert_eq!(
        found(&bare, "openai"),
        Some(ApiKey::File { file: bare.file().to_owned(), secret: secret(CANARY) })
    );
    assert_eq!(found(&bare, "anthropic"), None);
    let variables = [("SECOND_KEY", "two"), ("FIRST_KEY", "  ")];
    let key = found(&place.credentials(&variables), "openai");
    assert_eq!(key, Some(ApiKey::Environment { variable: "SECOND_KEY".to_owned(), secret: secret("two") }));
    let variables = [("SECOND_KEY", "two"), ("FIRST_KEY", "one")];
    let key = found(&place.credentials(&variables), "openai");
    assert_eq!(key, Some(ApiKey::Environment { variable: "FIRST_KEY".to_owned(), secret: secret("one") }));
}

#[test]
fn a_kept_key_is_for_its_owner_alone_replaced_and_forgotten() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    for text in ["one-key", "other-key"] {
        credentials.store("a", &secret(text), KeyPlace::File).unwrap();
    }
    credentials.store("b", &secret(CANARY), KeyPlace::File).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(credentials.file()), 0o600);
    assert_eq!(mode(credentials.file().parent().unwrap()), 0o700);
    let Some(ApiKey::File { secret, .. }) = found(&credentials, "a") else { panic!("not there") };
    assert_eq!(secret.expose(), "other-key");
    assert_eq!(credentials.read().kept().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(credentials.forget("a").unwrap(), Some(LedgerEntry::Here(secret)));
    assert_eq!(credentials.forget("a").unwrap(), None);
    assert_eq!(found(&credentials, "a"), None);
    credentials.forget_all().unwrap();
    assert!(!std::fs::read_to_string(credentials.file()).unwrap().contains(CANARY));
}

#[test]
fn a_file_that_others_can_read_is_refused_and_the_environment_still_works() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    credentials.store("a", &secret(CANARY), KeyPlace::File).unwrap();
    std::fs::set_permissions(credentials.file(), std::fs::Permissions::from_mode(0o640)).unwrap();
    let keys = credentials.read();
    let file = credentials.file().display();
    assert_eq!(
        keys.of("a", &[]).unwrap_err().to_string(),
        format!("{file} holds keys and can be read by others (mode 0640); run `chmod 600 {file}`")
    );
    assert!(keys.trouble().is_some());
    assert_eq!(
        credentials.store("b", &secret("x"), KeyPlace::File).unwrap_err(),
        keys.trouble().unwrap().clone(),
        "and nothing is written over it"
    );
    let with_variable = place.credentials(&[("FIRST_KEY", "one")]);
    assert!(matches!(found(&with_variable, "a"), Some(ApiKey::Environment { .. })));
}

#[test]
fn a_damaged_file_is_told_without_a_word_of_it() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    credentials.store("a", &secret("x"), KeyPlace::File).unwrap();
    for damaged in [
        format!("{{\"keys\": {{\"a\": {{\"key\": \"{CANARY}\"}}"),
        format!("{{\"keys\": {{\"a\": \"{CANARY}\"}}}}"),
        format!("[\"{CANARY}\"]"),
        format!("{{\"keys\": {{\"a\": {{\"key\": \"{CANARY}\", \"in\": \"keyring\"}}}}}}"),
        format!("{{\"keys\": {{\"a\": {{\"in\": \"{CANARY}\"}}}}}}"),
        String::new(),
    ] {
        std::fs::write(credentials.file(), &damaged).unwrap();
        let error = credentials.read().of("a", &[]).unwrap_err();
        assert!(matches!(error, LedgerError::Damaged(..)), "{damaged}: {error:?}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn what_is_written_is_read_again_and_no_text_makes_the_reader_panic_or_repeat_it(
        names in proptest::collection::vec("[^/\\s]{1,12}", 0..5),
        key in "[!-~]{1,60}",
        text in "(canary|[{}\\[\\]:,\"]|keys|key|in|keyring|.){0,40}",
    ) {
        let place = Home::new();
        let credentials = place.credentials(&[]);
        for name in &names {
            credentials.store(name, &secret(&key), KeyPlace::File).unwrap();
            proptest::prop_assert_eq!(
                credentials.read().of(name, &[]).unwrap(),
                Some(ApiKey::File { file: credentials.file().to_owned(), secret: secret(&key) })
            );
        }
        std::fs::create_dir_all(credentials.file().parent().unwrap()).unwrap();
        std::fs::write(credentials.file(), &text).unwrap();
        std::fs::set_permissions(credentials.file(), std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Err(error) = credentials.read().of("x", &[]) {
            proptest::prop_assert!(!error.to_string().contains("canary"), "{}", error);
        }
    }
}

#[test]
fn two_logins_at_the_same_time_lose_no_key() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let credentials = credentials.clone();
            let provider = format!("p{number}");
            scope.spawn(move || credentials.store(&provider, &secret("key"), KeyPlace::File).unwrap());
        }
    });
    assert_eq!(credentials.read().kept().count(), 8);
}

#[test]
fn a_key_in_the_keyring_is_known_without_asking_it() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    Ledger::change(credentials.file(), |ledger| ledger.insert("a", LedgerEntry::Keyring)).unwrap();
    assert_eq!(found(&credentials, "a"), Some(ApiKey::Keyring));
    assert_eq!(credentials.keyring.get("a", Patience::None), Err(KeyringError::NoBus));
    let error = credentials.forget("a").unwrap_err();
    assert_eq!(error, ForgetError::Keyring(KeyringError::NoBus));
    assert_eq!(found(&credentials, "a"), Some(ApiKey::Keyring), "what is not forgotten is not said to be");
}

#[test]
fn a_login_at_a_server_is_kept_beside_the_keys_and_changes_the_stamp() {
    let place = Home::new();
    let credentials = place.credentials(&[]);
    credentials.store("a", &secret("key"), KeyPlace::File).unwrap();
    let logins = ServerLogins::new(&credentials, Patience::None, KeyPlace::KeyringElseFile);
    let (server, text) = ("https://x.test/mcp", HiddenText::new(CANARY));
    let before = logins.stamp();
    assert_eq!(logins.read(server), Ok(None));
    logins.keep(server, "https://a.test", &text).unwrap();
    assert_ne!(logins.stamp(), before);
    assert_eq!(logins.read(server), Ok(Some(text)));
    assert_eq!(logins.read("https://x.test"), Ok(None), "of this address and no other");
    assert_eq!(credentials.read().kept().collect::<Vec<_>>(), ["a"], "it is no provider's key");
    credentials.forget_all().unwrap();
    assert!(
        matches!(logins.place_of(server), Ok(Some(LedgerEntry::Here(_)))),
        "and no logout of an editor's"
    );
    assert!(!format!("{logins:?}").contains("canary"));
    logins.forget(server).unwrap();
    logins.forget(server).unwrap();
    assert_eq!(logins.read(server), Ok(None));
    assert!(!std::fs::read_to_string(credentials.file()).unwrap().contains(CANARY));
}

#[test]
fn a_server_is_held_by_one_at_a_time_and_others_are_not() {
    let place = Home::new();
    let logins = ServerLogins::new(&place.credentials(&[]), Patience::None, KeyPlace::File);
    let held = logins.hold("https://x.test").unwrap();
    drop(logins.hold("https://y.test").unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _held = logins.hold("https://x.test").unwrap();
            tell.send(()).unwrap();
        });
        assert!(told.recv_timeout(std::time::Duration::from_millis(100)).is_err());
        drop(held);
        told.recv().unwrap();
    });
}

#[test]
fn nothing_that_can_be_printed_holds_a_key() {
    let place = Home::new();
    let credentials = place.credentials(&[("FIRST_KEY", CANARY)]);
    credentials.store("a", &secret(CANARY), KeyPlace::File).unwrap();
    let keys = credentials.read();
    let printed = format!(
        "{credentials:?} {keys:?} {:?} {}",
        found(&credentials, "a"),
        found(&credentials, "a").unwrap()
    );
    assert!(!printed.contains("canary"), "{printed}");
}
