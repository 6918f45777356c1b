//! Runs one prompt to the end of its turn, for a host that only wants to see the outcome.

use std::sync::Arc;

use super::{AttachFrom, HubError, SessionHandle, TurnOutcome};
use crate::entry::Entry;
use crate::ports::Client;
use crate::prompt::Prompt;

impl SessionHandle {
    /// Submits a prompt and shows everything that the session says until the turn has ended. `client` answers
    /// the turn's questions. Dropping the future does not end the turn; `cancel` does.
    pub async fn run(
        &self,
        client: Arc<dyn Client>,
        prompt: Prompt,
        mut seen: impl FnMut(Entry<'_>),
    ) -> Result<TurnOutcome, HubError> {
        let mut attachment = self.attach(Some(client.clone()), AttachFrom::Now).await?;
        attachment.participant.ready();
        let mut ticket = self.prompt_of(Some(client), prompt);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut ticket.outcome => {
                    break outcome.unwrap_or_else(|_| Err(HubError::Closed(self.id().clone())))?;
                }
                segment = attachment.live.next() => segment?.entries().for_each(&mut seen),
            }
        };
        // The end may be known before its last entries are read.
        while attachment.live.cursor() < outcome.after_index {
            attachment.live.next().await?.entries().for_each(&mut seen);
        }
        Ok(outcome)
    }
}
