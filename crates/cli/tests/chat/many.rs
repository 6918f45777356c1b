//! Many runs at once against one database.

use super::*;

/// Runs at once; `TEST_SOAK` asks for a thousand.
fn wanted() -> usize {
    if std::env::var_os("TEST_SOAK").is_some() { 1_000 } else { 120 }
}

/// What runs say of themselves when the machine has no time for them, which is no fault.
const SLOW: [&str; 2] =
    ["attache: the agent has not said hello yet", "attache: waiting for the end of standard input"];

#[tokio::test]
async fn many_runs_share_one_database_without_a_fault() {
    let home = home("on \"say hi\"\n  stream 20 \"Hi \" every 1ms\n");
    let expected = format!("{}\n", "Hi ".repeat(20));
    let runs = futures_util::future::join_all((0..wanted()).map(|_| chat(&home, &["-p", "say hi"])));
    for ran in runs.await {
        let is_slow = |line: &&str| SLOW.iter().any(|slow| line.starts_with(slow));
        let told: Vec<&str> = ran.told.lines().filter(|line| !is_slow(line)).collect();
        let went = (ran.code, ran.said.as_str(), told.as_slice());
        assert_eq!(went, (Some(0), expected.as_str(), &[][..]));
    }
    let listed = home.command().args(["sessions", "list", "--all", "--json"]).output().await.unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), wanted());
    assert_eq!(home.orphans(), []);
}
