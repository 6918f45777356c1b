//! The page, in headless Chromium, as its user has it: every view, a turn that runs, questions, hostile texts,
//! the login, what a script can judge of accessibility.

use std::path::PathBuf;

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use crate::server::Server;

const SCRIPT: &str = include_str!("../page/model.script");
const PRICE: &str = "[providers.script.models.default]\n\
     price = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }\nimages = true\n";

const LIMITER: &str = "pub struct Limiter {\n    start: Instant,\n    window: Duration,\n    count: u32,\n    limit: u32,\n}\n\n\
     impl Limiter {\n    pub fn allow(&mut self, now: Instant) -> bool {\n        if now >= self.start + self.window {\n\
     \x20           self.start = now;\n            self.count = 0;\n        }\n        self.count += 1;\n\
     \x20       self.count <= self.limit\n    }\n}\n";

/// What has to be said to hold: its steps, and what is judged over all of them.
const LEAST_STEPS: usize = 26;

async fn opened() -> (Server, String) {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let config = home.home().join("config.toml");
    let configured = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{configured}\n{PRICE}")).unwrap();
    std::fs::create_dir(home.workspace().join("src")).unwrap();
    std::fs::write(home.workspace().join("src/limiter.rs"), LIMITER).unwrap();
    std::fs::write(home.workspace().join("src/main.rs"), "fn main() {}\n").unwrap();
    let hostile = "<img src=x onerror=window.broken=10>.txt";
    std::fs::write(home.workspace().join(hostile), "<script>window.broken=30</script>\n").unwrap();
    let project = home.workspace().join("project/.attache");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("config.toml"), "[limits]\nmax_steps = 50\n").unwrap();
    let mut server = Server::of(home, &["--open"]).await;
    let told = server.next_line().await;
    let (_, link) = told.split_once(&server.address).unwrap_or_else(|| panic!("{told}"));
    let link = link.trim().to_owned();
    (server, link)
}

/// A script of the peer, run to its end; gives what it says.
async fn run(server: &Server, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let mut script = server.home.program("node");
    script
        .current_dir(PathBuf::from(&peers).join("page"))
        .args(arguments)
        .env("TEST_ADDRESS", &server.address);
    script.envs(variables.iter().copied());
    if let Some(pictures) = std::env::var_os("TEST_PICTURES") {
        script.env("TEST_PICTURES", pictures);
    }
    let output = script.output().await.expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    report
}

/// With TEST_PICTURES, a directory, the pictures of the documentation are taken.
#[tokio::test]
async fn the_page_does_what_it_shows_and_nothing_else() {
    let (server, link) = opened().await;
    let report = run(&server, &["check.mjs"], &[("TEST_LINK", &link)]).await;
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    server.stop().await;
}

/// Only what is in sight is read and drawn, wherever that is.
#[tokio::test]
async fn a_session_of_many_thousand_parts_is_seen_from_any_place() {
    let (server, link) = opened().await;
    let agent = server.socket_client().await;
    let session = agent.new_session(&server.home.workspace()).await;
    agent.prompt(&session, "Make a plan for the release").await.unwrap();
    let params = json!({ "sessionId": session, "format": "jsonl" });
    let export = agent.client.expect("_attache/session/export", params).await;
    let (short, long) = (server.home.home().join("short.jsonl"), server.home.home().join("long.jsonl"));
    std::fs::write(&short, export["content"].as_str().unwrap()).unwrap();
    let text = run(&server, &["large.mjs", short.to_str().unwrap(), "4", "5000"], &[]).await;
    std::fs::write(&long, text).unwrap();
    let imported = server.home.command().args(["sessions", "import"]).arg(&long).output().await.unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let listed = server.request(("GET", "/api/sessions"), &[], "").await.json();
    let sessions = listed["sessions"].as_array().unwrap();
    let long = sessions.iter().find(|one| one["title"] == "4 turns of 5000 parts").expect("the import");
    let variables = [("TEST_LINK", link.as_str()), ("TEST_SESSION", long["id"].as_str().unwrap())];
    let seen: Value = serde_json::from_str(&run(&server, &["paint.mjs"], &variables).await).unwrap();
    assert_eq!((&seen["unseen"], &seen["troubles"]), (&json!(0), &json!([])), "{seen}");
    assert!(seen["rows"].as_u64().unwrap() < 200 && seen["height"].as_f64().unwrap() > 200_000.0, "{seen}");
    server.stop().await;
}
