//! What a client wrote before it left takes effect, whichever way it is connected and however it leaves.

use std::process::Stdio;

use attache_testkit::binary::Home;
use attache_testkit::client::{Reply, TestClient};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};

use crate::frames::frame;
use crate::plain_http::{Events, head};
use crate::served_stage::until;
use crate::server::{PATIENCE, SCRIPT, ServedAgent, Server, hello};
use crate::sockets::UPGRADE;

const ROUNDS: usize = 3;

/// How a client leaves right behind its last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// It says that it leaves: the end of its input, a close frame, a DELETE.
    InOrder,
    /// It is gone, with everything that it has not read.
    AtOnce,
    /// A signal ends it, where it is a process.
    Terminated,
}

/// What it says last, in a session that it has loaded if it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWords {
    Cancel,
    LoadAndCancel,
    Prompt,
    Permission,
}

const ALL_LAST_WORDS: [LastWords; 4] =
    [LastWords::Cancel, LastWords::LoadAndCancel, LastWords::Prompt, LastWords::Permission];

trait Reading: AsyncRead + Send + Unpin {}
impl<T: AsyncRead + Send + Unpin> Reading for T {}
trait Writing: AsyncWrite + Send + Unpin {}
impl<T: AsyncWrite + Send + Unpin> Writing for T {}

/// Messages over one pair of streams: lines of a process, or frames of a WebSocket.
struct WireClient {
    reader: Box<dyn Reading>,
    writer: Box<dyn Writing>,
    child: Option<Child>,
    received: String,
}

impl WireClient {
    /// `attache acp` with these arguments.
    async fn bridge(mut command: Command, arguments: &[&str]) -> Self {
        command.arg("acp").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let (reader, writer): (Box<dyn Reading>, Box<dyn Writing>) = (Box::new(reader), Box::new(writer));
        Self { reader, writer, child: Some(child), received: String::new() }
    }

    async fn socket(stream: impl AsyncRead + AsyncWrite + Send + 'static, host: &str, token: &str) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        let mut client = Self { reader, writer, child: None, received: String::new() };
        let request = head(host, token, ("GET", "/acp"), &UPGRADE, &[]);
        client.writer.write_all(request.as_bytes()).await.unwrap();
        client.wait_for("\r\n\r\n").await;
        assert!(client.received.starts_with("HTTP/1.1 101"), "{}", client.received);
        client
    }

    fn encoded(&self, messages: &[Value]) -> Vec<u8> {
        let of_one = |message: &Value| match self.child {
            Some(_) => format!("{message}\n").into_bytes(),
            None => frame(0x81, message.to_string().as_bytes()),
        };
        messages.iter().flat_map(of_one).collect()
    }

    async fn say(&mut self, messages: &[Value]) {
        let bytes = self.encoded(messages);
        self.writer.write_all(&bytes).await.unwrap();
        self.writer.flush().await.unwrap();
    }

    async fn wait_for(&mut self, words: &str) {
        while !self.received.contains(words) {
            let mut bytes = vec![0; 64 * 1024];
            let read = tokio::time::timeout(PATIENCE, self.reader.read(&mut bytes)).await.expect("no answer");
            let count = read.unwrap();
            assert!(count > 0, "{words:?} is not in {}", self.received);
            self.received.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    async fn leave(mut self, last: &[Value], leaving: Leaving) {
        let mut bytes = self.encoded(last);
        if self.child.is_none() && leaving == Leaving::InOrder {
            bytes.extend(frame(0x88, &1000_u16.to_be_bytes()));
        }
        self.writer.write_all(&bytes).await.unwrap();
        self.writer.flush().await.unwrap();
        let Some(mut child) = self.child else { return };
        match leaving {
            Leaving::InOrder => {
                drop(self.writer);
                let mut rest = Vec::new();
                self.reader.read_to_end(&mut rest).await.unwrap();
            }
            Leaving::AtOnce => {
                drop(self.reader);
                drop(self.writer);
            }
            Leaving::Terminated => {
                let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
                kill_process(pid, Signal::TERM).unwrap();
            }
        }
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it stays").unwrap();
        assert!(ended.success(), "{ended}");
    }
}

/// Messages as POSTs, none of whose answers is waited for at the end.
struct HttpClient<'a> {
    server: &'a Server,
    connection: String,
    events: Events,
    received: String,
}

impl<'a> HttpClient<'a> {
    async fn begin(server: &'a Server) -> Self {
        let connection = server.begin().await;
        let events = server.events(&[("acp-connection-id", &connection)]).await;
        Self { server, connection, events, received: String::new() }
    }

