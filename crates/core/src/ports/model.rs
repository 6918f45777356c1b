//! A language model as the loop uses it: one request gives one stream of chunks for one step.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::store::{Blobs, ModelRef};
use super::telemetry::SpanContext;
use super::tool::ToolSpec;
use super::{BoxFuture, BoxStream};
use crate::chunk::{Chunk, FinishReason};
use crate::conversation::Conversation;
use crate::ids::SessionId;
use crate::prompt::media::Kind;

/// The five disjoint token counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens sent, without those from the cache.
    pub input: u64,
    /// Tokens answered, including thoughts.
    pub output: u64,
    /// Tokens of thoughts, if they were counted.
    pub reasoning: u64,
    /// Tokens that the provider read from its cache.
    pub cache_read: u64,
    /// Tokens that the provider wrote to its cache.
    pub cache_write: u64,
}

impl Usage {
    /// All tokens sent and answered.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.reasoning + self.cache_read + self.cache_write
    }
    /// Adds the usage of another call.
    pub fn add(&mut self, other: &Usage) {
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

/// The request of one step. It shares the history and never copies it.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Whose step it is.
    pub session_id: SessionId,
    /// The model to ask, with what is known of it: its limits and modalities decide how parts are encoded.
    pub info: Arc<ModelInfo>,
    /// `None`: the model's default.
    pub thought: Option<ThoughtLevel>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation in order; an assistant message of several steps comes as several passages with the same
    /// id.
    pub passages: Conversation,
    /// Extra text for this turn only (title, text), placed after the last user message; never stored.
    pub runtime_context: Arc<[(Option<String>, String)]>,
    /// The tools that the model may call, in this order.
    pub tools: Arc<[ToolSpec]>,
    /// The store of `attache-blob:` attachments.
    pub blobs: Arc<dyn Blobs>,
    /// The parent span of the call; `None` on a host that measures nothing.
    pub parent_span: Option<SpanContext>,
}

impl ModelRequest {
    /// Which model is asked.
    pub fn model(&self) -> &ModelRef {
        &self.info.model
    }
}

/// What a request yields, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEvent {
    /// Part chunks only (text, reasoning, tool input, source, file, data). The loop makes step, start and
    /// finish chunks.
    Chunk(Chunk),
    /// The last event of a complete step.
    End {
        /// Why it ended.
        reason: FinishReason,
        /// What it used.
        usage: Usage,
    },
}

/// Why a model gave no answer, or an incomplete one.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ModelError {
    /// Worth another try before the first chunk; after it the step stays as it is.
    #[error("{message}")]
    Transient { message: String, retry_after: Option<Duration> },
    #[error("{0}")]
    Permanent(String),
    #[error("authentication required: {0}")]
    Auth(String),
    #[error("the model declined this prompt: {0}")]
    Refused(String),
    /// The conversation is longer than the model's context.
    #[error("the conversation no longer fits the model: {0}")]
    Overflow(String),
    /// The provider can't accept an attachment (too large, broken, of a kind it does not know).
    #[error("an attachment was rejected: {0}")]
    AttachmentRejected(String),
    /// The provider could not read the request, and no attachment is the cause.
    #[error("the provider could not read the request: {0}")]
    Unreadable(String),
}

/// How much a model should think before it answers. Dialects map it to an effort or a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThoughtLevel {
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// The middle level.
    Medium,
    /// More.
    High,
    /// As much as it can.
    Max,
}

impl ThoughtLevel {
    /// Every level, the least first.
    pub const ALL: [Self; 5] = [Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// The name that configurations and clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    /// The level with that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Of tokens sent.
    pub input: f64,
    /// Of tokens answered; reasoning is paid as output.
    pub output: f64,
    /// Of tokens read from the cache, if they have their own price.
    pub cache_read: f64,
    /// Of tokens written to the cache, if they have their own price.
    pub cache_write: f64,
}

impl Price {
    /// The price of this usage, in dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let spent = usage.input as f64 * self.input
            + (usage.output + usage.reasoning) as f64 * self.output
            + usage.cache_read as f64 * self.cache_read
            + usage.cache_write as f64 * self.cache_write;
        spent / 1_000_000.0
    }
}

