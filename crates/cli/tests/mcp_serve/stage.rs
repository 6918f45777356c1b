//! What the tests of the MCP server share: a served process, its lines, and plain HTTP to it.

use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::Home;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout};

/// For anything that takes a moment; a loaded machine takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SCRIPT: &str = include_str!("../../../../peers/mcp-sdk/model.script");

pub(crate) fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    std::fs::write(home.workspace().join("a.txt"), "a line\n").unwrap();
    home
}

/// `attache mcp serve` on its standard streams.
pub(crate) struct StdioServer {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl StdioServer {
    pub(crate) fn start(home: &Home) -> Self {
        let mut command = home.command();
        command.args(["mcp", "serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output, last_id: 0 }
    }

    pub(crate) async fn greeted(home: &Home) -> Self {
        let mut server = Self::start(home);
        let answer = server.request("initialize", hello()).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        server
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string()).await;
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line, which has to be a message.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("no line in time");
        line.unwrap().map(|line| serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}")))
    }

    pub(crate) async fn start_request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// The answer; what comes before it is passed over.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start_request(method, params).await;
        loop {
            let message = self.next().await.expect("the server has ended");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(crate) async fn ask(&mut self, prompt: &str) -> Value {
        self.request("tools/call", json!({ "name": "ask", "arguments": { "prompt": prompt } })).await
    }

    pub(crate) fn end_input(&mut self) {
        self.input = None;
    }

    pub(crate) async fn wait(&mut self) -> std::process::ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it does not end").unwrap()
    }

    /// Hangs up, and fails on what was left behind.
    pub(crate) async fn finish(mut self, home: &Home) {
        self.end_input();
        while self.next().await.is_some() {}
        assert!(self.wait().await.success());
        assert_eq!(home.orphans(), []);
    }
}

pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

pub(crate) fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// `attache mcp serve --listen` on a port that the system chose.
pub(crate) struct HttpServer {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// As its start showed it; `None` where there was one already.
    pub(crate) shown_token: Option<String>,
    pub(crate) token: String,
    _errors: Lines<BufReader<tokio::process::ChildStderr>>,
}

impl HttpServer {
    pub(crate) async fn start(home: &Home) -> Self {
        let mut command = home.command();
        command.args(["mcp", "serve", "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut shown_token = None;
        loop {
            let line = tokio::time::timeout(PATIENCE, errors.next_line()).await.expect("no address in time");
            let line = line.unwrap().expect("it ended before it listened");
            if line.starts_with("attache: the token for clients, kept in ") {
                shown_token = line.rsplit(' ').next().map(str::to_owned);
            }
            if let Some(url) = line.strip_prefix("attache: MCP at http://") {
                let address = url.strip_suffix("/mcp").unwrap().to_owned();
                let token = std::fs::read_to_string(home.home().join("token")).unwrap().trim().to_owned();
                return Self { child, address, shown_token, token, _errors: errors };
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sends bytes as they are, and reads to the end of the connection.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> HttpAnswer {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // A server that refuses early may close before it has read all.
        drop(stream.write_all(bytes).await);
        let mut answer = Vec::new();
        drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("no end in time"));
        HttpAnswer::of(&answer)
    }

    /// One request, with the usual headers and these, of which an empty value takes one away.
    pub(crate) async fn request(&self, method: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        let token = format!("Bearer {}", self.token);
        let length = body.len().to_string();
        let mut all: Vec<(&str, &str)> = vec![
            ("host", &self.address),
            ("authorization", &token),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("content-length", &length),
            ("connection", "close"),
        ];
        for (name, value) in headers {
            all.retain(|(known, _)| known != name);
            if !value.is_empty() {
                all.push((name, value));
            }
        }
        let head: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.raw(format!("{method} /mcp HTTP/1.1\r\n{head}\r\n{body}").as_bytes()).await
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], message: &Value) -> HttpAnswer {
        self.request("POST", headers, &message.to_string()).await
    }

    /// Begins a conversation; gives its name.
    pub(crate) async fn begin(&self) -> String {
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello() });
        let answer = self.post(&[], &message).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        answer.header("mcp-session-id").expect("a name").to_owned()
    }

    pub(crate) async fn stop(mut self, home: &Home) {
        terminate(&self.child);
        let status =
            tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it does not end").unwrap();
        assert!(status.success(), "{status}");
        let mut printed = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut printed).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&printed), "", "stdout belongs to nobody here");
        assert_eq!(home.orphans(), []);
    }
}

/// What came back, with the pieces of the body put together.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let head = head.to_ascii_lowercase();
        let body = match head.contains("transfer-encoding: chunked") {
            true => unchunked(body),
            false => body.to_owned(),
        };
        Self { status, head, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The messages of a stream of events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        text.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or("");
    }
    text
}
