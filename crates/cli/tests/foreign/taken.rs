//! What is listed, what is taken over, and that one can go on with it.

use super::*;

#[tokio::test]
async fn all_that_is_there_is_listed_and_nothing_is_taken_before_it_is_chosen() {
    let moving = Moving::with_everything();
    let said = moving.import(&[]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    for words in
        ["goose", "Greet", "Fix the cart's total", "Run the tests", "Rename it", "What is here?", "/srv/shop"]
    {
        assert!(said.answer.contains(words), "{words}: {}", said.answer);
    }
    assert!(!said.answer.contains("Of a subagent"), "{}", said.answer);
    assert!(!moving.home.database().exists(), "a list makes no database");
    let listed = moving.import(&["codex", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.answer).unwrap();
    assert_eq!(listed[0]["id"], "01a1f43d-0b80-7551-862e-cd513d61f094");
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn claude_code() {
    let moving = Moving::with_everything();
    let said = moving.import(&["claude", "1"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    assert!(
        said.answer.contains(
            "left out: 1 messages of branches that were left, 1 messages of subagents, 1 notes of the program"
        ),
        "{}",
        said.answer
    );
    let lines = moving.export("claude").await;
    assert_eq!(
        outline(&lines),
        [
            "text Fix the total in the cart",
            "step-start",
            "reasoning The sum is wrong.",
            "text I change it.",
            "call Edit `src/cart.rs` output-available: The file was updated.",
            "step-start",
            "call cargo test output-error: 1 test failed",
            "step-start",
            "text One test fails.",
            "text Like in this picture",
            "file image/png",
            "step-start",
            "text I see.",
        ]
    );
    let session = &data(&lines, "session")[0];
    assert_eq!(
        (&session["metadata"]["title"], &session["workspace_root"]),
        (&json!("Fix the cart's total"), &json!("/srv/shop"))
    );
    // Each message of the API once, though it stands on several lines.
    assert_eq!((&session["prompt_tokens"], &session["completion_tokens"]), (&json!(130), &json!(34)));
    assert_eq!((&session["cache_read"], &session["cache_write"]), (&json!(28), &json!(20)));
    let messages = data(&lines, "message");
    assert_eq!(messages[1]["metadata"]["model"], "claude-sonnet-5");
    let edit = data(&lines, "part")
        .into_iter()
        .find(|part| part["tool_call_id"].as_str().is_some_and(|id| id.starts_with("toolu_1")));
    let shown = &edit.unwrap()["data"]["toolMetadata"]["attache"];
    let diff =
        json!([{"type": "diff", "path": "/srv/shop/src/cart.rs", "old_text": "a - b", "new_text": "a + b"}]);
    assert_eq!((&shown["kind"], &shown["content"]), (&json!("edit"), &diff));
}

#[tokio::test]
async fn codex() {
    let moving = Moving::with_everything();
    moving.import(&["codex", "--all"]).await;
    let lines = moving.export("codex").await;
    assert_eq!(
        outline(&lines),
        [
            "text Run the tests",
            "step-start",
            "reasoning **Running** them",
            "call cargo test output-error: Wall time: 1 s\nProcess exited with code 101\nOutput:\nboom",
            "step-start",
            "call apply_patch output-available: Success.",
            "step-start",
            "text Fixed.",
        ]
    );
    let session = &data(&lines, "session")[0];
    let counts = ["prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read"]
        .map(|key| session[key].clone());
    assert_eq!(counts, [json!(50), json!(18), json!(8), json!(20)]);
    assert_eq!(data(&lines, "message")[1]["metadata"]["model"], "gpt-5.2-codex");
}

#[tokio::test]
async fn an_old_codex() {
    let moving = Moving::new();
    moving.sample("codex-old.jsonl", ".codex/sessions/2025/06/01/rollout-2025-06-01T10-00-00-0a1b2c3d.jsonl");
    let said = moving.import(&["codex", "--all"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    assert!(said.told.contains("its directory is not known"), "{}", said.told);
    let expected = [
        "text An old question",
        "step-start",
        "call ls output-available: a.txt",
        "step-start",
        "text An old answer",
    ];
    assert_eq!(outline(&moving.export("codex").await), expected);
}

#[tokio::test]
async fn gemini() {
    let moving = Moving::with_everything();
    moving.import(&["gemini", "--all"]).await;
    let lines = moving.export("gemini").await;
    let expected = [
        "text What is here?",
        "step-start",
        "reasoning **Look**\nat it",
        "call list_directory `.` output-available: src",
        "step-start",
        "text One folder.",
    ];
    assert_eq!(outline(&lines), expected);
    let session = &data(&lines, "session")[0];
    let counts = ["prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read"]
        .map(|key| session[key].clone());
    assert_eq!(counts, [json!(40), json!(16), json!(8), json!(20)]);
    assert_eq!(session["workspace_root"], "/srv/shop");
}

#[tokio::test]
async fn an_old_gemini() {
    let moving = Moving::new();
    moving.sample("gemini-old.json", ".gemini/tmp/79b6/chats/session-2025-10-18T14-57-f86f5318.json");
    moving.import(&["gemini", "--all"]).await;
    let expected = [
        "text List the files",
        "step-start",
        "text Here they are.",
        "call list_directory `.` output-error: stopped",
    ];
    assert_eq!(outline(&moving.export("gemini").await), expected);
}

#[tokio::test]
async fn goose() {
    let moving = Moving::with_everything();
    let said = moving.import(&["goose", "2026"]).await;
    assert!(said.answer.contains("1 notes of the program"), "{}", said.answer);
    let lines = moving.export("goose").await;
    let expected =
        ["text Say hi", "step-start", "call echo hi output-available: hi", "step-start", "text Said."];
    assert_eq!(outline(&lines), expected);
    assert_eq!(data(&lines, "session")[0]["prompt_tokens"], 30);
    let moving = Moving::new();
    moving.sample("goose.jsonl", ".local/share/goose/sessions/20250601_100000.jsonl");
    moving.import(&["goose", "--all"]).await;
    let expected = [
        "text Say hi",
        "step-start",
        "reasoning With echo.",
        "call echo hi output-available: hi",
        "step-start",
        "text Said.",
    ];
    assert_eq!(outline(&moving.export("goose").await), expected);
}

#[tokio::test]
async fn opencode() {
    let moving = Moving::with_everything();
    let said = moving.import(&["opencode", "ses_1"]).await;
    assert!(said.answer.contains("1 parts of the kind \"agent\""), "{}", said.answer);
    let lines = moving.export("opencode").await;
    assert_eq!(
        outline(&lines),
        ["text Rename sum to total", "step-start", "call Edit `a.rs` output-available:", "text Renamed."]
            .map(|line| if line.ends_with(':') { format!("{line} ") } else { line.to_owned() })
    );
    assert_eq!(data(&lines, "session")[0]["cost_usd"], 0.25);
    assert_eq!(data(&lines, "message")[1]["metadata"]["model"], "z/big");
}

#[tokio::test]
async fn an_old_opencode() {
    let moving = Moving::new();
    let folder = ".local/share/opencode/storage";
    moving.put(
        &format!("{folder}/session/p1/ses_2.json"),
        r#"{"id":"ses_2","directory":"/srv/shop","title":"In files","time":{"updated":1795099033759}}"#,
    );
    moving.put(
        &format!("{folder}/message/ses_2/msg_1.json"),
        r#"{"id":"msg_1","role":"user","time":{"created":1795099033000}}"#,
    );
    moving.put(&format!("{folder}/part/msg_1/prt_1.json"), r#"{"id":"prt_1","type":"text","text":"Hello"}"#);
    let said = moving.import(&["opencode", "--all"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    assert_eq!(outline(&moving.export("opencode").await), ["text Hello"]);
}

#[tokio::test]
async fn nothing_is_taken_twice_and_one_can_go_on() {
    let moving = Moving::with_everything();
    let said = moving.import(&["--all"]).await;
    assert_eq!(said.code, Some(0), "{}", said.told);
    assert_eq!(said.answer.matches("imported ses_").count(), 5, "{}", said.answer);
    let again = moving.import(&["--all"]).await;
    assert_eq!(again.answer.matches("is here already").count(), 5, "{}", again.answer);
    let listed = moving.run(&["sessions", "list", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&listed.answer).unwrap().as_array().unwrap().len(), 5);
    // Of a session whose directory is there.
    let here = Moving::new();
    let sample = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/samples/claude.jsonl"),
    )
    .unwrap();
    let workspace = here.home.workspace().canonicalize().unwrap();
    here.put(".claude/projects/x/1.jsonl", &sample.replace("/srv/shop", workspace.to_str().unwrap()));
    here.import(&["--all", "--workspace", "."]).await;
    let said = here.run(&["chat", "-p", "and now?", "--continue"]).await;
    assert_eq!((said.code, said.answer.as_str()), (Some(0), "Goes on.\n"), "{}", said.told);
    let lines = here.export("claude").await;
    assert!(outline(&lines).contains(&"text Goes on.".to_owned()), "{:?}", outline(&lines));
    assert_eq!(outline(&lines)[0], "text Fix the total in the cart");
}
