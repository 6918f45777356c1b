//! A served process, and the token and address that its clients need.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_testkit::binary::Home;
use attache_testkit::client::TestClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::plain_http::{Events, HttpAnswer, raw, request};
use crate::{sockets, streams};

/// For anything that takes a moment; a loaded machine takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SCRIPT: &str = r#"
on "slow"
  stream 100000 "tick " every 5ms
on "count"
  stream 400 "number " every 1ms
on "run"
  call bash {"command":"echo ran >> canary"}
  ---
  text "done"
on *
  text "ok"
"#;

pub(crate) struct Server {
    pub(crate) home: Home,
    pub(crate) child: Child,
    /// `HOST:PORT`.
    pub(crate) address: String,
    pub(crate) token: String,
    /// What it has said on stderr; always read, so that it never waits for us.
    pub(crate) told: Arc<Mutex<Vec<String>>>,
    /// What of it was looked at.
    looked: usize,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &[]).await
    }

    pub(crate) async fn of(home: Home, arguments: &[&str]) -> Self {
        Self::at(home, "127.0.0.1:0", arguments).await
    }

    /// Listening there; the address is read from what it says.
    pub(crate) async fn at(home: Home, listen: &str, arguments: &[&str]) -> Self {
        Self::by(home, &[&["--listen", listen], arguments].concat()).await
    }

    /// With these arguments alone.
    pub(crate) async fn by(home: Home, arguments: &[&str]) -> Self {
        let mut command = home.command();
        command.arg("serve").args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = Arc::<Mutex<Vec<String>>>::default();
        let address = loop {
            let line = tokio::time::timeout(PATIENCE, errors.next_line()).await.expect("it says nothing");
            let line = line.unwrap().expect("it ended at once");
            told.lock().unwrap().push(line.clone());
            if let Some((_, rest)) = line.split_once("ACP at ") {
                let place = rest.split("/acp").next().unwrap().trim_end_matches(", ");
                break place.trim_start_matches("http://").to_owned();
            }
        };
        let token = std::fs::read_to_string(home.home().join("token")).unwrap().trim().to_owned();
        let heard = told.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = errors.next_line().await {
                heard.lock().unwrap().push(line);
            }
        });
        let looked = told.lock().unwrap().len();
        Self { home, child, address, token, told, looked }
    }

    pub(crate) async fn wait_until_told(&self, words: &str) {
        let told = async {
            while !self.told.lock().unwrap().iter().any(|line| line.contains(words)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, told).await.is_err() {
            panic!("{words:?} is not in {:?}", self.told.lock().unwrap());
        }
    }

    /// The next thing that it says of itself.
    pub(crate) async fn next_line(&mut self) -> String {
        let said = async {
            loop {
                if let Some(line) = self.told.lock().unwrap().get(self.looked) {
                    return line.clone();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let line = tokio::time::timeout(PATIENCE, said).await.expect("it says nothing");
        self.looked += 1;
        line
    }

    pub(crate) async fn raw(&self, bytes: &[u8]) -> HttpAnswer {
        raw(&self.address, bytes).await
    }

    /// With the usual headers and these, of which an empty value takes one away.
    pub(crate) async fn request(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpAnswer {
        request(&self.address, &self.token, (method, path), headers, body).await
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], message: &Value) -> HttpAnswer {
        self.request(("POST", "/acp"), headers, &message.to_string()).await
    }

    /// A connection over HTTP; gives its id.
    pub(crate) async fn begin(&self) -> String {
        let answer = self.post(&[], &hello()).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json")),
            "{answer:?}"
        );
        assert_eq!(answer.json()["result"]["protocolVersion"], 1);
        answer.header("acp-connection-id").expect("an id").to_owned()
    }

    pub(crate) async fn events(&self, headers: &[(&str, &str)]) -> Events {
        Events::open(&self.address, &self.token, headers).await
    }

    /// A client over a WebSocket, that has said hello.
    pub(crate) async fn socket_client(&self) -> ServedAgent {
        ServedAgent::greeted(sockets::lines(&self.address, &self.token).await).await
    }

    /// A client over HTTP, that has said hello.
    pub(crate) async fn http_client(&self) -> ServedAgent {
        ServedAgent::greeted(streams::lines(&self.address, &self.token).await).await
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status =
            tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it does not end").unwrap();
        assert!(status.success(), "{status}");
        assert_eq!(self.home.orphans(), []);
    }
}

pub(crate) fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": 1, "clientCapabilities": {} } })
}

/// One client of a server; what it is asked like an agent of its own.
pub(crate) struct ServedAgent {
    pub(crate) client: TestClient,
}

impl ServedAgent {
    pub(crate) async fn greeted(client: TestClient) -> Self {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        client.expect("initialize", params).await;
        Self { client }
    }

    pub(crate) async fn new_session(&self, directory: &std::path::Path) -> String {
        let answer = self.client.expect("session/new", json!({ "cwd": directory, "mcpServers": [] })).await;
        answer["sessionId"].as_str().expect("a session id").to_owned()
    }

    pub(crate) fn start_prompt(&self, session: &str, text: &str) -> attache_testkit::client::Pending {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.client.start("session/prompt", params)
    }

    pub(crate) async fn prompt(&self, session: &str, text: &str) -> attache_testkit::client::Answer {
        self.start_prompt(session, text).answer().await
    }

    /// Gives the updates that were told before the answer.
    pub(crate) async fn load(&self, session: &str, directory: &std::path::Path) -> Vec<Value> {
        let mark = self.client.mark();
        let params = json!({ "sessionId": session, "cwd": directory, "mcpServers": [] });
        let pending = self.client.start("session/load", params);
        let id = pending.id;
        pending.answer().await.expect("session/load");
        let received = self.client.received();
        let before = received[mark..]
            .iter()
            .take_while(|message| message["id"] != id || message["method"].is_string());
        let updates = before.filter(|message| message["params"]["sessionId"] == session);
        updates.map(|message| message["params"]["update"].clone()).collect()
    }
}
