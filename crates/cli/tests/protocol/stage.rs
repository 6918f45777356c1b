//! One agent with its home, and the question every row ends with: does the connection still serve?

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::RpcError;
use attache_testkit::database::{RowCounts, row_counts};
use serde_json::{Value, json};

pub(crate) const SCRIPT: &str = r#"
on "slow"
  stream 100000 "tick " every 5ms
on *
  text "ok"
"#;

pub(crate) struct Stage {
    pub(crate) home: Home,
    pub(crate) agent: Agent,
}

impl Stage {
    /// A process that has not heard `initialize` yet.
    pub(crate) fn silent() -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), SCRIPT);
        let agent = home.start();
        Self { home, agent }
    }

    pub(crate) async fn initialized() -> Self {
        let stage = Self::silent();
        stage.agent.initialize().await;
        stage
    }

    pub(crate) async fn with_session() -> (Self, String) {
        let stage = Self::initialized().await;
        let session = stage.agent.new_session(&stage.home.workspace()).await;
        (stage, session)
    }

    /// Sends one line and then asks for something ordinary, which must be answered; gives what came before that
    /// answer.
    pub(crate) async fn send(&self, line: &[u8]) -> Vec<Value> {
        let mark = self.agent.client.mark();
        self.agent.client.send_line(line);
        self.received_before_next_answer(mark).await
    }

    pub(crate) async fn received_before_next_answer(&self, mark: usize) -> Vec<Value> {
        let pending = self.agent.client.start("session/list", json!({}));
        let id = pending.id;
        pending.answer().await.expect("an ordinary request is served");
        let received = self.agent.client.received();
        received[mark..].iter().take_while(|message| message["id"] != id).cloned().collect()
    }

    /// A pipe carries any bytes.
    pub(crate) fn carries(_line: &[u8]) -> bool {
        true
    }

    /// Nothing is said to it.
    pub(crate) async fn passes_over(&self, line: &[u8]) {
        let answers = self.send(line).await;
        assert_eq!(answers, [] as [Value; 0], "{}", String::from_utf8_lossy(line));
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
        self.agent.finish(&self.home).await;
    }
}
