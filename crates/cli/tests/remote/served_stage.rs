//! A served agent with one client, for rows that were written for a pipe.

use std::marker::PhantomData;
use std::ops::Deref;

use attache_testkit::binary::Home;
use attache_testkit::client::RpcError;
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
