//! The configured small model names a session at the binary.

use attache_testkit::binary::Home;

use crate::stage::Stage;

const SCRIPT: &str = "model small\non \"<user>\"*\n  text \"Naming things\"\non *\n  text \"fine\"";

#[tokio::test]
async fn the_small_model_of_the_configuration_names_a_session() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("small_model = \"script/small\"");
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let stage = Stage { home, agent, session };
    assert_eq!(stage.agent.prompt(&stage.session, "name it").await.unwrap()["stopReason"], "end_turn");
    let named = |message: &serde_json::Value| message["params"]["update"]["title"] == "Naming things";
    stage.agent.client.wait_for("the title", named).await;
    stage.finish().await;
}
