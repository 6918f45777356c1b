//! Whether the model really answers: asks it for one word, in the way a session would. Costs a few tokens.

use std::sync::Arc;
use std::time::Instant;

use attache_core::chunk::Chunk;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::model::{ModelInfo, ModelRequest, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{Model, ModelError, StepEvent};
use attache_store::FileBlobs;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Finding;
use super::model::ListedModels;
use crate::limits::DOCTOR_ANSWER;
use crate::providers::{LiveProviders, Standing};
use crate::setup::Sources;

const SUBJECT: &str = "answer";
const SYSTEM: &str = "You are being tested. Do exactly what the user says.";
const PROMPT: &str = "Answer with the word OK and nothing else.";

pub(super) async fn check(
    sources: &Sources,
    live: &LiveProviders,
    standing: &Standing<'_>,
    model: &ModelRef,
    list: ListedModels,
) -> Finding {
    let info = live.describe(model).unwrap_or_else(|| ModelInfo::undescribed(model.clone()));
    let started = Instant::now();
    match tokio::time::timeout(DOCTOR_ANSWER, hear(live, request(sources, info))).await {
        Ok(Ok(text)) if text.trim().is_empty() => Finding::warn(
            SUBJECT,
            format!("{model} answered without any text"),
            "try another model: `attache models` lists them",
        ),
        Ok(Ok(_)) => {
            Finding::ok(SUBJECT, format!("{model} answered after {:.1} s", started.elapsed().as_secs_f32()))
        }
        Ok(Err(error)) => Finding::fail(SUBJECT, error.to_string(), next(&error, standing, list)),
        Err(_) => Finding::warn(
            SUBJECT,
            format!("{model} has not answered within {} s", DOCTOR_ANSWER.as_secs()),
            "a local server may still be loading the model: try again in a minute",
        ),
    }
}

fn request(sources: &Sources, info: ModelInfo) -> ModelRequest {
    let text = Part::Text { text: PROMPT.to_owned(), state: None, provider_metadata: None };
    let asked = Passage::new(MessageId::new(""), Role::User, vec![text]);
    ModelRequest {
        session_id: SessionId::new("doctor"),
        thought: Some(ThoughtLevel::Off).filter(|off| info.thought_levels.contains(off)),
        info: Arc::new(info),
        system: SYSTEM.into(),
        passages: vec![Arc::new(asked)].into(),
        runtime_context: Arc::new([]),
        tools: Arc::new([]),
        blobs: Arc::new(FileBlobs::new(sources.dirs.blobs.clone())),
        parent_span: None,
    }
}

async fn hear(live: &LiveProviders, request: ModelRequest) -> Result<String, ModelError> {
    let mut events = live.stream(request, CancellationToken::new());
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let StepEvent::Chunk(Chunk::TextDelta { delta, .. }) = event? {
            text.push_str(&delta);
        }
    }
    Ok(text)
}

fn next(error: &ModelError, standing: &Standing<'_>, list: ListedModels) -> String {
    let name = &standing.provider.name;
    match error {
        ModelError::Transient { .. } => match standing.provider.vendor {
            Some(_) => "try again; if it stays, look at the provider's status page".to_owned(),
            None => "try again; if it stays, look into the server's log".to_owned(),
        },
        // The error already says where the key comes from and what to do.
        ModelError::Auth(_) => String::new(),
        ModelError::Permanent(_) | ModelError::Refused(_) | ModelError::Unreadable(_) => match list {
            ListedModels::Given => format!("`attache models {name}` lists its models"),
            ListedModels::Missing => "check the address and the name of the model".to_owned(),
        },
        ModelError::Overflow(_) => {
            "the model's window is smaller than one sentence: choose another one".to_owned()
        }
        ModelError::AttachmentRejected(_) => "nothing was attached: report this".to_owned(),
    }
}
