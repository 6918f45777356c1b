//! The one answer a request gets. Consumed by answering; dropped unanswered, it answers by itself.

use crate::encode::encode_result;
use crate::error::ErrorObject;
use crate::id::RequestId;
use crate::peer::Peer;
use crate::pending::RequestWithdrawal;
use serde::Serialize;
use std::fmt;
use tokio_util::sync::CancellationToken;

/// Answering never blocks, and the answer follows every line that `send_lines` had accepted before.
pub struct Responder {
    peer: Peer,
    id: RequestId,
    withdrawal: RequestWithdrawal,
    state: AnswerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerState {
    Open,
    Answered,
}

impl Responder {
    pub(crate) fn new(peer: Peer, id: RequestId, withdrawal: RequestWithdrawal) -> Self {
        Self { peer, id, withdrawal, state: AnswerState::Open }
    }

    pub fn ok<R: Serialize>(mut self, result: &R) {
        let mut line = Vec::new();
        match encode_result(&mut line, &self.id, result) {
            Ok(()) => {
                self.settle();
                self.peer.shared().outgoing.reply(&line);
                self.peer.shared().in_flight.answered();
            }
            Err(failure) => {
                self.error(ErrorObject::internal(format!("the result could not be encoded: {failure}")));
            }
        }
    }

    pub fn error(mut self, error: ErrorObject) {
        self.give_error(&error);
    }

    /// For protocols in which a request that was cancelled gets no answer: frees its id, and sends nothing.
    pub fn leave_unanswered(mut self) {
        self.settle();
        self.peer.shared().in_flight.answered();
    }

    /// Fires when the other side sent `$/cancel_request` for this id, or the connection ended. An answer is
    /// owed all the same.
    pub fn cancelled(&self) -> CancellationToken {
        self.withdrawal.token.clone()
    }

    /// Whether the other side has sent `$/cancel_request` for this id; not if only the connection has ended.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawal.was_told()
    }

    pub fn id(&self) -> &RequestId {
        &self.id
    }

    fn give_error(&mut self, error: &ErrorObject) {
        self.settle();
        self.peer.shared().reply_error(Some(&self.id), error);
        self.peer.shared().in_flight.answered();
    }

    /// Frees the id before the answer is queued: whoever reads the answer may use the id again at once.
    fn settle(&mut self) {
        self.state = AnswerState::Answered;
        self.peer.shared().in_flight.release(&self.id);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        match self.state {
            AnswerState::Answered => {}
            AnswerState::Open => {
                self.give_error(&ErrorObject::internal("internal error: request was dropped"))
            }
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Responder").field("id", &self.id).field("state", &self.state).finish()
    }
}
