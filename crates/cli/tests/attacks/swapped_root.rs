//! The directory of a session, swapped for a link while attache did not run.

use std::os::unix::fs::symlink;

use attache_testkit::binary::Home;
use serde_json::json;

#[tokio::test]
async fn a_session_does_not_follow_a_link_that_took_its_directorys_place() {
    let script = "on *\n  call write {\"path\":\"made\",\"content\":\"x\"}\n  ---\n  text \"done\"\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let base = home.workspace();
    let (root, moved, outside) = (base.join("sub"), base.join("sub2"), base.join("outside"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&outside).unwrap();
    let agent = home.start();
    agent.initialize().await;
    let session = agent.new_session(&root).await;
    agent.finish(&home).await;
    std::fs::rename(&root, &moved).unwrap();
    symlink(&outside, &root).unwrap();
    let agent = home.start();
    agent.initialize().await;
    for method in ["session/load", "session/resume"] {
        let opening = json!({"sessionId": session, "cwd": root, "mcpServers": []});
        let refused = format!("{:?}", agent.client.request(method, opening).await.unwrap_err());
        assert!(refused.contains("leads to") && refused.contains("open a new session"), "{refused}");
    }
    agent.finish(&home).await;
    // The same directory under a link is still the session's.
    std::fs::remove_file(&root).unwrap();
    symlink(&moved, &root).unwrap();
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    agent.load(&session, &root).await;
    agent.prompt(&session, "write").await.unwrap();
    agent.finish(&home).await;
    assert!(moved.join("made").exists() && !outside.join("made").exists());
}
