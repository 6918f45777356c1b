//! What is removed, what stays, and that a second pass changes nothing.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn redacted(text: &str) -> String {
    Redactor::new(Some(Path::new("/root"))).text(text)
}

/// In each line a secret lies between `‹` and `›`; all of it has to go, and everything around it has to stay.
#[test]
fn what_looks_like_a_secret_is_taken_out_and_nothing_around_it() {
    let lines = [
        "use ‹sk-proj-abcDEF0123456789abcDEF›, please",
        "‹sk-ant-api03-abcDEF0123456789_abcDEF-AA›",
        "token ‹ghp_abcDEF0123456789abcDEF0123456789abcd›.",
        "‹github_pat_11ABCDEFG0abcdefghijkl_mnop›",
        "‹glpat-abcDEF0123456789abcd›",
        "‹xoxb-123456789012-abcDEF123›",
        "id ‹AKIAIOSFODNN7EXAMPLE› was used",
        "‹AIzaSyA-abcDEF0123456789abcDEF012345678›",
        "‹eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0In0.abcDEF012-_x›",
        "‹npm_abcDEF0123456789abcDEF0123456789abcd›",
        "export OPENAI_API_KEY=‹whatever-it-is›",
        "AWS_SECRET_ACCESS_KEY = ‹wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY›",
        "DB_PASSWORD='‹hunter 2 and more›'",
        "{\"client_secret\": \"‹abc123xyz›\", \"port\": 80}",
        "\\\"api_key\\\": \\\"‹abc123›\\\"",
        "password: ‹correct-horse›",
        "curl --token ‹abcdef123› host",
        "curl --password=‹abcdef› host",
        "accessToken=‹zzz999›&x=1",
        "Authorization: ‹Bearer abc.def›",
        "-H \"Authorization: ‹Basic dXNlcjpwYXNz›\"",
        "with bearer ‹abcdefghijklmnop›",
        "git clone https://‹me:s3cret›@example.org/x.git",
        "postgres://‹app:pw›@db/x",
        "‹-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----›\nbye",
        "key ‹-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY-----› end",
        "cut ‹-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg›",
        "‹-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----›",
    ];
    for line in lines {
        let plain = line.replace(['‹', '›'], "");
        let (before, rest) = line.split_once('‹').unwrap();
        let (_, after) = rest.split_once('›').unwrap();
        assert_eq!(redacted(&plain), format!("{before}{REDACTED}{after}"), "{plain}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        "the key is under the mat",
        "sk-learn-estimator-tutorial-for-all",
        "monkey: banana",
        "tokens: 400 in, max_tokens = 4096",
        "let api_key = std_env; if token == other {}",
        "impl Token::Secret::new",
        "password: $PASSWORD",
        "API_KEY=<your key>",
        "API_KEY=",
        "token: null",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "https://example.org/a@b",
        "git@example.org:x.git",
        "/srv/home/data and /homes/x",
        "",
    ] {
        // A value that is an identifier looks the same as a secret that is a word.
        let expected = text.replace("api_key = std_env;", "api_key = [redacted];");
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn homes_become_a_tilde() {
    assert_eq!(redacted("/home/ada/src, /Users/ada.l/x and /root/y"), "~/src, ~/x and ~/y");
    assert_eq!(redacted("/rooted /root"), "/rooted ~");
    assert_eq!(redacted("file:///home/ada/a.rs:3"), "file://~/a.rs:3");
    assert_eq!(Redactor::new(Some(Path::new("/data/me/"))).text("/data/me/x /data/men"), "~/x /data/men");
    assert_eq!(Redactor::new(Some(Path::new("/"))).text("/etc"), "/etc", "a home that is everything");
}

#[test]
fn values_are_judged_by_their_keys_and_attachments_go() {
    let mut value = json!({
        "env": {"GITHUB_TOKEN": "abc", "PORT": "80", "EMPTY_KEY": ""},
        "list": ["/home/ada/x", 1, null],
        "url": "data:text/plain;base64,c2VjcmV0",
        "/home/ada/k": true,
        "max_tokens": 5,
    });
    Redactor::default().value(&mut value);
    let expected = json!({
        "env": {"GITHUB_TOKEN": REDACTED, "PORT": "80", "EMPTY_KEY": ""},
        "list": ["~/x", 1, null],
        "url": "data:text/plain,[redacted]",
        "~/k": true,
        "max_tokens": 5,
    });
    assert_eq!(value, expected);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9 _=:\"'\\\\/@.\n-]{0,12}",
        Just("API_KEY=".to_owned()),
        Just("--token ".to_owned()),
        Just("Authorization: Bearer ".to_owned()),
        Just("://a:b@".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        Just("-----END PRIVATE KEY-----".to_owned()),
        Just("/home/ada".to_owned()),
        Just("/root".to_owned()),
        Just("ä€\u{1F600}".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Whatever surrounds a key of a known shape, if it is separated from it, the key is always removed.
    #[test]
    fn a_known_key_never_comes_through(before in prop::collection::vec(piece(), 0..6),
        after in prop::collection::vec(piece(), 0..6), tail in "[A-Z][a-zA-Z0-9]{38}[0-9]") {
        let text = format!("{} ghp_{tail} {}", before.concat(), after.concat());
        prop_assert!(!redacted(&text).contains(&tail));
    }

    #[test]
    fn twice_is_once(pieces in prop::collection::vec(piece(), 0..10)) {
        let once = redacted(&pieces.concat());
        prop_assert_eq!(redacted(&once), once);
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,80}") {
        redacted(&text);
    }
}
