//! A language model as the loop sees it: one request, one stream of chunks for one step.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::BoxStream;
use super::store::ModelRef;
use super::tool::ToolSpec;
use crate::chunk::{Chunk, FinishReason};
use crate::ids::SessionId;
use crate::part::Passage;

/// The five disjoint token counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub reasoning: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.input + self.output + self.reasoning + self.cache_read + self.cache_write
    }
    pub fn add(&mut self, other: &Usage) {
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

/// What one step sends. History is shared, never copied.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub session_id: SessionId,
    pub model: ModelRef,
    pub system: Arc<str>,
    /// The conversation in order; an assistant message of several steps comes as several passages with the same id.
    pub passages: Arc<Vec<Arc<Passage>>>,
    /// Extra text for this turn only (title, text), placed after the last user message; never stored.
    pub runtime_context: Arc<[(Option<String>, String)]>,
    pub tools: Arc<[ToolSpec]>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepEvent {
    /// Part chunks only (text, reasoning, tool input, source, file, data). Steps, start and finish are the loop's.
    Chunk(Chunk),
    /// The last event of a complete step.
    End { reason: FinishReason, usage: Usage },
}

#[derive(Clone, Debug, Error, PartialEq)]
pub enum ModelError {
    /// Worth another try before the first chunk; after it the step stands as it is.
    #[error("{message}")]
    Transient { message: String, retry_after: Option<Duration> },
    #[error("{0}")]
    Permanent(String),
    #[error("authentication required: {0}")]
    Auth(String),
    #[error("the model declined this prompt: {0}")]
    Refused(String),
}

/// What is known of a model without asking it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    pub model: ModelRef,
    pub name: String,
    pub context: u64,
    pub max_output: u64,
    pub images: bool,
    pub audio: bool,
}

pub trait Model: Send + Sync + Debug {
    /// The models that can be chosen, the default first. Never empty for a usable configuration.
    fn available(&self) -> Arc<[ModelInfo]>;
    /// One step. The stream ends after `End` or an error; dropping it or cancelling ends the request at once.
    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>>;
}
