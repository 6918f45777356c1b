//! `attache usage`, `sessions show --timeline` and `sessions diff`.

use attache_testkit::{binary::Home, database};
use serde_json::Value;

use crate::{answer, failure, home_with_a_session, no_terminal_codes, run};

const PRICED: &str = "model priced price_input=3 price_output=15\nmodel free\non *\n  text \"ok\"\n  \
                      usage input=1000 output=200 reasoning=30 cache_read=40 cache_write=5\n";

/// Two turns of one session, and a copy of it with one more.
async fn home_with_usage() -> (Home, String, String) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), PRICED);
    let home = home.with_variable("ATTACHE_MODEL", "script/priced").with_variable("TZ", "UTC");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    for _ in 0..2 {
        agent.prompt(&session, "Say").await.unwrap();
    }
    let params = serde_json::json!({"sessionId": session, "cwd": home.workspace(), "mcpServers": []});
    let copy = agent.client.expect("session/fork", params).await;
    let copy = copy["sessionId"].as_str().unwrap().to_owned();
    agent.prompt(&copy, "Say more").await.unwrap();
    agent.finish(&home).await;
    (home, session, copy)
}

async fn used(home: &Home, arguments: &[&str]) -> Value {
    let text = answer(home, &[&["usage", "--json"], arguments].concat()).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn usage_is_summed_up_by_day_model_and_workspace_and_copies_count_once() {
    let (home, _, _) = home_with_usage().await;
    let by_model = used(&home, &["--by", "model"]).await;
    let rows = by_model.as_array().unwrap();
    assert_eq!(rows.len(), 1, "{by_model}");
    assert_eq!((&rows[0]["model"], &rows[0]["answers"]), (&"script/priced".into(), &3.into()));
    assert_eq!(
        (&rows[0]["prompt_tokens"], &rows[0]["reasoning_tokens"], &rows[0]["cache_write"]),
        (&3000.into(), &90.into(), &15.into())
    );
    assert!(rows[0]["cost_usd"].as_f64().unwrap() > 0.017, "{by_model}");
    let by_place = used(&home, &["--by", "workspace"]).await;
    assert_eq!(by_place[0]["workspace_root"], home.workspace().to_str().unwrap());
    assert_eq!(used(&home, &["--since", "2999-01-01"]).await, Value::Array(vec![]));

    // A day is that of the user, not of Greenwich.
    database::connect(&home)
        .execute_batch(
            "UPDATE chat_messages SET created_at = 1774738800000 WHERE role = 'assistant'; \
                        UPDATE chat_sessions SET created_at = 1",
        )
        .unwrap();
    assert_eq!(used(&home, &[]).await[0]["day"], "2026-03-28");
    let berlin = home.with_variable("TZ", "Europe/Berlin");
    assert_eq!(used(&berlin, &[]).await[0]["day"], "2026-03-29");
    assert_eq!(used(&berlin, &["--since", "2026-03-29"]).await.as_array().unwrap().len(), 1);
    assert_eq!(used(&berlin, &["--since", "2026-03-30"]).await, Value::Array(vec![]));
    let table = answer(&berlin, &["usage"]).await;
    assert!(table.lines().next().unwrap().contains("cache read") && table.contains("2026-03-29"), "{table}");
    let told = failure(&berlin, &["usage", "--since", "yesterday"]).await;
    assert!(told.contains("`yesterday` is no date; write it as 2026-03-29"), "{told}");
}

#[tokio::test]
async fn nothing_used_is_said_so() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), PRICED);
    let output = run(&home, &["usage"]).await;
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no model has reported any usage yet"));
    assert_eq!(run(&home, &["usage", "--json"]).await.stdout, b"[]\n");
}

#[tokio::test]
async fn a_timeline_tells_of_each_turn_what_was_sent_called_decided_and_used() {
    let (home, session) = home_with_a_session().await;
    let text = answer(&home, &["sessions", "show", &session, "--timeline"]).await;
    for expected in [
        "turn 1",
        "  model      script/default",
        "  tools      read, ",
        "  tokens     ",
        "  system     ",
        "  step 2",
        "    * write",
        "      allow: the user's answer (asked because: it changes a file)",
        "      > {\"path\":\"made.txt\",\"content\":\"x\\n\"}",
        "    Made it.",
    ] {
        assert!(text.lines().any(|line| line.starts_with(expected)), "{expected} is missing in\n{text}");
    }
    assert!(!text.contains("# Environment"), "the prompt is shown only if it is asked for");
    let whole = answer(&home, &["sessions", "show", &session, "--timeline", "--system-prompt"]).await;
    assert!(whole.lines().any(|line| line.starts_with("    | # Environment")), "{whole}");
    no_terminal_codes(&whole);
    let output = run(&home, &["sessions", "show", &session, "--system-prompt"]).await;
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test]
async fn long_texts_are_cut_in_a_timeline_unless_all_is_asked_for() {
    let script = format!("on *\n  text \"{}end\"\n", "word ".repeat(200));
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "Say").await.unwrap();
    agent.finish(&home).await;
    let cut = answer(&home, &["sessions", "show", &session, "--timeline"]).await;
    assert!(cut.contains("… (1003 bytes in all)") && !cut.contains("word end"), "{cut}");
    let full = answer(&home, &["sessions", "show", &session, "--timeline", "--full"]).await;
    assert!(full.contains("word end"), "{full}");
}

#[tokio::test]
async fn a_diff_names_the_turns_that_differ() {
    let (home, session, copy) = home_with_usage().await;
    let output = run(&home, &["sessions", "diff", &session, &copy]).await;
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("turn 3\n+ user\n+   Say more\n"), "{text}");
    assert!(
        text.contains("+   1000 input, 200 output, 30 reasoning, 40 cache read, 5 cache write"),
        "{text}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "2 of 3 turns are the same\n");
    let output = run(&home, &["sessions", "diff", &copy, &copy]).await;
    assert_eq!((output.stdout.len(), output.status.code()), (0, Some(0)));
    let told = failure(&home, &["sessions", "diff", &session, "ses_nobody"]).await;
    assert!(told.contains("ses_nobody"), "{told}");
}

#[tokio::test]
async fn a_summary_is_shown_with_its_model_and_snapshots_are_no_lines_of_their_own() {
    let script = "on \"write\"\n  call write {\"path\":\"made.txt\",\"content\":\"x\\n\"}\n  ---\n  text \"done\"\n\
                  on \"Stop the work here\"*\n  text \"## Goal\\nA goal.\"\non *\n  text \"fine\"\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    home.write_config("approval = \"edits\"\n");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    for prompt in ["write", "/mode plan", "talk", "/compact"] {
        agent.prompt(&session, prompt).await.unwrap();
    }
    agent.finish(&home).await;
    for arguments in [&["sessions", "show", &session][..], &["sessions", "show", &session, "--timeline"]] {
        let shown = answer(&home, arguments).await;
        for line in
            ["  [the conversation before was summarised]", "  | A goal.", "  + The mode is now `plan`"]
        {
            assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line} is missing in\n{shown}");
        }
        assert!(!shown.contains("[snapshot]") && !shown.contains("[environment]"), "{shown}");
    }
    let by_model = used(&home, &["--by", "model"]).await;
    assert_eq!((by_model.as_array().unwrap().len(), &by_model[0]["model"]), (1, &"script/default".into()));
}