    async fn say(&mut self, messages: &[Value]) {
        for message in messages {
            let answer = self.server.post(&[("acp-connection-id", &self.connection)], message).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    }

    async fn wait_for(&mut self, words: &str) {
        while !self.received.contains(words) {
            self.received.push_str(&self.events.next().await.expect("the stream ended").data);
        }
    }

    async fn leave(self, last: &[Value], leaving: Leaving) {
        let mut open = Vec::new();
        for message in last {
            open.push(self.send("POST", &message.to_string()).await);
            // Two sockets have no order.
            if message != last.last().unwrap() {
                let mut answer = [0; 12];
                open.last_mut().unwrap().read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, b"HTTP/1.1 202");
            }
        }
        if leaving == Leaving::InOrder {
            // It is on its way when the end is asked for.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            open.push(self.send("DELETE", "").await);
        }
    }

    async fn send(&self, method: &str, body: &str) -> TcpStream {
        let length = body.len().to_string();
        let usual = [("content-type", "application/json"), ("content-length", length.as_str())];
        let id = [("acp-connection-id", self.connection.as_str())];
        let head = head(&self.server.address, &self.server.token, (method, "/acp"), &usual, &id);
        let mut stream = TcpStream::connect(&self.server.address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }
}

enum LeavingClient<'a> {
    Wire(WireClient),
    Http(HttpClient<'a>),
}

impl LeavingClient<'_> {
    async fn say(&mut self, messages: &[Value]) {
        match self {
            Self::Wire(client) => client.say(messages).await,
            Self::Http(client) => client.say(messages).await,
        }
    }

    async fn wait_for(&mut self, words: &str) -> &str {
        match self {
            Self::Wire(client) => client.wait_for(words).await,
            Self::Http(client) => client.wait_for(words).await,
        }
        match self {
            Self::Wire(client) => &client.received,
            Self::Http(client) => &client.received,
        }
    }

    async fn leave(self, last: &[Value], leaving: Leaving) {
        match self {
            Self::Wire(client) => client.leave(last, leaving).await,
            Self::Http(client) => client.leave(last, leaving).await,
        }
    }

    async fn greet(&mut self) {
        if let Self::Wire(client) = self {
            client.say(&[hello()]).await;
            client.wait_for("protocolVersion").await;
        }
    }
}

/// Who stays and sees what comes of it.
struct Observer<'a> {
    client: &'a TestClient,
    home: &'a Home,
    session: String,
}

impl<'a> Observer<'a> {
    async fn new(client: &'a TestClient, home: &'a Home) -> Self {
        client.set_policy(|_, _| Reply::Never);
        let place = json!({ "cwd": home.workspace(), "mcpServers": [] });
        let made = client.expect("session/new", place).await;
        Self { client, home, session: made["sessionId"].as_str().unwrap().to_owned() }
    }

    fn prompt(&self, text: &str) -> attache_testkit::client::Pending {
        self.client.start("session/prompt", prompt_params(&self.session, text))
    }

