//! An agent with an open session, and what several rows look at.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};

pub(crate) struct Stage {
    pub(crate) home: Home,
    pub(crate) agent: Agent,
    pub(crate) session: String,
}

impl Stage {
    pub(crate) async fn new(script: &str) -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
        let agent = home.start();
        let session = agent.open_session(&home).await;
        Self { home, agent, session }
    }

    pub(crate) fn cancel(&self) {
        self.agent.client.notify("session/cancel", json!({"sessionId": self.session}));
    }

    /// Leaves questions of the agent open from now on.
    pub(crate) fn keep_silent(&self) {
        self.agent.client.set_policy(|_, _| Reply::Never);
    }

    /// The agent's question number `nth`, from 0.
    pub(crate) async fn question(&self, nth: usize) -> Value {
        let seen = std::sync::atomic::AtomicUsize::new(0);
        self.agent
            .client
            .wait_for("a permission request", |message| {
                message["method"] == "session/request_permission"
                    && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == nth
            })
            .await
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.workspace().join(name)
    }

    pub(crate) async fn finish(self) {
        self.agent.finish(&self.home).await;
    }
}

pub(crate) async fn until(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {time:?} for: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
