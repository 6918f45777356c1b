//! Runs that go on with a session.

use super::*;

const SCRIPT: &str = r#"
on "first"
  text "One."
on "second"
  text "Two."
"#;

#[tokio::test]
async fn a_run_goes_on_with_the_latest_or_a_named_session() {
    let home = home(SCRIPT);
    let first = chat(&home, &["-p", "first", "--output", "json"]).await.object();
    let session = first["sessionId"].as_str().unwrap().to_owned();
    let ran = chat(&home, &["-p", "second", "--continue", "--output", "json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Only what this run said, though the whole session was loaded.
    assert_eq!((&ran.object()["sessionId"], &ran.object()["text"]), (&json!(session), &json!("Two.")));
    let ran = chat(&home, &["-p", "second", "--resume", &session[..20]]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(0), "Two.\n"), "{ran:?}");
    let ran = chat(&home, &["-p", "second", "--resume", "latest", "--output", "json"]).await;
    assert_eq!(ran.object()["sessionId"], json!(session), "{ran:?}");
    let other = chat(&home, &["-p", "first", "--output", "json"]).await.object();
    assert_ne!(other["sessionId"], json!(session));
    let ran = chat(&home, &["-p", "second", "--resume", "ses_"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.told.contains("several sessions begin with \"ses_\""), "{ran:?}");
    let stored = export(&home, &session).await;
    assert_eq!(stored.matches("\"second\"").count(), 3, "{stored}");
}

/// A session works where it was made, wherever the command is typed.
#[tokio::test]
async fn a_named_session_is_found_from_elsewhere() {
    let home = home(SCRIPT);
    let session = chat(&home, &["-p", "first", "--output", "json"]).await.object()["sessionId"].clone();
    let elsewhere = home.workspace().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = home.command();
    command.current_dir(&elsewhere).args(["chat", "-p", "second", "--resume", session.as_str().unwrap()]);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Two.\n");
    let mut command = home.command();
    command.current_dir(&elsewhere).args(["chat", "-p", "second", "--continue"]);
    assert_eq!(command.stdin(Stdio::null()).output().await.unwrap().status.code(), Some(1));
}