    async fn leaves_nothing_undone(&self, mut client: LeavingClient<'_>, last: LastWords, leaving: Leaving) {
        let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load",
            "params": { "sessionId": self.session, "cwd": self.home.workspace(), "mcpServers": [] } });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": self.session } });
        client.greet().await;
        if last != LastWords::LoadAndCancel {
            client.say(std::slice::from_ref(&load)).await;
            client.wait_for(r#""id":1,"result""#).await;
        }
        let mark = self.client.mark();
        match last {
            LastWords::Cancel | LastWords::LoadAndCancel => {
                let slow = self.prompt("slow");
                let is_tick = |update: &Value| update["content"]["text"] == "tick ";
                until("the slow answer", PATIENCE, || {
                    self.client.updates_since(mark, &self.session).iter().any(is_tick)
                })
                .await;
                let said = if last == LastWords::Cancel { vec![cancel] } else { vec![load, cancel] };
                client.leave(&said, leaving).await;
                let answer = slow.answer_within(PATIENCE).await.unwrap();
                assert_eq!(answer["stopReason"], "cancelled", "{last:?} {leaving:?}");
            }
            LastWords::Prompt => {
                let text = format!("left behind {mark}");
                let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt",
                    "params": prompt_params(&self.session, &text) });
                client.leave(&[prompt], leaving).await;
                let is_it = |message: &Value| message["params"]["update"]["content"]["text"] == text.as_str();
                self.client.wait_for_within(PATIENCE, "the prompt of who left", is_it).await;
            }
            LastWords::Permission => {
                let canary = self.home.workspace().join("canary");
                drop(std::fs::remove_file(&canary));
                let run = self.prompt("run");
                let asked = client.wait_for("session/request_permission").await;
                let before = asked.split(r#","method":"session/request_permission""#).next().unwrap();
                let id: u64 = before.rsplit(':').next().unwrap().parse().unwrap();
                let outcome = json!({ "outcome": "selected", "optionId": "allow_once" });
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } });
                client.leave(&[answer], leaving).await;
                assert_eq!(run.answer_within(PATIENCE).await.unwrap()["stopReason"], "end_turn");
                assert_eq!(std::fs::read_to_string(canary).unwrap(), "ran\n");
            }
        }
    }
}