/// What is known of a model without asking it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// Without a variant: the user chooses the thought level separately.
    pub model: ModelRef,
    /// The name that people read.
    pub name: String,
    /// The most tokens of request and answer together.
    pub context: u64,
    /// The most tokens of an answer.
    pub max_output: u64,
    /// Accepts images.
    pub images: bool,
    /// Accepts audio.
    pub audio: bool,
    /// Accepts PDF files.
    pub pdf: bool,
    /// The levels to choose from; empty for a model that does not reason or can't be told how much.
    pub thought_levels: Vec<ThoughtLevel>,
    /// `None`: the price is unknown.
    pub price: Option<Price>,
}

impl ModelInfo {
    /// An unknown model: text only, with sizes that almost every server accepts.
    pub fn undescribed(model: ModelRef) -> Self {
        Self {
            name: model.model_id.clone(),
            model,
            context: 128_000,
            max_output: 8_192,
            images: false,
            audio: false,
            pdf: false,
            thought_levels: Vec::new(),
            price: None,
        }
    }

    /// The size of its context is a guess, because no source states it.
    pub(crate) fn has_guessed_context(&self) -> bool {
        *self == Self::undescribed(self.model.clone())
    }
}

impl ModelInfo {
    /// Whether it accepts such a file natively, as far as this can be said without its dialect.
    pub fn takes(&self, mime: &str) -> bool {
        const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
        let Some(kind) = Kind::of(mime) else { return false };
        kind.is_taken_by(self) && (kind != Kind::Image || IMAGES.contains(&mime))
    }
}

/// A model, or all usable models together.
pub trait Model: Send + Sync + Debug {
    /// The models to choose from, the default first. Empty while no provider can be used; quick, sends nothing.
    fn available(&self) -> Arc<[ModelInfo]>;

    /// What is known of a model, listed or not, whatever its variant; `None` if no usable provider has it. A
    /// provider that accepts any name describes any name.
    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.available().iter().find(|info| info.model.names_same_model(model)).cloned()
    }

    /// Why a model without a description can't be used and what to do about it, without a full stop: `no key:
    /// set X`. `None` if there is no such model at all. Quick, sends nothing.
    fn why_not(&self, _model: &ModelRef) -> Option<String> {
        None
    }

    /// The problem of each configured provider that gives no models, in whole sentences for a user: the
    /// address, what answered there and what to do. From the last look; quick, sends nothing.
    fn provider_problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether this model accepts such a file natively: its abilities allow it, and its dialect has a form for
    /// it.
    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        info.takes(mime)
    }

    /// A small model of the same provider, for work beside a session if nothing is configured. The same
    /// provider, so that no other one reads an excerpt of the conversation.
    fn small(&self, _beside: &ModelRef) -> Option<ModelRef> {
        None
    }

    /// Looks again for usable models: keys may have been stored and servers started meanwhile. `available` then
    /// gives the result. A session may wait for this, so it takes a few seconds at most.
    fn look_again(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Resolves when answers that the last look still waits for have arrived, so that `available` includes
    /// them. `None` if none are outstanding.
    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Runs one step. The stream ends after `End` or an error; dropping or cancelling it ends the request at
    /// once.
    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>>;
}

/// A model around another one, which answers everything: only what it streams is looked at on its way.
pub trait ModelAround: Send + Sync + Debug {
    /// The one that answers.
    fn inner(&self) -> &Arc<dyn Model>;

    /// As `Model::stream`.
    fn stream_through(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>>;
}

impl<Around: ModelAround> Model for Around {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.inner().available()
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.inner().describe(model)
    }

    fn why_not(&self, model: &ModelRef) -> Option<String> {
        self.inner().why_not(model)
    }

    fn provider_problems(&self) -> Vec<String> {
        self.inner().provider_problems()
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        self.inner().takes(info, mime)
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        self.inner().small(beside)
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        self.inner().look_again()
    }

    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        self.inner().late_answers()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        self.stream_through(request, cancel)
    }
}
