//! An agent that can't start tells its editor why: the handshake succeeds, every request is answered with the
//! reason.

use std::time::Duration;

use attache_testkit::binary::Home;
use serde_json::json;

const SCRIPT: &str = "on *\n  text \"fine\"\n";

struct Case {
    what: &'static str,
    /// Breaks something before the start.
    break_it: fn(&Home),
    arguments: &'static [&'static str],
    /// What the editor has to be told.
    told: &'static str,
    exit: i32,
}

fn cases() -> Vec<Case> {
    let nothing: fn(&Home) = |_| {};
    let case = |what, break_it, arguments, told| Case { what, break_it, arguments, told, exit: 1 };
    let typed = |what, arguments, told| Case { exit: 2, ..case(what, nothing, arguments, told) };
    vec![
        case(
            "a slip in the configuration",
            |home| add_to_config(home, "aproval = \"ask\"\n"),
            &[],
            "`approval`",
        ),
        case("a configuration that is no TOML", |home| add_to_config(home, "= =\n"), &[], "config.toml"),
        typed("a model without a provider", &["--model", "nobody/large"], "nobody"),
        case("a missing script", |home| std::fs::remove_file(home.script_path()).unwrap(), &[], "script"),
        typed("an agent that is none", &["--agent", "nobody"], "there is no agent `nobody`"),
        case("a newer database", newer_database, &[], "newer"),
        typed("a trace that can't be written", &["--trace", "/nowhere/at/all"], "can't write the trace"),
        typed("an option that is none", &["--approval", "never"], "--approval"),
    ]
}

fn add_to_config(home: &Home, line: &str) {
    let path = home.home().join("config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{line}{before}")).unwrap();
}

fn newer_database(home: &Home) {
    let connection = rusqlite::Connection::open(home.database()).unwrap();
    connection.execute_batch("CREATE TABLE later (x); PRAGMA user_version = 999").unwrap();
}

#[tokio::test]
async fn the_editor_is_told_in_answer_to_its_requests_and_the_log_of_stderr_as_well() {
    for Case { what, break_it, arguments, told, exit } in cases() {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
        break_it(&home);
        let mut agent = home.start_with(arguments);
        let greeting = agent.initialize().await;
        assert_eq!(greeting["agentInfo"]["name"], "attache", "{what}");
        let requests = [
            ("session/new", json!({"cwd": home.workspace(), "mcpServers": []})),
            ("session/load", json!({"sessionId": "ses_1", "cwd": home.workspace(), "mcpServers": []})),
            ("session/list", json!({})),
            ("authenticate", json!({"methodId": "stored-key"})),
        ];
        for (method, params) in requests {
            let refused = agent.client.start(method, params).answer_within(Duration::from_secs(10)).await;
            let refused = refused.unwrap_err();
            assert_eq!(refused.code, -32603, "{what}: {method}: {refused:?}");
            assert!(refused.message.contains(told), "{what}: {method}: {}", refused.message);
            assert!(refused.message.contains("attache doctor"), "{what}: {}", refused.message);
            assert_eq!(refused.data, Some(json!({"details": refused.message})), "{what}: {method}");
        }
        assert_eq!(agent.end().await.code(), Some(exit), "{what}");
        agent.client.wait_for_end().await;
        agent.client.finish();
        assert!(home.log().contains(told), "{what}: {}", home.log());
    }
}
