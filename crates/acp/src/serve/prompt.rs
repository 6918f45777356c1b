//! Prompts of one connection in one session: which messages are its own, and who answers each after its turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::hub::{HubError, SessionHandle, Ticket, TurnOutcome};
use attache_core::ids::MessageId;
use attache_core::prompt::Prompt;
use attache_rpc::Responder;
use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::sync::{mpsc, oneshot};

use super::client::AcpClient;
use super::failure::{error_object, prompt_answer};
use super::forwarder::ForwarderCommand;

/// Prompts that the session has and that are not answered yet.
///
/// A lock, because the reader adds prompts while the forwarder asks which messages came from here. The reader
/// passes a prompt to the session under the lock, so that its entries become visible only after the prompt is
/// listed.
#[derive(Debug, Default)]
pub(super) struct OwnPrompts(Mutex<PromptList>);

#[derive(Debug, Default)]
struct PromptList {
    prompts: Vec<OwnPrompt>,
    next_number: u64,
}

#[derive(Debug)]
struct OwnPrompt {
    number: u64,
    /// Resolves before any client sees the message.
    accepted: Shared<oneshot::Receiver<MessageId>>,
}

/// A prompt whose turn has ended and whose answer is on its way.
#[derive(Debug)]
pub(super) struct EndedPrompt {
    pub(super) number: u64,
    pub(super) responder: Responder,
    pub(super) outcome: Result<TurnOutcome, HubError>,
}

impl EndedPrompt {
    /// Send entries below this index before the answer.
    pub(super) fn after_index(&self) -> u64 {
        self.outcome.as_ref().map_or(0, |outcome| outcome.after_index)
    }

    pub(super) fn answer(self) {
        let answer = match &self.outcome {
            Ok(outcome) => prompt_answer(outcome),
            Err(error) => Err(error_object(error)),
        };
        match answer {
            Ok(response) => self.responder.ok(&response),
            Err(error) => self.responder.error(error),
        }
    }
}

impl OwnPrompts {
    /// Passes a prompt of this client to the session: its position is fixed when this returns.
    pub(super) fn hand_in(
        &self,
        handle: &SessionHandle,
        (client, prompt): (Arc<AcpClient>, Prompt),
        responder: Responder,
        forwarder: &mpsc::UnboundedSender<ForwarderCommand>,
    ) {
        let mut listed = self.lock();
        let Ticket { accepted, outcome } = handle.prompt_of(Some(client), prompt);
        let number = listed.next_number;
        listed.next_number += 1;
        let accepted = accepted.shared();
        listed.prompts.push(OwnPrompt { number, accepted: accepted.clone() });
        drop(listed);
        let waiting = PendingPrompt { number, accepted, outcome, responder };
        tokio::spawn(waiting.for_end(handle.clone(), forwarder.clone()));
    }

    /// Whether a message came from this connection.
    pub(super) fn sent(&self, message_id: &MessageId) -> bool {
        self.number_of(message_id).is_some()
    }

    /// The number of this message among the unanswered prompts of this connection, if it is one.
    pub(super) fn number_of(&self, message_id: &MessageId) -> Option<u64> {
        let is_it = |own: &&OwnPrompt| matches!(own.accepted.clone().now_or_never(), Some(Ok(id)) if id == *message_id);
        self.lock().prompts.iter().find(is_it).map(|own| own.number)
    }

    pub(super) fn awaits(&self, number: u64) -> bool {
        self.lock().prompts.iter().any(|own| own.number == number)
    }

    pub(super) fn forget(&self, number: u64) {
        self.lock().prompts.retain(|own| own.number != number);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().prompts.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, PromptList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PendingPrompt {
    number: u64,
    accepted: Shared<oneshot::Receiver<MessageId>>,
    outcome: oneshot::Receiver<Result<TurnOutcome, HubError>>,
    responder: Responder,
}

impl PendingPrompt {
    async fn for_end(mut self, handle: SessionHandle, forwarder: mpsc::UnboundedSender<ForwarderCommand>) {
        let cancelled = self.responder.cancelled();
        let outcome = tokio::select! {
            biased;
            outcome = &mut self.outcome => outcome,
            () = cancelled.cancelled() => {
                // The token also fires when the client hangs up, which cancels nothing.
                if self.responder.is_withdrawn() && let Ok(message_id) = self.accepted.clone().await {
                    handle.cancel_prompt(message_id);
                }
                self.outcome.await
            }
        };
        let outcome = outcome.unwrap_or_else(|_| Err(HubError::Closed(handle.id().clone())));
        let ended = EndedPrompt { number: self.number, responder: self.responder, outcome };
        // Without a forwarder there are no updates to wait for.
        if let Err(mpsc::error::SendError(ForwarderCommand::Ended(ended))) =
            forwarder.send(ForwarderCommand::Ended(ended))
        {
            ended.answer();
        }
    }
}
