//! Calls that a server without a hello works on as tasks, whenever it likes: it is asked how far it is until
//! it has a result, and given what it wants in between.

use std::collections::{BTreeMap, BTreeSet};

use attache_core::legible::legible_line;
use attache_rpc::{ErrorObject, RequestError};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::inputs::{WantedInput, too_late};
use super::tasks::{HeldTask, WireTask};
use super::{CallFailure, ServerClient, said};
use crate::handler::{Caller, ProgressNews};

/// What comes with how a task is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TaskFruit {
    result: Option<Box<RawValue>>,
    error: Option<ErrorObject>,
    input_requests: BTreeMap<String, WantedInput>,
}

impl ServerClient {
    /// Follows the task that `answer` says began, until it has a result.
    pub(super) async fn follow_stateless(
        &self,
        answer: &RawValue,
        mut show: impl FnMut(ProgressNews),
        caller: &Caller,
        last: Instant,
    ) -> Result<Box<RawValue>, CallFailure> {
        let strange =
            |error: serde_json::Error| CallFailure::Refused(format!("its task is not understood: {error}"));
        let mut task: WireTask = serde_json::from_str(answer.get()).map_err(strange)?;
        let mut held = HeldTask::new(self, &task);
        let params = json!({ "taskId": task.id() });
        let (mut told, mut answered) = (String::new(), BTreeSet::new());
        let mut fruit = TaskFruit::default();
        for step in 1_u32.. {
            let news = task.news(step);
            if news.message.as_deref() != Some(&told) {
                told = news.message.clone().unwrap_or_default();
                show(news);
            }
            match task.status() {
                "working" => {}
                "input_required" => {
                    fruit.input_requests.retain(|key, _| answered.insert(key.clone()));
                    self.give(&task, &fruit.input_requests, caller, last).await?;
                }
                ended => {
                    held.let_go();
                    return ending(ended, &task, fruit);
                }
            }
            if Instant::now() + task.pause() > last {
                return Err(too_late());
            }
            tokio::time::sleep(task.pause()).await;
            let now = self.ask("tasks/get", &params, Some(self.deadlines.list)).await;
            let now = now.map_err(|error| self.lost_or_said(&error, "tasks/get"))?;
            task = serde_json::from_str(now.get()).map_err(strange)?;
            fruit = serde_json::from_str(now.get()).map_err(strange)?;
        }
        Err(too_late())
    }

    /// Inputs that the task needs, each once.
    async fn give(
        &self,
        task: &WireTask,
        wanted: &BTreeMap<String, WantedInput>,
        caller: &Caller,
        last: Instant,
    ) -> Result<(), CallFailure> {
        if wanted.is_empty() {
            return Ok(());
        }
        let answers = tokio::time::timeout_at(last, self.answers_to(wanted, Some(caller))).await;
        let answers = answers.map_err(|_| too_late())??;
        let params = json!({ "taskId": task.id(), "inputResponses": answers });
        let given = self.ask("tasks/update", &params, Some(self.deadlines.list)).await;
        given.map(drop).map_err(|error| self.lost_or_said(&error, "tasks/update"))
    }
}

fn ending(status: &str, task: &WireTask, fruit: TaskFruit) -> Result<Box<RawValue>, CallFailure> {
    let refused = |text: String| Err(CallFailure::Refused(text));
    match (status, fruit) {
        ("completed", TaskFruit { result: Some(result), .. }) => Ok(result),
        ("failed", TaskFruit { error: Some(error), .. }) => {
            refused(said(&RequestError::Remote(error), "the task", std::time::Duration::ZERO))
        }
        (other, _) => {
            let other: String = legible_line(other).chars().take(60).collect();
            let why = task.message().map(|message| format!(": {message}")).unwrap_or_default();
            refused(format!("the task is {other} and has no result{why}"))
        }
    }
}
