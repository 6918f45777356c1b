//! A command without a sandbox and the process that runs it: the same user, and no way to its keys.

use attache_testkit::binary::Home;
use serde_json::json;

const CANARY: &str = "canary-2b8d41";

/// The parent of a command, which guards it, and attache itself.
const LOOK: &str = r#"
attache=$(awk '/^PPid/ { print $2 }' /proc/$PPID/status)
for process in $PPID $attache; do
  tr '\0' '\n' < /proc/$process/environ
  grep -c . /proc/$process/maps
  ls /proc/$process/fd/ /proc/$process/cwd/
done
echo looked as $(id -u)
"#;

#[tokio::test]
async fn a_command_of_an_ordinary_user_can_not_look_into_attache() {
    let script = format!("on *\n  call bash {}\n  ---\n  text \"done\"\n", json!({"command": LOOK}));
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), &script)
        .with_variable("CANARY_API_KEY", CANARY)
        .of_an_ordinary_user();
    let agent = home.start_with(&["--sandbox", "off"]);
    agent.client.always_choose("allow_once");
    let session = agent.open_session(&home).await;
    agent.prompt(&session, "look around").await.unwrap();
    let received = format!("{:?}", agent.client.received());
    agent.finish(&home).await;
    assert!(received.contains("looked as ") && !received.contains("looked as 0"), "{received}");
    assert!(!received.contains(CANARY), "{received}");
    assert!(received.contains("environ: Permission denied"), "{received}");
    assert!(received.contains("/fd/': Permission denied"), "{received}");
}

/// The same user, the same look, another parent: else the test above would show nothing.
#[tokio::test]
async fn a_command_of_an_ordinary_user_looks_into_any_other_parent() {
    let shell = Home::new("/bin/bash", "").with_variable("CANARY_API_KEY", CANARY).of_an_ordinary_user();
    let script = "bash -c 'tr \"\\0\" \"\\n\" < /proc/$PPID/environ'; true";
    let output = shell.command().args(["-c", script]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(CANARY), "{output:?}");
}
