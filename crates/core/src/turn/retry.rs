//! The pause between two tries of a model call: how long, what clients see, and when to give up. `step` decides
//! whether to retry.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;

use super::{StepStop, Turn};
use crate::chunk::Chunk;
use crate::data_name::DataName;
use crate::events::{EventKind, HubEvent, RunState, Runs, SessionStatus};
use crate::limits::{JITTER_MAX, MODEL_TRIES, RETRY_BASE, RETRY_MAX};
use crate::ports::model::ModelError;

impl Turn {
    /// Waits after the failed try with this number, or gives up with the reason.
    pub(super) async fn wait_to_retry(
        &self,
        tries: u32,
        message: String,
        retry_after: Option<Duration>,
    ) -> Result<(), StepStop> {
        let give_up = |message| Err(StepStop::Model(ModelError::Transient { message, retry_after }));
        if tries >= MODEL_TRIES {
            return give_up(format!("{message} (tried {tries} times)"));
        }
        if let Some(wait) = retry_after.filter(|wait| *wait > RETRY_MAX) {
            // A request before the time that the provider named would be refused again, and a turn that waits
            // for minutes looks stuck.
            let (asked, most) = (wait.as_secs(), RETRY_MAX.as_secs());
            return give_up(format!(
                "{message} (the server asks to wait {asked} s; attache waits at most {most} s)"
            ));
        }
        self.tell_retry(tries, &message, retry_after).await?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(StepStop::Aborted),
            () = tokio::time::sleep(self.pause(tries, retry_after)) => {
                self.set_retrying(None);
                self.publish(RunState::Busy);
                Ok(())
            }
        }
    }

    /// The time that the provider named, else longer each time; plus a random part, so that two sessions do not
    /// retry in step.
    fn pause(&self, tries: u32, retry_after: Option<Duration>) -> Duration {
        let pause = retry_after.unwrap_or(RETRY_BASE * 2u32.saturating_pow(tries - 1));
        let mut hasher = DefaultHasher::new();
        (self.setup.workspace.session_id.as_str(), tries, self.hub.ports.clock.now_ms()).hash(&mut hasher);
        let share = (hasher.finish() % 1_000) as f64 / 1_000.0;
        pause + (pause / 4).min(JITTER_MAX).mul_f64(share)
    }

    async fn tell_retry(
        &self,
        tries: u32,
        message: &str,
        retry_after: Option<Duration>,
    ) -> Result<(), StepStop> {
        let wait = retry_after.map(|wait| wait.as_secs()).filter(|seconds| *seconds > 0);
        let message = match wait {
            Some(seconds) => format!("{message} (next try in {seconds} s)"),
            None => message.to_string(),
        };
        let state = RunState::Retrying { attempt: tries, message: message.clone() };
        self.set_retrying(Some(state.clone()));
        self.publish(state);
        let status = json!({ "state": "retrying", "attempt": tries, "message": message });
        self.record(Chunk::transient_data(DataName::Status, status)).await
    }

    fn set_retrying(&self, state: Option<RunState>) {
        *self.retrying.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn publish(&self, state: RunState) {
        let started_at = Some(self.hub.ports.clock.now_ms());
        let message_id = Some(self.user_message_id.clone());
        let status = SessionStatus { state, started_at, message_id, runs: Runs::Here };
        let session_id = self.setup.workspace.session_id.clone();
        // It is fine if there is no listener.
        drop(self.hub.events.send(HubEvent { session_id, kind: EventKind::Status(status) }));
    }
}
