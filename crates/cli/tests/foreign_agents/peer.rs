//! Starts the agents of others and the homes that are configured for them.

use std::path::PathBuf;
use std::process::Stdio;

use attache_testkit::binary::{Agent, Home};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// A server that ends when its input does.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: String,
    process: Child,
    pid: u32,
}

impl Drop for Peer {
    /// It is killed, so it can't remove what it kept itself: a LangGraph server has a directory by its number.
    fn drop(&mut self) {
        drop(self.process.start_kill());
        let kept = format!("attache-langgraph-{}-", self.pid);
        for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&kept) {
                // What it still writes goes with the next server that starts.
                drop(std::fs::remove_dir_all(entry.path()));
            }
        }
    }
}

pub(crate) fn peers() -> PathBuf {
    std::env::var_os("TEST_PEERS").expect("TEST_PEERS is not set: run cargo xtask test").into()
}

impl Peer {
    /// The chat app of the AI SDK, with the version of the package in this folder of the peers.
    pub(crate) async fn ai_sdk(version: &str) -> Self {
        Self::ai_sdk_at(version, 0).await
    }

    pub(crate) async fn ai_sdk_at(version: &str, port: u16) -> Self {
        let folder = peers().join(version);
        let mut command = Command::new("node");
        command.arg(peers().join("ai/agent.mjs")).arg(folder).arg(port.to_string());
        Self::start(command).await
    }

    /// A server of PyPI, by its folder.
    pub(crate) async fn python(name: &str) -> Self {
        Self::python_at(name, 0).await
    }

    pub(crate) async fn python_at(name: &str, port: u16) -> Self {
        let mut command = Command::new("python3");
        command.arg(peers().join(name).join("serve.py")).arg(port.to_string());
        Self::start(command).await
    }

    /// A program whose first line is its address.
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program of a peer must be installed");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("a piped stdout");
        let mut lines = BufReader::new(stdout);
        lines.read_line(&mut line).await.expect("the address of the server");
        // Whatever else it says must not fill the pipe.
        tokio::spawn(async move { tokio::io::copy(&mut lines, &mut tokio::io::sink()).await });
        let address = line.trim().strip_prefix("http://").expect("an address").to_owned();
        let pid = process.id().expect("a process that was just started");
        Self { address, process, pid }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    pub(crate) async fn kill(&mut self) {
        self.process.kill().await.expect("kill our own child");
    }

    /// What it was posted: each body with its `authorization`.
    pub(crate) async fn posts(&self) -> Vec<Value> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("GET / HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }
}

/// A home whose agent `support` is this one; the model is the script's.
pub(crate) fn home_with(agent: &str, script: &str) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script).with_variable("SUPPORT_TOKEN", "s3cret");
    home.write_config(&format!("\n[agents.support]\n{agent}\n"));
    home
}

/// The same without any model, whatever runs on this machine.
pub(crate) fn home_without_model(agent: &str) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "").with_variable("SUPPORT_TOKEN", "s3cret");
    std::fs::write(home.home().join("config.toml"), format!("[agents.support]\n{agent}\n")).unwrap();
    let vendors = ["OLLAMA", "LLAMACPP", "VLLM", "LMSTUDIO"].into_iter();
    // Nobody listens on this port.
    vendors
        .fold(home, |home, vendor| home.with_variable(&format!("{vendor}_BASE_URL"), "http://127.0.0.1:1/v1"))
}

pub(crate) fn ai_sdk_entry(address: &str, more: &str) -> String {
    format!(
        "backend = \"ai-sdk\"\nurl = \"http://{address}/api/chat\"\n\
         headers = {{ Authorization = \"Bearer ${{SUPPORT_TOKEN}}\" }}\n{more}"
    )
}

pub(crate) fn langgraph_entry(peer: &Peer) -> String {
    format!("backend = \"langgraph\"\nurl = \"http://{}\"\nassistant = \"agent\"\n", peer.address)
}

/// Where the agents are that Python programs have, and their packages.
pub(crate) fn python_agents() -> PathBuf {
    peers().join("python-agents")
}

pub(crate) fn python_entry(agent: &str, more: &str) -> String {
    let folder = python_agents();
    let (directory, packages) = (folder.display(), folder.join("python"));
    format!(
        "backend = \"python\"\nmodule = \"{agent}\"\ndirectory = \"{directory}\"\npython = \"python3\"\n\
         env = {{ PYTHONPATH = \"{}\" }}\n{more}",
        packages.display()
    )
}

pub(crate) fn acp_entry(command: &[&str], more: &str) -> String {
    format!("backend = \"acp\"\ncommand = {}\n{more}", json!(command))
}

/// The agent on the official SDK.
pub(crate) fn sdk_entry() -> String {
    let program = peers().join("acp-sdk/agent.mjs");
    acp_entry(&["node", program.to_str().expect("a path in UTF-8")], "")
}

/// How often a kill is tried: a few times in a test run, and 100 times or more in a soak, which sets
/// `TEST_SOAK`.
pub(crate) fn times() -> u32 {
    let soak = std::env::var("TEST_SOAK").ok().and_then(|text| text.parse::<u32>().ok());
    soak.map_or(2, |repeats| repeats.max(100))
}

/// A session whose agent is `support`.
pub(crate) async fn opened(home: &Home) -> (Agent, String) {
    let agent = home.start_with(&["--agent", "support"]);
    let session = agent.open_session(home).await;
    (agent, session)
}

pub(crate) async fn told(agent: &Agent, session: &str, text: &str) -> String {
    let mark = agent.client.mark();
    let answer = agent.prompt(session, text).await;
    answer.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    text_of(&agent.client.updates_since(mark, session))
}

pub(crate) fn text_of(updates: &[Value]) -> String {
    let said = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    said.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// The last status of each call, by its id.
pub(crate) fn calls(updates: &[Value]) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String)> = Vec::new();
    for update in updates {
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let Some(status) = update["status"].as_str() else { continue };
        match calls.iter_mut().find(|(known, _)| known == id) {
            Some((_, last)) => status.clone_into(last),
            None => calls.push((id.to_owned(), status.to_owned())),
        }
    }
    calls
}

pub(crate) fn is_question(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

pub(crate) fn prompt(session: &str, blocks: Value) -> Value {
    json!({ "sessionId": session, "prompt": blocks })
}
