//! `/init`, from what is typed to the file that is there.

use serde_json::json;

use crate::stage::Stage;

const SCRIPT: &str = r##"
on "Write an `AGENTS.md` in the root"*
  call read {"path":"README.md"}
  ---
  call write {"path":"AGENTS.md","content":"# Bakery\n\nBuild it with `make bread`.\n"}
  ---
  text "There is one now."
"##;

#[tokio::test]
async fn init_makes_an_agents_md_that_its_user_has_seen_before() {
    let stage = Stage::new(SCRIPT).await;
    std::fs::write(stage.file("README.md"), "# Bakery\n\n`make bread` builds it.\n").unwrap();
    stage.agent.client.always_choose("allow_once");
    let answer = stage.agent.prompt(&stage.session, "/init the build").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    let asked = stage.question(0).await;
    let change = json!(asked["params"]["toolCall"]["content"]).to_string();
    assert!(
        change.contains("AGENTS.md") && change.contains("make bread"),
        "shown before it is written: {change}"
    );
    assert_eq!(
        std::fs::read_to_string(stage.file("AGENTS.md")).unwrap(),
        "# Bakery\n\nBuild it with `make bread`.\n"
    );
    stage.finish().await;
}

#[tokio::test]
async fn init_that_is_refused_writes_nothing() {
    let stage = Stage::new(SCRIPT).await;
    std::fs::write(stage.file("README.md"), "# Bakery\n").unwrap();
    stage.agent.client.always_choose("reject_once");
    let answer = stage.agent.prompt(&stage.session, "/init").await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(!stage.file("AGENTS.md").exists());
    stage.finish().await;
}
