//! A request on its way: waits for its answer, and says what was on the wire when none comes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Answer, Shared};
use crate::limits::ANSWER_TIMEOUT;

/// A request that was sent and not waited for yet.
#[derive(Debug)]
pub struct Pending {
    pub id: u64,
    pub(super) method: String,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) shared: Arc<Shared>,
}

impl Pending {
    pub async fn answer(self) -> Answer {
        self.answer_within(ANSWER_TIMEOUT).await
    }

    pub async fn answer_within(self, time: Duration) -> Answer {
        match tokio::time::timeout(time, self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => panic!(
                "the agent closed before it answered {} ({})\n{}",
                self.method,
                self.id,
                self.shared.lock().recent_traffic()
            ),
            Err(_) => panic!(
                "{} ({}) was not answered within {time:?}\n{}",
                self.method,
                self.id,
                self.shared.lock().recent_traffic()
            ),
        }
    }

    /// `None` when the agent went away first: what a test that kills it expects.
    pub async fn answer_or_end(self) -> Option<Answer> {
        tokio::time::timeout(ANSWER_TIMEOUT, self.answer).await.ok().and_then(Result::ok)
    }
}
