//! One aimock process and a home that points at it.

use std::path::PathBuf;
use std::process::Stdio;

use attache_testkit::binary::Home;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The dialects the server speaks, by their names in the configuration.
pub(crate) const DIALECTS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// The key the home sends.
pub(crate) const KEY: &str = "sk-aimock-canary-0123456789";

#[derive(Debug)]
pub(crate) struct Server {
    address: String,
    /// Ends when its input does.
    _process: Child,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Refuses every other key.
    pub(crate) async fn with_key(key: &str) -> Self {
        Self::start_with(&[key]).await
    }

    async fn start_with(arguments: &[&str]) -> Self {
        let peers = std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test");
        let folder = PathBuf::from(peers).join("aimock");
        let mut process = Command::new("node")
            .arg(folder.join("serve.mjs"))
            .arg(folder.join("conversation.json"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node must be installed");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("a piped stdout");
        BufReader::new(stdout).read_line(&mut line).await.expect("the address of the server");
        let address = line.trim().strip_prefix("http://").expect("an address").to_owned();
        Self { address, _process: process }
    }

    /// A home whose only model is this server's, in one dialect.
    pub(crate) fn home(&self, dialect: &str) -> Home {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), "").with_variable("MOCK_KEY", KEY);
        let version = if dialect.starts_with("openai") { "/v1" } else { "" };
        let config = format!(
            "model = \"mock/model-1\"\n\n[providers.mock]\ndialect = \"{dialect}\"\n\
             base_url = \"http://{}{version}\"\napi_key_env = \"MOCK_KEY\"\n\n\
             [providers.mock.models.\"model-1\"]\ncontext = 100000\nmax_output = 4000\n",
            self.address
        );
        std::fs::write(home.home().join("config.toml"), config).unwrap();
        std::fs::write(home.workspace().join("notes.txt"), "buy milk\n").unwrap();
        home
    }

    /// The requests the server was sent, as it recorded them; each held to the rules of its dialect.
    pub(crate) async fn requests(&self, dialect: &str) -> Vec<Value> {
        let journal = self.get("/__aimock/journal").await;
        let entries: Vec<Value> =
            serde_json::from_str(&journal).unwrap_or_else(|error| panic!("{error}: {journal}"));
        let bodies: Vec<Value> = entries.into_iter().map(|entry| entry["body"].clone()).collect();
        assert!(!bodies.is_empty(), "{dialect}: the server was asked nothing");
        bodies
    }

    async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }
}
