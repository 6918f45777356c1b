//! The person behind a chat, as the core asks them: what the client posted is the answer, and anything else
//! ends the stream, so that the client can show the question and post again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::ports::BoxFuture;
use attache_core::ports::client::{About, Answer, Ask, Client, WhenAsked};
use tokio::sync::Notify;

use super::request::{CallAnswer, PostedApprovals};

#[derive(Debug, Default)]
pub(super) struct ChatClient {
    posted: PostedApprovals,
    open: Arc<OpenQuestions>,
    asked: Notify,
}

/// Questions that wait for the next post. Why a lock: the session asks while the stream looks.
#[derive(Debug, Default)]
struct OpenQuestions(Mutex<Vec<Arc<Ask>>>);

/// One of them, until the session wants no answer any more.
struct PostedQuestion {
    questions: Arc<OpenQuestions>,
    approval_id: String,
}

impl ChatClient {
    pub(super) fn with(posted: PostedApprovals) -> Arc<Self> {
        Arc::new(Self { posted, ..Self::default() })
    }

    /// A question that only another post can answer, among those that its reader was shown: in this stream, or
    /// before.
    pub(super) fn open_question(&self, shown: &HashSet<String>) -> Option<Arc<Ask>> {
        let open = self.open.lock();
        let knows = |id: &String| shown.contains(id) || self.posted.open.contains(id);
        open.iter().find(|ask| knows(&ask.approval_id)).cloned()
    }

    /// Whether its reader has answered this question already.
    pub(super) fn has_answered(&self, approval_id: &str) -> bool {
        self.posted.answers.contains_key(approval_id)
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
                self.posted.answers.get(&ask.approval_id).map(|answer| match answer {
                    CallAnswer::Allowed => Answer::AllowOnce,
                    CallAnswer::Denied(None) => Answer::RejectOnce,
                    CallAnswer::Denied(Some(reason)) => Answer::RejectBecause(reason.clone()),
                })
            }
        };
        if let Some(answer) = answer {
            return Box::pin(std::future::ready(answer));
        }
        let approval_id = ask.approval_id.clone();
        self.open.lock().push(ask);
        let question = PostedQuestion { questions: self.open.clone(), approval_id };
        self.asked.notify_one();
        Box::pin(async move {
            let _question = question;
            std::future::pending().await
        })
    }
}

impl OpenQuestions {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Ask>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostedQuestion {
    fn drop(&mut self) {
        self.questions.lock().retain(|ask| ask.approval_id != self.approval_id);
    }
}
