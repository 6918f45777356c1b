//! `attache models refresh` against a server of our own: new data, broken data, no data.

use attache_testkit::http_server::{Answer, HttpServer};
use serde_json::json;

use crate::stage::{address_of_nobody, newcomer, run, says, write_config};

fn published() -> serde_json::Value {
    json!({"anthropic": {"id": "anthropic", "name": "Anthropic", "models": {"claude-next": {
        "id": "claude-next", "name": "Claude Next", "attachment": true, "reasoning": true, "tool_call": true,
        "release_date": "2027-01-01", "modalities": {"input": ["text", "image"], "output": ["text"]},
        "cost": {"input": 7, "output": 70}, "limit": {"context": 2_000_000, "output": 64_000}}}}})
}

#[tokio::test]
async fn new_data_is_kept_and_used_and_bad_data_changes_nothing() {
    let server = HttpServer::in_order([
        Answer::json(200, &published()),
        Answer::json(200, &json!({"anthropic": {}})),
        Answer::new(200, "text/html", "<html>log in to the network</html>"),
        Answer::json(500, &json!({"error": "down"})),
    ])
    .await;
    let home = newcomer().with_variable("ANTHROPIC_API_KEY", "sk-x");
    write_config(&home, &format!("[catalogue]\nurl = \"{}/api.json\"\n", server.url()));
    let said = run(&home, "models refresh").await;
    assert_eq!(said.code, Some(0), "{}", said.all());
    says(&said.answer, &["attache now uses the model data of http://127.0.0.1:", "catalogue.json"]);
    assert_eq!(server.requests()[0].path, "/api.json");
    assert_eq!(server.requests()[0].header("x-api-key"), None);
    let file = home.home().join("catalogue.json");
    let kept = std::fs::read(&file).unwrap();
    for cause in ["what http://", "what http://", "http://"] {
        let said = run(&home, "models refresh").await;
        assert_eq!(said.code, Some(1), "{}", said.all());
        assert!(said.remarks.starts_with(&format!("attache: {cause}")), "the cause first: {}", said.all());
        says(&said.remarks, &["; what was fetched before stays in use"]);
        assert_eq!(std::fs::read(&file).unwrap(), kept);
    }
    let models = run(&home, "models anthropic").await;
    says(&models.answer, &["claude-next", "2M", "$7 $70"]);
    std::fs::write(&file, "{ broken").unwrap();
    let models = run(&home, "models anthropic").await;
    assert_eq!(models.code, Some(0));
    says(&models.remarks, &["catalogue.json", "attache uses its built-in model data"]);
    assert!(!models.answer.contains("claude-next"));
}

#[tokio::test]
async fn a_source_that_is_not_there_leaves_the_built_in_data() {
    let home = newcomer();
    write_config(&home, &format!("[catalogue]\nurl = \"{}/api.json\"\n", address_of_nobody()));
    let said = run(&home, "models refresh").await;
    assert_eq!(said.code, Some(1));
    assert!(said.remarks.starts_with("attache: nothing answers at http://"), "{}", said.all());
    says(&said.remarks, &["; the built-in data stays in use. ", "url in [catalogue]"]);
    assert!(!home.home().join("catalogue.json").exists());
}
