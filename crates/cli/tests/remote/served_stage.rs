//! A served agent with one client, for rows that were written for a pipe.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::client::{Reply, RpcError};
use attache_testkit::database::{RowCounts, row_counts};
use serde_json::{Value, json};

use crate::plain_http::request_bytes;
use crate::server::{SCRIPT, ServedAgent, Server};

pub(crate) struct OverWebSocket;
pub(crate) struct OverHttp;

pub(crate) trait Way {
    fn client(server: &Server) -> impl Future<Output = ServedAgent>;

    /// What can be sent at all.
    fn carries(line: &[u8]) -> bool;

    /// What says nothing to the agent is not answered by it; a request over HTTP has a status all the same.
    fn passes_over(stage: &ServedStage<Self>, line: &[u8]) -> impl Future<Output = ()>
    where
        Self: Sized;
}

impl Way for OverWebSocket {
    async fn client(server: &Server) -> ServedAgent {
        server.socket_client().await
    }

    /// Frames of text are UTF-8; others end the connection, which `frames` looks at.
    fn carries(line: &[u8]) -> bool {
        std::str::from_utf8(line).is_ok()
    }

    async fn passes_over(stage: &ServedStage<Self>, line: &[u8]) {
        let answers = stage.send(line).await;
        assert_eq!(answers, [] as [Value; 0], "{}", String::from_utf8_lossy(line));
    }
}

impl Way for OverHttp {
    async fn client(server: &Server) -> ServedAgent {
        server.http_client().await
    }

    fn carries(_line: &[u8]) -> bool {
        true
    }

    async fn passes_over(stage: &ServedStage<Self>, line: &[u8]) {
        let (text, connection) = (String::from_utf8_lossy(line), stage.begin().await);
        let here = [("acp-connection-id", connection.as_str())];
        let answer = request_bytes(&stage.address, &stage.token, ("POST", "/acp"), &here, line).await;
        // Taken and passed over, or told that it says nothing.
        assert!([202, 400].contains(&answer.status), "{text:?}: {answer:?}");
        assert_eq!(answer.status == 400, !answer.body.is_empty(), "{text:?}: {answer:?}");
        assert_eq!(stage.request(("DELETE", "/acp"), &here, "").await.status, 202);
        assert_eq!(stage.received_before_next_answer(stage.agent.client.mark()).await, [] as [Value; 0]);
    }
}

pub(crate) struct ServedStage<W> {
    server: Server,
    pub(crate) agent: ServedAgent,
    way: PhantomData<W>,
}

/// The home among it.
impl<W> Deref for ServedStage<W> {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl<W: Way> ServedStage<W> {
    pub(crate) async fn initialized() -> Self {
        let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT), &[]).await;
        let agent = W::client(&server).await;
        Self { server, agent, way: PhantomData }
    }

    pub(crate) async fn with_session() -> (Self, String) {
        let stage = Self::initialized().await;
        let session = stage.agent.new_session(&stage.home.workspace()).await;
        (stage, session)
    }

    pub(crate) async fn received_before_next_answer(&self, mark: usize) -> Vec<Value> {
        let pending = self.agent.client.start("session/list", json!({}));
        let id = pending.id;
        pending.answer().await.expect("an ordinary request is served");
        let received = self.agent.client.received();
        received[mark..].iter().take_while(|message| message["id"] != id).cloned().collect()
    }

    /// Sends one line and then asks for something ordinary; gives what came before that answer.
    pub(crate) async fn send(&self, line: &[u8]) -> Vec<Value> {
        let mark = self.agent.client.mark();
        self.agent.client.send_line(line);
        self.received_before_next_answer(mark).await
    }

    pub(crate) fn carries(line: &[u8]) -> bool {
        W::carries(line)
    }

    pub(crate) async fn passes_over(&self, line: &[u8]) {
        W::passes_over(self, line).await;
    }

    /// The one error that a bad line costs.
    pub(crate) async fn refusal(&self, what: &str, line: &[u8]) -> Value {
        let mut answers = self.send(line).await;
        assert_eq!(answers.len(), 1, "{what}: one answer, not {answers:?}");
        answers.remove(0)
    }

    pub(crate) async fn refused(&self, method: &str, params: Value) -> RpcError {
        match self.agent.client.request(method, params.clone()).await {
            Ok(result) => panic!("{method} {params} succeeded: {result}"),
            Err(error) => error,
        }
    }

    pub(crate) fn rows(&self) -> RowCounts {
        row_counts(&self.home)
    }

    pub(crate) async fn finish(self) {
        self.agent.client.end_input();
        self.agent.client.wait_for_end().await;
        self.agent.client.finish();
        self.server.stop().await;
    }
}

/// With a session, for rows about turns.
pub(crate) struct TurnStage<W> {
    server: Server,
    pub(crate) agent: ServedAgent,
    pub(crate) session: String,
    way: PhantomData<W>,
}

impl<W> Deref for TurnStage<W> {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl<W: Way> TurnStage<W> {
    pub(crate) async fn new(script: &str) -> Self {
        let server = Server::of(Home::new(env!("CARGO_BIN_EXE_attache"), script), &[]).await;
        let agent = W::client(&server).await;
        let session = agent.new_session(&server.home.workspace()).await;
        Self { server, agent, session, way: PhantomData }
    }

    pub(crate) fn cancel(&self) {
        self.agent.client.notify("session/cancel", json!({ "sessionId": self.session }));
    }

    /// Leaves questions of the agent open from now on.
    pub(crate) fn keep_silent(&self) {
        self.agent.client.set_policy(|_, _| Reply::Never);
    }

    /// The agent's question number `nth`, from 0.
    pub(crate) async fn question(&self, nth: usize) -> Value {
        let seen = AtomicUsize::new(0);
        let is_it = |message: &Value| {
            message["method"] == "session/request_permission" && seen.fetch_add(1, Ordering::Relaxed) == nth
        };
        self.agent.client.wait_for("a permission request", is_it).await
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.workspace().join(name)
    }

    pub(crate) async fn finish(self) {
        self.agent.client.end_input();
        self.agent.client.wait_for_end().await;
        self.agent.client.finish();
        self.server.stop().await;
    }
}

pub(crate) async fn until(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {time:?} for: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
