//! The page, in headless Chromium, as its user has it: every view, a turn that runs, questions, hostile texts,
//! the login, what a script can judge of accessibility.

use std::path::PathBuf;

use attache_testkit::binary::Home;

use crate::server::Server;

const SCRIPT: &str = include_str!("../page/model.script");
const PRICE: &str = "[providers.script.models.default]\n\
     price = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }\n";

const LIMITER: &str = "pub struct Limiter {\n    start: Instant,\n    window: Duration,\n    count: u32,\n    limit: u32,\n}\n\n\
     impl Limiter {\n    pub fn allow(&mut self, now: Instant) -> bool {\n        if now >= self.start + self.window {\n\
     \x20           self.start = now;\n            self.count = 0;\n        }\n        self.count += 1;\n\
     \x20       self.count <= self.limit\n    }\n}\n";

/// What has to be said to hold: its steps, and what is judged over all of them.
const LEAST_STEPS: usize = 19;

/// With TEST_PICTURES, a directory, the pictures of the documentation are taken.
#[tokio::test]
async fn the_page_does_what_it_shows_and_nothing_else() {
    let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let config = home.home().join("config.toml");
    let configured = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{configured}\n{PRICE}")).unwrap();
    std::fs::create_dir(home.workspace().join("src")).unwrap();
    std::fs::write(home.workspace().join("src/limiter.rs"), LIMITER).unwrap();
    std::fs::write(home.workspace().join("src/main.rs"), "fn main() {}\n").unwrap();
    let hostile = "<img src=x onerror=window.broken=10>.txt";
    std::fs::write(home.workspace().join(hostile), "<script>window.broken=30</script>\n").unwrap();
    let mut server = Server::of(home, &["--open"]).await;
    let told = server.next_line().await;
    let (_, link) = told.split_once(&server.address).unwrap_or_else(|| panic!("{told}"));
    let mut check = server.home.program("node");
    check
        .arg(PathBuf::from(&peers).join("page/check.mjs"))
        .env("TEST_ADDRESS", &server.address)
        .env("TEST_LINK", link.trim());
    if let Some(pictures) = std::env::var_os("TEST_PICTURES") {
        check.env("TEST_PICTURES", pictures);
    }
    let output = check.output().await.expect("node must be installed");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let done = report.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(done >= LEAST_STEPS, "{report}");
    server.stop().await;
}
