//! Hooks that are no processes: each does what the first word of its command says.
//!
//! `pass`, `block TEXT` (exit code 2), `fail TEXT` (exit code 1), `print TEXT` (exit code 0), `hang` (until its
//! time is over, or it is cancelled), `deaf` (does not even hear the cancel), `once COMMAND` (the first time;
//! then it passes).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_core::hooks::{EventName, Hook, HookCommand, HookHold, HookMatcher, HookOwner};
use attache_core::ports::BoxFuture;
use attache_core::ports::hooks::{HookEnd, HookJob, HookRunner};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub struct FakeHooks {
    ran: Mutex<Vec<(String, Value)>>,
    ended: Arc<Mutex<Vec<HookEnd>>>,
}

impl FakeHooks {
    /// The commands that were run so far, each with what it was told.
    pub fn ran(&self) -> Vec<(String, Value)> {
        self.ran.lock().unwrap().clone()
    }

    /// How those that came to an end did.
    pub fn ended(&self) -> Vec<HookEnd> {
        self.ended.lock().unwrap().clone()
    }
}

/// A hook of the user, for 10 s.
pub fn hook(event: &str, command: &str) -> Hook {
    Hook {
        on: EventName::parse(event).expect("an event"),
        matcher: None,
        command: HookCommand::Shell(command.to_owned()),
        time: Duration::from_secs(10),
        hold: HookHold::Sandbox,
        owner: HookOwner::User,
    }
}

/// The same for some moments only.
pub fn hook_for(event: &str, matcher: &str, command: &str) -> Hook {
    Hook { matcher: HookMatcher::parse(matcher).expect("a matcher"), ..hook(event, command) }
}

impl HookRunner for FakeHooks {
    fn run(&self, job: HookJob, cancel: CancellationToken) -> BoxFuture<'static, HookEnd> {
        let command = job.hook.command.shown();
        let mut ran = self.ran.lock().unwrap();
        let is_first = ran.iter().all(|(known, _)| *known != command);
        ran.push((command.clone(), serde_json::from_str(&job.input).expect("JSON")));
        let line = match command.strip_prefix("once ") {
            Some(line) if is_first => line.to_owned(),
            Some(_) => "pass".to_owned(),
            None => command.clone(),
        };
        let (ended, time) = (self.ended.clone(), job.hook.time);
        Box::pin(async move {
            let end = does(&line, time, cancel).await;
            ended.lock().unwrap().push(end.clone());
            end
        })
    }
}

async fn does(line: &str, time: Duration, cancel: CancellationToken) -> HookEnd {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let exited = |code, output: &str, errors: &str| HookEnd::Exited {
        code,
        output: output.to_owned(),
        errors: errors.to_owned(),
    };
    match word {
        "pass" => exited(0, "", ""),
        "print" => exited(0, rest, ""),
        "block" => exited(2, "", rest),
        "fail" => exited(1, "", rest),
        "hang" => tokio::select! {
            () = tokio::time::sleep(time) => HookEnd::TimedOut(time),
            () = cancel.cancelled() => HookEnd::Cancelled,
        },
        "deaf" => {
            tokio::time::sleep(time).await;
            HookEnd::TimedOut(time)
        }
        other => HookEnd::Failed(format!("it could not be run: {other}")),
    }
}
