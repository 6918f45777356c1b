//! Many runs at once against one database.

use super::*;

/// Runs at once; `TEST_SOAK` multiplies them, 25 of it makes a thousand.
const RUNS: usize = 40;

#[tokio::test]
async fn many_runs_share_one_database_without_a_fault() {
    let home = home("on \"say hi\"\n  stream 20 \"Hi \" every 1ms\n");
    let soak: usize = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let expected = format!("{}\n", "Hi ".repeat(20));
    let runs = futures_util::future::join_all((0..RUNS * soak).map(|_| chat(&home, &["-p", "say hi"])));
    for ran in runs.await {
        let went = (ran.code, ran.said.as_str(), ran.told.as_str());
        assert_eq!(went, (Some(0), expected.as_str(), ""));
    }
    let listed = home.command().args(["sessions", "list", "--all", "--json"]).output().await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), RUNS * soak);
    assert_eq!(home.orphans(), []);
}
