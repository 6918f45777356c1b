//! Clients that answer questions by plan.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::ports::BoxFuture;
use attache_core::ports::client::{Answer, Ask, Client};

/// Gives its answers one after the other, each after a pause; when they are used up it never answers.
#[derive(Debug, Default)]
pub struct PlannedClient {
    answers: Mutex<VecDeque<(Duration, Answer)>>,
    asked: Mutex<Vec<Arc<Ask>>>,
}

impl PlannedClient {
    pub fn new(answers: impl IntoIterator<Item = (Duration, Answer)>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() })
    }

    /// The questions so far.
    pub fn asked(&self) -> Vec<Arc<Ask>> {
        self.asked.lock().unwrap().clone()
    }
}

impl Client for PlannedClient {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        self.asked.lock().unwrap().push(ask);
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match next {
                Some((pause, answer)) => {
                    tokio::time::sleep(pause).await;
                    answer
                }
                None => std::future::pending().await,
            }
        })
    }
}
