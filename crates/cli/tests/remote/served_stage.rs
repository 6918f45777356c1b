//! A served agent with one client, for rows that were written for a pipe.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use attache_testkit::binary::Home;
use attache_testkit::client::{Reply, RpcError};
use attache_testkit::database::{RowCounts, row_counts};
use serde_json::{Value, json};

use crate::server::{SCRIPT, ServedAgent, Server};

pub(crate) struct OverWebSocket;
pub(crate) struct OverHttp;

pub(crate) trait Way {
    fn client(server: &Server) -> impl Future<Output = ServedAgent>;
}

impl Way for OverWebSocket {
    async fn client(server: &Server) -> ServedAgent {
        server.socket_client().await
    }
}

impl Way for OverHttp {
    async fn client(server: &Server) -> ServedAgent {
        server.http_client().await
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