fn prompt_params(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

async fn bridge_leaves(home: &Home, client: &TestClient, arguments: &[&str]) {
    let observer = Observer::new(client, home).await;
    for leaving in [Leaving::InOrder, Leaving::AtOnce, Leaving::Terminated] {
        for last in ALL_LAST_WORDS {
            for _ in 0..ROUNDS {
                let leaver = LeavingClient::Wire(WireClient::bridge(home.command(), arguments).await);
                observer.leaves_nothing_undone(leaver, last, leaving).await;
            }
        }
    }
}

#[tokio::test]
async fn an_editor_of_the_shared_server() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[serve]\nidle_seconds = 2\n");
    let mut stays = home.start_with(&["--shared"]);
    stays.initialize().await;
    bridge_leaves(&home, &stays.client, &["--shared"]).await;
    assert!(stays.end().await.success());
    // Nobody is taken to come back.
    let end = std::time::Instant::now() + PATIENCE;
    while !home.processes().is_empty() {
        assert!(std::time::Instant::now() < end, "the server does not stand down");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_editor_of_a_server_elsewhere() {
    let server = Server::start().await;
    let stays = server.socket_client().await;
    let url = format!("http://{}", server.address);
    bridge_leaves(&server.home, &stays.client, &["--connect", &url]).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_over_a_websocket() {
    let server = Server::start().await;
    let stays = server.socket_client().await;
    let observer = Observer::new(&stays.client, &server.home).await;
    for leaving in [Leaving::InOrder, Leaving::AtOnce] {
        for last in ALL_LAST_WORDS {
            for _ in 0..ROUNDS {
                let stream = TcpStream::connect(&server.address).await.unwrap();
                let leaver = WireClient::socket(stream, &server.address, &server.token).await;
                observer.leaves_nothing_undone(LeavingClient::Wire(leaver), last, leaving).await;
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_over_a_socket_of_this_machine() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    let path = home.home().join("agent.sock");
    let listen = format!("unix:{}", path.display());
    let server = Server::at(home, &listen, &[]).await;
    let connected = async || {
        let stream = UnixStream::connect(&path).await.unwrap();
        WireClient::socket(stream, "localhost", &server.token).await
    };
    let stays = server.home.start_with(&["--connect", &listen]);
    stays.initialize().await;
    let observer = Observer::new(&stays.client, &server.home).await;
    for leaving in [Leaving::InOrder, Leaving::AtOnce] {
        for last in ALL_LAST_WORDS {
            for _ in 0..ROUNDS {
                observer.leaves_nothing_undone(LeavingClient::Wire(connected().await), last, leaving).await;
            }
        }
    }
    stays.client.end_input();
    server.stop().await;
}

#[tokio::test]
async fn a_client_over_http() {
    let server = Server::start().await;
    let stays: ServedAgent = server.socket_client().await;
    let observer = Observer::new(&stays.client, &server.home).await;
    for leaving in [Leaving::InOrder, Leaving::AtOnce] {
        for last in ALL_LAST_WORDS {
            for _ in 0..ROUNDS {
                let leaver = LeavingClient::Http(HttpClient::begin(&server).await);
                observer.leaves_nothing_undone(leaver, last, leaving).await;
            }
        }
    }
    server.stop().await;
}

/// What `printf … | attache acp …` prints.
async fn piped(home: &Home, arguments: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut command = home.command();
    command.arg("acp").args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let text: String = requests.iter().map(|request| format!("{request}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("it stays").unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}

#[tokio::test]
async fn what_was_asked_is_answered_though_the_input_ends_at_once() {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
    home.write_config("[serve]\nidle_seconds = 1\n");
    let server = Server::of(home, &[]).await;
    let stays = server.socket_client().await;
    let session = stays.new_session(&server.home.workspace()).await;
    let url = format!("http://{}", server.address);
    let ask = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let place = json!({ "sessionId": session, "cwd": server.home.workspace(), "mcpServers": [] });
    let mut requests = vec![
        hello(),
        ask(1, "session/new", json!({ "cwd": server.home.workspace(), "mcpServers": [] })),
        ask(2, "no/such/method", json!({})),
        ask(3, "session/load", place),
    ];
    requests.extend((4..100).map(|id| ask(id, "session/list", json!({}))));
    for arguments in [&[][..], &["--connect", &url], &["--shared"]] {
        // Its own server of the same home: what the one has open, the other may only read.
        let requests: Vec<Value> = match arguments {
            ["--connect", _] => requests.clone(),
            _ => requests.iter().filter(|request| request["id"] != 3).cloned().collect(),
        };
        let said = piped(&server.home, arguments, &requests).await;
        for request in &requests {
            let answers: Vec<&Value> =
                said.iter().filter(|line| line["id"] == request["id"] && line["method"].is_null()).collect();
            assert_eq!(answers.len(), 1, "{arguments:?} {request}: {answers:?}");
            // An agent of its own ends with its editor.
            if !arguments.is_empty() && request["id"] != 2 {
                assert!(answers[0]["result"].is_object(), "{arguments:?} {request}: {answers:?}");
            }
        }
    }
    // A turn is not waited for, and goes on.
    let turn = [hello(), requests[3].clone(), ask(4, "session/prompt", prompt_params(&session, "slow"))];
    let begun = std::time::Instant::now();
    let said = piped(&server.home, &["--connect", &url], &turn).await;
    let answer = said.iter().find(|line| line["id"] == 4 && line["method"].is_null()).unwrap();
    let reason = answer["error"]["message"].as_str().unwrap();
    assert!(reason.contains("left") && begun.elapsed() < PATIENCE, "{answer}");
    let params = json!({ "sessionId": session });
    let status = stays.client.expect("_attache/session/status", params.clone()).await;
    assert_eq!(status["state"], "busy");
    stays.client.notify("session/cancel", params);
    until("the shared server stands down", PATIENCE, || {
        !server.home.processes().iter().any(|process| process.command.contains("--daemon"))
    })
    .await;
    server.stop().await;
}

/// Ctrl-C of a script's chat ends the turn at the server, too.
#[tokio::test]
async fn a_chat_that_is_interrupted_leaves_no_turn_behind() {
    let server = Server::start().await;
    let stays = server.socket_client().await;
    let url = format!("http://{}", server.address);
    let mut command = server.home.command();
    command.args(["chat", "-p", "--connect", &url, "slow"]).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let state = async || {
        let listed = stays.client.expect("session/list", json!({})).await;
        let id = listed["sessions"][0]["sessionId"].as_str()?.to_owned();
        let status = stays.client.expect("_attache/session/status", json!({ "sessionId": id })).await;
        status["state"].as_str().map(str::to_owned)
    };
    let wait_for = async |wanted: &str| {
        let end = std::time::Instant::now() + PATIENCE;
        while state().await.as_deref() != Some(wanted) {
            assert!(std::time::Instant::now() < end, "never {wanted}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    wait_for("busy").await;
    kill_process(Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it stays").unwrap();
    assert_eq!(ended.code(), Some(130));
    wait_for("idle").await;
    server.stop().await;
}
