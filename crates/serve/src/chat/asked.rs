//! The person behind a chat, as the core asks them: what the client posted is the answer, and anything else
//! ends the stream, so that the client can show the question and post again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use attache_core::ports::BoxFuture;
use attache_core::ports::client::{About, Answer, Ask, Client, WhenAsked};
use tokio::sync::Notify;

use super::request::CallAnswer;

#[derive(Debug, Default)]
pub(super) struct ChatClient {
    answers: HashMap<String, CallAnswer>,
    /// Questions that wait for the next post, by their ids. Why a lock: the session asks while the stream
    /// looks.
    open: Mutex<HashSet<String>>,
    asked: Notify,
}

impl ChatClient {
    pub(super) fn with(answers: HashMap<String, CallAnswer>) -> Arc<Self> {
        Arc::new(Self { answers, ..Self::default() })
    }

    /// Whether this question can only be answered by another post.
    pub(super) fn waits_for(&self, approval: &str) -> bool {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).contains(approval)
    }

    /// Resolves when there is one more of them.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }
}

impl Client for ChatClient {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let answer = match (&ask.about, ask.when) {
            // The SDK knows approvals of its own calls only; another client may be able to answer.
            (About::Questions(_), _) | (_, WhenAsked::Shown(_)) => Some(Answer::Unable),
            (About::Permission(_) | About::ModeSwitch(_), WhenAsked::CallAsked) => {
                self.answers.get(&ask.approval_id).map(|answer| match answer {
                    CallAnswer::Allowed => Answer::AllowOnce,
                    CallAnswer::Denied(None) => Answer::RejectOnce,
                    CallAnswer::Denied(Some(reason)) => Answer::RejectBecause(reason.clone()),
                })
            }
        };
        if answer.is_none() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(ask.approval_id.clone());
            self.asked.notify_one();
        }
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}
