//! Calls that a server works on as a task: it says at once that it began, is asked how far it is, and keeps the
//! result until it is fetched. Only for tools that can't be called otherwise.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use tokio::time::Instant;

use super::inputs::too_late;
use super::{CallFailure, ServerClient, said};
use crate::handler::ProgressNews;
use crate::limits::{CALL_TIME, PROGRESS_CHARACTERS, TASK_POLL, TASK_POLLS};
use crate::listing::shortened;
use attache_core::legible::legible_line;
use attache_rpc::RequestError;

/// How a task is, as its server says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTask {
    task_id: String,
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default, alias = "pollIntervalMs")]
    poll_interval: Option<f64>,
}

#[derive(Debug, PartialEq, Eq)]
enum TaskStanding {
    Working,
    /// Its result can be asked for; a server that wants something of the user asks while it is.
    ResultDue,
}

impl WireTask {
    pub(super) fn id(&self) -> &str {
        &self.task_id
    }

    pub(super) fn status(&self) -> &str {
        &self.status
    }

    /// In the server's words, made harmless.
    pub(super) fn message(&self) -> Option<String> {
        self.status_message.as_deref().map(|message| shortened(message, PROGRESS_CHARACTERS))
    }

    fn standing(&self) -> TaskStanding {
        match self.status.as_str() {
            "working" | "submitted" => TaskStanding::Working,
            _ => TaskStanding::ResultDue,
        }
    }

    /// As often as it wants to be asked, within reason.
    pub(super) fn pause(&self) -> Duration {
        let wanted = self.poll_interval.filter(|pause| pause.is_finite() && *pause > 0.0);
        let wanted = wanted.map(|pause| Duration::from_millis(pause.min(60_000.0) as u64));
        wanted.unwrap_or(TASK_POLL).clamp(*TASK_POLLS.start(), *TASK_POLLS.end())
    }

    pub(super) fn news(&self, step: u32) -> ProgressNews {
        let status = self.status_message.as_deref().unwrap_or(&self.status);
        let message = Some(shortened(status, PROGRESS_CHARACTERS));
        ProgressNews { progress: f64::from(step), total: None, message }
    }
}

/// The metadata that makes a task of a call.
pub(super) fn wish() -> Value {
    json!({ "ttl": CALL_TIME.as_millis() as u64 })
}

/// A task that is cancelled when its caller is gone.
pub(super) struct HeldTask<'a> {
    client: &'a ServerClient,
    id: String,
    standing: TaskStanding,
}

impl<'a> HeldTask<'a> {
    pub(super) fn new(client: &'a ServerClient, task: &WireTask) -> Self {
        Self { client, id: task.task_id.clone(), standing: TaskStanding::Working }
    }

    /// It has come to its end.
    pub(super) fn let_go(&mut self) {
        self.standing = TaskStanding::ResultDue;
    }
}

impl Drop for HeldTask<'_> {
    fn drop(&mut self) {
        if self.standing == TaskStanding::ResultDue {
            return;
        }
        let (client, params) = (self.client.clone(), json!({ "taskId": self.id }));
        tokio::spawn(async move {
            let told = client.ask("tasks/cancel", &params, Some(client.deadlines.list)).await;
            if let Err(error) = told {
                tracing::debug!(%error, "a task of an MCP server could not be cancelled");
            }
        });
    }
}

impl ServerClient {
    /// Follows the task that `answer` says began, until it has a result.
    pub(super) async fn follow(
        &self,
        answer: &RawValue,
        mut show: impl FnMut(ProgressNews),
        last: Instant,
    ) -> Result<Box<RawValue>, CallFailure> {
        #[derive(Deserialize)]
        struct Begun {
            task: WireTask,
        }
        let strange =
            |error: serde_json::Error| CallFailure::Refused(format!("its task is not understood: {error}"));
        let Begun { mut task } = serde_json::from_str(answer.get()).map_err(strange)?;
        let mut held = HeldTask::new(self, &task);
        let params = json!({ "taskId": task.task_id });
        let (mut step, mut told) = (0, String::new());
        while task.standing() == TaskStanding::Working {
            let news = task.news(step);
            if news.message.as_deref() != Some(&told) {
                told = news.message.clone().unwrap_or_default();
                step += 1;
                show(ProgressNews { progress: f64::from(step), ..news });
            }
            if Instant::now() + task.pause() > last {
                return Err(too_late());
            }
            tokio::time::sleep(task.pause()).await;
            let now = self.peer.request("tasks/get", &params, Some(self.deadlines.list)).await;
            let now = now.map_err(|error| self.lost_or_said(&error, "tasks/get"))?;
            task = serde_json::from_str(now.get()).map_err(strange)?;
        }
        let left = last.saturating_duration_since(Instant::now());
        let result = self.peer.request("tasks/result", &params, Some(left)).await;
        held.let_go();
        result.map_err(|error| match (&error, task.status_message) {
            (RequestError::Remote(_), Some(message)) => CallFailure::Refused(format!(
                "the task {}: {}",
                legible_line(&task.status),
                legible_line(&message)
            )),
            (
                RequestError::Remote(_)
                | RequestError::Deadline
                | RequestError::Closed
                | RequestError::Encode(_),
                _,
            ) => self.lost_or_said(&error, "tasks/result"),
        })
    }

    pub(super) fn lost_or_said(&self, error: &RequestError, method: &str) -> CallFailure {
        match error {
            RequestError::Closed => CallFailure::Lost,
            error => CallFailure::Refused(said(error, method, self.deadlines.list)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(value: Value) -> WireTask {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_server_does_not_choose_how_often_it_is_asked() {
        for (wanted, pause) in [
            (json!(null), TASK_POLL),
            (json!(0), TASK_POLL),
            (json!(-5), TASK_POLL),
            (json!(1), *TASK_POLLS.start()),
            (json!(700), Duration::from_millis(700)),
            (json!(1e300), *TASK_POLLS.end()),
        ] {
            let task = task(json!({ "taskId": "1", "status": "working", "pollInterval": wanted }));
            assert_eq!(task.pause(), pause, "{wanted}");
        }
        for (status, standing) in [
            ("working", TaskStanding::Working),
            ("input_required", TaskStanding::ResultDue),
            ("completed", TaskStanding::ResultDue),
            ("failed", TaskStanding::ResultDue),
            ("odd", TaskStanding::ResultDue),
        ] {
            assert_eq!(task(json!({ "taskId": "1", "status": status })).standing(), standing, "{status}");
        }
    }
}
