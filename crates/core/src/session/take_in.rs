//! Takes in attachments and runs prompt hooks. Converting a large picture takes seconds, and a hook takes its
//! time: meanwhile the session runs commands that can't wait.

use std::pin::pin;

use super::{Session, SessionCommand};
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::part::Part;
use crate::ports::model::ModelInfo;
use crate::prompt::intake;

impl Session {
    /// The parts in their stored form; `None`: the user cancelled, or the session ends.
    pub(super) async fn take_in(
        &mut self,
        mut parts: Vec<Part>,
        model: Option<ModelInfo>,
        message_id: Option<&MessageId>,
    ) -> Result<Option<Vec<Part>>, HubError> {
        let (hub, id) = (self.hub.clone(), self.id.clone());
        let taking = async move { intake::take(&hub, &id, model.as_ref(), &mut parts).await.map(|()| parts) };
        self.meanwhile(taking, message_id).await.transpose()
    }

    /// Waits for work on an incoming prompt, and meanwhile runs commands that can't wait; `None`: the user
    /// cancelled, or the session ends.
    pub(super) async fn meanwhile<T>(
        &mut self,
        awaited: impl Future<Output = T>,
        message_id: Option<&MessageId>,
    ) -> Option<T> {
        let mut awaited = pin!(awaited);
        loop {
            tokio::select! {
                biased;
                done = &mut awaited => return Some(done),
                command = self.inbox.arriving() => {
                    let command = command?;
                    if self.ends_intake(command, message_id) {
                        return None;
                    }
                }
                happened = self.activity.next() => self.take_note(happened).await,
            }
        }
    }

    /// Runs a command that can't wait, keeps others for later; returns whether the intake is over.
    pub(super) fn ends_intake(&mut self, command: SessionCommand, message_id: Option<&MessageId>) -> bool {
        match (command, self.activity.running()) {
            (SessionCommand::Status(reply), _) => {
                drop(reply.send(self.current_status()));
                false
            }
            // This is about the current turn; the incoming prompt waits behind it.
            (SessionCommand::Cancel, Some(running)) => {
                running.handle.cancel.cancel();
                false
            }
            (SessionCommand::Cancel, None) => {
                // An open question is refused, too.
                if self.activity.is_asking() {
                    self.inbox.keep(SessionCommand::Cancel);
                }
                true
            }
            (SessionCommand::CancelPrompt(cancelled), _) if Some(&cancelled) == message_id => true,
            (command @ (SessionCommand::Close(_) | SessionCommand::Shutdown(_)), _) => {
                self.inbox.keep(command);
                true
            }
            (command, _) => {
                self.inbox.keep(command);
                false
            }
        }
    }
}
