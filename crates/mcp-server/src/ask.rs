//! The tool `ask`: one prompt to a session, new or known, watched to the end of its turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::hub::{
    AttachFrom, Attachment, HubError, NewSession, SessionHandle, SessionPlace, Ticket, TurnOutcome,
};
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::part::Part;
use attache_core::ports::Client;
use attache_core::prompt::{Prompt, PromptSource};
use attache_core::turn::TurnEnd;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::{self, AskArguments};
use crate::conversation::McpCall;
use crate::outcome::CallOutcome;
use crate::person::McpPerson;
use crate::services::{AskedSession, McpServices};
use crate::stop_reason::stop_reason;
use news::ProgressLines;
use report::TurnReport;

mod news;
mod report;

pub(crate) async fn run(services: &McpServices, call: &McpCall, arguments: Option<&RawValue>) -> CallOutcome {
    let arguments = match arguments::read::<AskArguments>(arguments) {
        Ok(arguments) if !arguments.prompt.trim().is_empty() => arguments,
        Ok(_) => return CallOutcome::failed("ask: `prompt` is empty; say what is to be done"),
        Err(error) => return CallOutcome::failed(format!("ask: {error}")),
    };
    match open(services, &arguments).await {
        Ok(asked) => asked.run(services, call, arguments.prompt).await,
        Err(error) => CallOutcome::failed(format!("ask: {error}")),
    }
}

/// A session that waits for its prompt.
#[derive(Debug)]
struct AskableSession {
    handle: SessionHandle,
    /// No other ask goes to it meanwhile.
    held: AskedSession,
}

async fn open(services: &McpServices, arguments: &AskArguments) -> Result<AskableSession, String> {
    let asked = match &arguments.session {
        Some(id) => resume(services, &SessionId::new(id.as_str()), arguments.workspace.as_deref()).await?,
        None => create(services, arguments.workspace.as_deref()).await?,
    };
    let Some(agent) = &arguments.agent else { return Ok(asked) };
    match asked.handle.set_mode(agent.clone()).await {
        Ok(_) => Ok(asked),
        Err(error) => {
            match arguments.session {
                Some(_) => asked.handle.close_unattended(),
                None => forget(services, asked.handle.id()).await,
            }
            Err(in_words(&error))
        }
    }
}

async fn create(services: &McpServices, workspace: Option<&Path>) -> Result<AskableSession, String> {
    let root = match workspace {
        Some(root) => absolute(root)?.to_owned(),
        None => services.host.usual_workspace(),
    };
    services.host.check_directory(root.clone()).await.map_err(|reason| format!("`workspace`: {reason}"))?;
    let new = NewSession { root: root.clone(), place: SessionPlace::default() };
    let handle = services.hub.create(new).await.map_err(|error| in_words(&error))?;
    if let Err(reason) = services.host.check_session(handle.id().clone(), root, None).await {
        forget(services, handle.id()).await;
        return Err(format!("`workspace`: {reason}"));
    }
    services.note_begun(handle.id());
    let held = services.begin_to_ask(handle.id()).ok_or_else(|| busy(handle.id()))?;
    Ok(AskableSession { handle, held })
}

/// Goes on in a session that was begun here. Of any other it makes a copy first: rules, grants and the approval
/// that a person gave there are not given to whoever can ask here, and a copy has none of them.
async fn resume(
    services: &McpServices,
    id: &SessionId,
    workspace: Option<&Path>,
) -> Result<AskableSession, String> {
    let unknown = || format!("there is no session {}", legible_line(id.as_str()));
    if !id.is_plain() {
        return Err(unknown());
    }
    let root = match services.hub.root(id).await {
        Ok(root) => root,
        Err(HubError::UnknownSession { .. }) => return Err(unknown()),
        Err(error) => return Err(in_words(&error)),
    };
    let named = workspace.map(absolute).transpose()?.map(Path::to_owned);
    services.host.check_session(id.clone(), root.clone(), named).await?;
    if !services.has_begun(id) {
        return copy(services, id, root).await;
    }
    let held = services.begin_to_ask(id).ok_or_else(|| busy(id))?;
    let handle = services.hub.open(id).await.map_err(|error| in_words(&error))?;
    let status = handle.status().await.map_err(|error| in_words(&error))?;
    if status.is_active() {
        return Err(busy(id));
    }
    Ok(AskableSession { handle, held })
}

async fn copy(services: &McpServices, id: &SessionId, root: PathBuf) -> Result<AskableSession, String> {
    let new = NewSession { root, place: SessionPlace::default() };
    let handle = services.hub.fork(id, new).await.map_err(|error| match error {
        HubError::Busy(id) => busy(&id),
        other => in_words(&other),
    })?;
    services.note_begun(handle.id());
    let held = services.begin_to_ask(handle.id()).ok_or_else(|| busy(handle.id()))?;
    Ok(AskableSession { handle, held })
}

fn absolute(path: &Path) -> Result<&Path, String> {
    match path.is_absolute() {
        true => Ok(path),
        false => {
            let shown = legible_line(&path.display().to_string());
            Err(format!("`workspace` must be an absolute path, not `{shown}`"))
        }
    }
}

