//! Many runs at once against one database.

use super::*;

/// Runs at once; `TEST_SOAK` asks for a thousand.
fn wanted() -> usize {
    if std::env::var_os("TEST_SOAK").is_some() { 1_000 } else { 120 }
}

/// What a run says of itself when the machine has no time for it, which is no fault.
const SLOW: &str = "attache: the agent has not said hello yet; waiting 120 s at most\n";

#[tokio::test]
async fn many_runs_share_one_database_without_a_fault() {
    let home = home("on \"say hi\"\n  stream 20 \"Hi \" every 1ms\n");
    let expected = format!("{}\n", "Hi ".repeat(20));
    let runs = futures_util::future::join_all((0..wanted()).map(|_| chat(&home, &["-p", "say hi"])));
    for ran in runs.await {
        let told = ran.told.strip_prefix(SLOW).unwrap_or(&ran.told);
        let went = (ran.code, ran.said.as_str(), told);
        assert_eq!(went, (Some(0), expected.as_str(), ""));
    }
    let listed = home.command().args(["sessions", "list", "--all", "--json"]).output().await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), wanted());
    assert_eq!(home.orphans(), []);
}
