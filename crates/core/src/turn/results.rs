//! Chunks about a call while it waits, runs and ends. Decides nothing; `calls` does.

use serde_json::{Value, json};

use super::Turn;
use super::call::Call;
use super::repeats::ResultDigest;
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::data_name::DataName;
use crate::ids::CallId;
use crate::metadata::only_own;
use crate::picture;
use crate::ports::FittedPicture;
use crate::ports::client::{Ask, ModeProposal, Question, Said};
use crate::ports::store::StoreResult;
use crate::ports::tool::{FoundPicture, Presentation, Shown, ToolOutcome};
use crate::watchdog::{Action, Verdict};

/// The transient chunk that stores an answer; it makes no part of its own.
pub(crate) fn approval(ask: &Ask, answer: Action, reason: Option<&str>, decision: Option<&Verdict>) -> Chunk {
    let approved = answer == Action::Allow;
    let mut data = json!({
        "approval_id": ask.approval_id,
        "call_id": ask.call_id,
        "approved": approved,
        "reason": reason,
    });
    // A call that runs has the decision in its result.
    if let Some(decision) = decision.filter(|_| !approved) {
        data["decision"] = json!(decision);
    }
    Chunk::transient_data(DataName::Approval, data)
}

pub(crate) fn preliminary(call_id: &CallId, presentation: &Presentation) -> Chunk {
    Chunk::ToolOutputAvailable {
        call_id: call_id.clone(),
        output: Value::Null,
        preliminary: Some(true),
        marks: ToolMarks::default(),
        rest: Rest::with_tool_metadata(only_own(presentation)),
    }
}

/// The one result of a call that ran. Stores a picture before announcing it.
pub(super) async fn finished(turn: &Turn, call: &Call, outcome: ToolOutcome) -> StoreResult<Chunk> {
    // Before the call's own warning, which depends on it.
    call.result.get_or_init(|| ResultDigest::of(&outcome));
    let warning = call.warning();
    Ok(match outcome {
        ToolOutcome::Output { data, presentation } => output(call, data, presentation, warning),
        ToolOutcome::Picture { found, mut presentation } => {
            presentation.content.push(picture::shown(&found));
            let found = match fitted(turn, found).await {
                Ok(found) => found,
                Err(text) => return Ok(call.failure(&text)),
            };
            let size = found.bytes.len();
            let session_id = &turn.setup.workspace.session_id;
            let digest = turn.hub.ports.blobs.put(session_id, found.bytes).await?;
            let data = picture::output(&found.path, found.mime, size, &digest, &found.text);
            output(call, data, presentation, warning)
        }
        ToolOutcome::Error { text, presentation: Some(presentation) } => {
            call.failure_shown(&text, call.complete(presentation))
        }
        ToolOutcome::Error { text, presentation: None } => call.failure(&text),
    })
}

/// The picture in a form that providers accept.
async fn fitted(turn: &Turn, found: FoundPicture) -> Result<FoundPicture, String> {
    let Some(pictures) = &turn.hub.ports.pictures else { return Ok(found) };
    let path = found.path.display().to_string();
    // A large picture takes seconds.
    let fitted = tokio::select! {
        biased;
        fitted = pictures.fit(found.bytes.clone()) => fitted,
        () = turn.cancel.cancelled() => Err("cancelled while it was converted".to_owned()),
    };
    Ok(match fitted.map_err(|reason| format!("{path}: {reason}"))? {
        Some(FittedPicture { mime, bytes }) => FoundPicture { mime, bytes, ..found },
        None => found,
    })
}

fn output(call: &Call, data: Value, mut presentation: Presentation, warning: Option<String>) -> Chunk {
    Chunk::ToolOutputAvailable {
        call_id: call.call_id.clone(),
        output: with_warning(data, warning, &mut presentation),
        preliminary: None,
        marks: ToolMarks::default(),
        rest: Rest::with_tool_metadata(only_own(call.complete(presentation))),
    }
}

/// The one result of a call that asked: every question with its answer.
pub(super) fn said(call: &Call, questions: &[Question], answers: &[Said]) -> ToolOutcome {
    let pairs = || questions.iter().zip(answers.iter().chain(std::iter::repeat(&Said::Nothing)));
    let spoken = |(question, said): (&Question, &Said)| {
        let answer = match said {
            Said::Text(text) => json!(text),
            Said::Chosen(labels) => json!(labels),
            Said::Nothing => Value::Null,
        };
        json!({ "question": question.text, "answer": answer })
    };
    let line = |(question, said): (&Question, &Said)| {
        let answer = match said {
            Said::Text(text) => text.clone(),
            Said::Chosen(labels) => labels.join(", "),
            Said::Nothing => "–".to_owned(),
        };
        Shown::Text { text: format!("{}\n\n{answer}", question.text) }
    };
    ToolOutcome::Output {
        data: json!({ "answers": pairs().map(spoken).collect::<Vec<_>>() }),
        presentation: Presentation { content: pairs().map(line).collect(), ..call.presentation() },
    }
}

/// The one result of a call whose proposal was accepted; the model learns of the new mode only from it.
pub(super) fn switched_to(call: &Call, proposal: &ModeProposal) -> ToolOutcome {
    let ModeProposal { agent, .. } = proposal;
    let text = format!("The user agrees and has switched the mode to `{agent}`. Do now what you proposed.");
    ToolOutcome::Output { data: text.into(), presentation: call.presentation() }
}

fn with_warning(data: Value, warning: Option<String>, presentation: &mut Presentation) -> Value {
    match (data, warning) {
        (data, None) => data,
        (Value::String(text), Some(warning)) => {
            let note = format!("\n\n{warning}");
            presentation.note_bytes += note.len();
            Value::String(text + &note)
        }
        (Value::Object(mut fields), Some(warning)) => {
            fields.insert("warning".into(), Value::String(warning));
            Value::Object(fields)
        }
        (other, Some(warning)) => json!({ "result": other, "warning": warning }),
    }
}