/// Nothing was said in it yet.
async fn forget(services: &McpServices, id: &SessionId) {
    if let Err(error) = services.hub.delete(id).await {
        tracing::warn!(%error, session = %id, "an empty session stays");
    }
}

fn busy(id: &SessionId) -> String {
    format!("session {id} is busy with another turn; wait for its end, or ask without `session`")
}

fn in_words(error: &HubError) -> String {
    match error {
        HubError::RunningElsewhere(id) => {
            format!(
                "session {id} is in use by another process; wait for its turn to end, or ask without `session`"
            )
        }
        HubError::UnknownSession { .. }
        | HubError::Closed(_)
        | HubError::Busy(_)
        | HubError::Invalid(_)
        | HubError::NoModel(_)
        | HubError::UnusableModel { .. }
        | HubError::Store(_)
        | HubError::Internal(_) => error.to_string(),
    }
}

impl AskableSession {
    async fn run(self, services: &McpServices, call: &McpCall, prompt: String) -> CallOutcome {
        let id = self.handle.id().clone();
        let mut report = TurnReport::default();
        let outcome = self.ask(call, prompt, &mut report).await;
        self.handle.close_unattended();
        drop(self.held);
        match outcome {
            Ok(outcome) => outcome_of(services, &id, &outcome.end, &report).await,
            Err(error) => CallOutcome::failed(format!("ask: {} (session {id})", in_words(&error))),
        }
    }

    async fn ask(
        &self,
        call: &McpCall,
        prompt: String,
        report: &mut TurnReport,
    ) -> Result<TurnOutcome, HubError> {
        let person: Arc<dyn Client> = McpPerson::of(call);
        let mut attachment = self.handle.attach(Some(person.clone()), AttachFrom::Now).await?;
        attachment.participant.ready();
        let text = Part::Text { text: prompt, state: None, provider_metadata: None };
        let prompt = Prompt { parts: vec![text], source: PromptSource::OtherAgent, ..Prompt::default() };
        let ticket = self.handle.prompt_of(Some(person), prompt);
        self.watch(ticket, &mut attachment, call, report).await
    }

    /// Waits for the end of the turn, and sends progress meanwhile.
    async fn watch(
        &self,
        mut ticket: Ticket,
        attachment: &mut Attachment,
        call: &McpCall,
        report: &mut TurnReport,
    ) -> Result<TurnOutcome, HubError> {
        let mut progress = ProgressLines::of(call);
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = call.cancelled.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.handle.cancel();
                }
                outcome = &mut ticket.outcome => {
                    let outcome = outcome.unwrap_or_else(|_| Err(HubError::Closed(self.handle.id().clone())))?;
                    // Everything that was said is reported before the result.
                    while attachment.live.cursor() < outcome.after_index {
                        for line in report.take(&attachment.live.next().await?) {
                            progress.tell(&line).await;
                        }
                    }
                    return Ok(outcome);
                }
                segment = attachment.live.next() => {
                    for line in report.take(&segment?) {
                        progress.tell(&line).await;
                    }
                }
            }
        }
    }
}

/// The last message for whoever reads texts, and the same with everything else for programs.
async fn outcome_of(
    services: &McpServices,
    id: &SessionId,
    end: &TurnEnd,
    report: &TurnReport,
) -> CallOutcome {
    let (usage, cost) = used(services, report).await;
    let mut structured = json!({
        "sessionId": id,
        "stopReason": stop_reason(end),
        "usage": usage,
        "denied": report.denials().map(crate::denials::Denial::to_json).collect::<Vec<_>>(),
    });
    if let Some(cost) = cost {
        structured["costUsd"] = json!(cost);
    }
    let mut note = format!("[session {id}, {}]", stop_reason(end));
    for denial in report.denials() {
        note.push_str(&format!("\n[denied: {}]", denial.line()));
    }
    let said = report.last_message(id);
    let outcome = match end {
        TurnEnd::Finished(_) | TurnEnd::StepLimit if said.is_empty() => {
            CallOutcome::done("The turn ended without a word.".to_owned(), structured)
        }
        TurnEnd::Finished(_) | TurnEnd::StepLimit => CallOutcome::done(said, structured),
        TurnEnd::Aborted => {
            CallOutcome::failed_with(with_words("The turn was cancelled.", &said), structured)
        }
        TurnEnd::Failed { message, .. } => {
            CallOutcome::failed_with(with_words(&format!("The turn failed: {message}"), &said), structured)
        }
    };
    outcome.noting(note)
}

fn with_words(what: &str, said: &str) -> String {
    match said.is_empty() {
        true => what.to_owned(),
        false => format!("{what} Until then it had said:\n{said}"),
    }
}

/// What the answer used, as it is kept with it.
async fn used(services: &McpServices, report: &TurnReport) -> (Value, Option<f64>) {
    let stored = match report.answer() {
        Some(answer) => services.store.message(answer).await,
        None => Ok(None),
    };
    let metadata = match stored {
        Ok(stored) => stored.map(|(message, _)| message.metadata).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "what a turn used is not known");
            Default::default()
        }
    };
    let used = metadata.usage().unwrap_or_default();
    let usage = json!({
        "input": used.input,
        "output": used.output,
        "reasoning": used.reasoning,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
    });
    (usage, metadata.cost_usd())
}
