//! Asks of clients without a hello: what they want of their person is the answer to a request, and they come
//! back with it in the next one. Meanwhile the turn waits here, for a while.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_http::random_name;
use attache_rpc::{ErrorObject, Peer, Responder};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

use crate::limits::{NAME_BYTES, PARKED_ASKS, PARKED_TIME};
use crate::outcome::CallOutcome;
use crate::stateless::RequestStyle;

/// What our question goes by in the answer that holds it.
const QUESTION: &str = "question";

/// A form that waits for its answer; dropped, there is none.
#[derive(Debug)]
pub(crate) struct InputQuestion {
    pub(crate) form: Value,
    pub(crate) answer: oneshot::Sender<Box<RawValue>>,
}

/// Where a call sends progress: a client that comes back has another token. Clones share the target.
#[derive(Clone, Debug)]
pub(crate) struct NewsTarget(
    /// Why a lock: a repeated request replaces it while the turn sends progress. Held for a copy only.
    Arc<Mutex<Option<(Peer, Value)>>>,
);

impl NewsTarget {
    /// `token`: `None` if the client sent no progress token.
    pub(crate) fn new(peer: Peer, token: Option<Value>) -> Self {
        Self(Arc::new(Mutex::new(token.map(|token| (peer, token)))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Peer, Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> Option<(Peer, Value)> {
        self.lock().clone()
    }

    fn become_of(&self, other: &Self) {
        let other = other.get();
        *self.lock() = other;
    }
}

/// A turn that runs for such a client. Dropped, it is aborted.
#[derive(Debug)]
pub(crate) struct RunningAsk {
    pub(crate) outcome: JoinHandle<CallOutcome>,
    pub(crate) questions: mpsc::Receiver<InputQuestion>,
    pub(crate) news: NewsTarget,
    pub(crate) _abort: DropGuard,
}

#[derive(Debug)]
struct ParkedAsk {
    running: RunningAsk,
    answer: oneshot::Sender<Box<RawValue>>,
}

/// The asks that wait for a person. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParkedAsks(
    /// Why a lock: requests come and go in tasks of their own. Held for look-ups only.
    Arc<Mutex<HashMap<String, ParkedAsk>>>,
);

impl ParkedAsks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, ParkedAsk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the request with what comes first: the end of the turn, or a question.
    pub(crate) async fn go_on(&self, mut running: RunningAsk, responder: Responder, version: &str) {
        let gone = responder.cancelled();
        tokio::select! {
            biased;
            // The client did not come back: the turn is aborted.
            () = gone.cancelled() => responder.leave_unanswered(),
            outcome = &mut running.outcome => {
                let failed = |_| CallOutcome::failed("the call failed");
                let outcome = outcome.unwrap_or_else(failed);
                responder.ok(&RequestStyle::Stateless.result(outcome.to_json(), version));
            }
            Some(question) = running.questions.recv() => match self.park(running, question) {
                Ok(result) => responder.ok(&result),
                Err(why) => responder.error(ErrorObject::internal(why)),
            },
        }
    }

    /// Comes back with the answer; what such a client says nothing about it has put aside.
    pub(crate) async fn come_back(
        &self,
        state: &str,
        mut answers: BTreeMap<String, Box<RawValue>>,
        news: &NewsTarget,
        responder: Responder,
        version: &str,
    ) {
        let Some(ParkedAsk { running, answer }) = self.lock().remove(state) else {
            let text = "this `requestState` is not known any more: call again without it";
            return responder.error(ErrorObject::invalid_params(text));
        };
        let aside = || serde_json::value::to_raw_value(&json!({ "action": "cancel" })).ok();
        running.news.become_of(news);
        if let Some(said) = answers.remove(QUESTION).or_else(aside)
            && answer.send(said).is_err()
        {
            tracing::debug!("a question was withdrawn before its answer came");
        }
        self.go_on(running, responder, version).await;
    }

    fn park(&self, running: RunningAsk, question: InputQuestion) -> Result<Value, String> {
        let InputQuestion { form, answer } = question;
        let state = random_name(NAME_BYTES).map_err(|error| error.to_string())?;
        let mut parked = self.lock();
        if parked.len() >= PARKED_ASKS {
            return Err("too many questions wait for their answers".to_owned());
        }
        parked.insert(state.clone(), ParkedAsk { running, answer });
        drop(parked);
        let (all, name) = (self.clone(), state.clone());
        tokio::spawn(async move {
            tokio::time::sleep(PARKED_TIME).await;
            if all.lock().remove(&name).is_some() {
                tracing::info!("nobody came back with an answer");
            }
        });
        let request = json!({ "method": "elicitation/create", "params": form });
        Ok(json!({
            "resultType": "input_required",
            "inputRequests": { QUESTION: request },
            "requestState": state,
        }))
    }
}
