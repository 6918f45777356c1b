//! A language model as the loop sees it: one request, one stream of chunks for one step.

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
    /// What was sent, the cache aside.
    pub input: u64,
    /// What was answered, thoughts included.
    pub output: u64,
    /// Thoughts, where they were counted.
    pub reasoning: u64,
    /// What the provider had kept.
    pub cache_read: u64,
    /// What the provider keeps from now on.
    pub cache_write: u64,
}

impl Usage {
    /// Everything that was sent and answered.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.reasoning + self.cache_read + self.cache_write
    }
    /// One more call.
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
    /// Whose step it is.
    pub session_id: SessionId,
    /// The model that is asked, with what is known of it: limits and modalities decide how parts are written.
    pub info: Arc<ModelInfo>,
    /// `None`: as the model does by itself.
    pub thought: Option<ThoughtLevel>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation in order; an assistant message of several steps comes as several passages with the same
    /// id.
    pub passages: Conversation,
    /// Extra text for this turn only (title, text), placed after the last user message; never stored.
    pub runtime_context: Arc<[(Option<String>, String)]>,
    /// What the model may call, in this order.
    pub tools: Arc<[ToolSpec]>,
    /// Where `attache-blob:` attachments are.
    pub blobs: Arc<dyn Blobs>,
    /// What the call is measured below; `None` on a host that measures nothing.
    pub parent_span: Option<SpanContext>,
}

impl ModelRequest {
    /// Which model is asked.
    pub fn model(&self) -> &ModelRef {
        &self.info.model
    }
}

/// What comes of a request, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEvent {
    /// Part chunks only (text, reasoning, tool input, source, file, data). Steps, start and finish are the
    /// loop's.
    Chunk(Chunk),
    /// The last event of a complete step.
    End {
        /// Why it ended.
        reason: FinishReason,
        /// What it used.
        usage: Usage,
    },
}

/// Why a model gave no answer, or not all of it.
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
    /// The provider can't take an attachment (too large, broken, of a kind it does not know).
    #[error("an attachment was rejected: {0}")]
    AttachmentRejected(String),
    /// The provider could not read what it was sent, and no attachment is to blame.
    #[error("the provider could not read the request: {0}")]
    Unreadable(String),
}

/// How much a model should think before it speaks. Dialects map it to an effort or a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThoughtLevel {
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// The usual amount of those that can be told.
    Medium,
    /// More.
    High,
    /// As much as it can.
    Max,
}

impl ThoughtLevel {
    /// Every level, the least first.
    pub const ALL: [Self; 5] = [Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// As configurations and clients name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    /// The level of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// What is sent.
    pub input: f64,
    /// Reasoning is paid as output.
    pub output: f64,
    /// What the provider had kept, where that has its own price.
    pub cache_read: f64,
    /// What the provider keeps from now on, where that has its own price.
    pub cache_write: f64,
}

impl Price {
    /// What this much costs, in dollars.
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
    /// Without a variant: the thought level is chosen beside it.
    pub model: ModelRef,
    /// As people know it.
    pub name: String,
    /// Tokens of request and answer together.
    pub context: u64,
    /// Tokens of an answer.
    pub max_output: u64,
    /// Takes images.
    pub images: bool,
    /// Takes audio.
    pub audio: bool,
    /// Takes PDF files.
    pub pdf: bool,
    /// The levels that can be chosen; empty for a model that does not reason or can't be told how much.
    pub thought_levels: Vec<ThoughtLevel>,
    /// `None`: it is not known what it costs.
    pub price: Option<Price>,
}

impl ModelInfo {
    /// An unknown model: it reads text, and sizes are what almost every server takes.
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

    /// Nobody said how much it takes: the figure is a guess.
    pub(crate) fn has_guessed_context(&self) -> bool {
        *self == Self::undescribed(self.model.clone())
    }
}

impl ModelInfo {
    /// Whether it can be given such a file natively, as far as it is known without its dialect.
    pub fn takes(&self, mime: &str) -> bool {
        const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
        let Some(kind) = Kind::of(mime) else { return false };
        kind.is_taken_by(self) && (kind != Kind::Image || IMAGES.contains(&mime))
    }
}

/// What answers: one model, or all that can be used.
pub trait Model: Send + Sync + Debug {
    /// The models that can be chosen, the default first. Empty while no provider can be used; quick, sends
    /// nothing.
    fn available(&self) -> Arc<[ModelInfo]>;

    /// What is known of a model, listed or not, whatever its variant; `None` when no provider that can be used
    /// has it. A provider that takes any name describes any name.
    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.available().iter().find(|info| info.model.names_same_model(model)).cloned()
    }

    /// Why a model that is not described can't be used and what to do, without a full stop: `no key: set X`.
    /// `None` if there is no such model at all. Quick, sends nothing.
    fn why_not(&self, _model: &ModelRef) -> Option<String> {
        None
    }

    /// What is wrong with each configured provider that gives no models, in whole sentences for a user: the
    /// address, what answered there and what to do. As of the last look; quick, sends nothing.
    fn provider_problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether this model is given such a file natively: by what it can do, and by what its dialect has a form
    /// for.
    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        info.takes(mime)
    }

    /// A small model of the same provider, for work beside a session when nothing is configured: whoever reads
    /// the conversation reads an excerpt of it too, and no other.
    fn small(&self, _beside: &ModelRef) -> Option<ModelRef> {
        None
    }

    /// Looks again for what can be used: keys that were stored meanwhile, servers that were started.
    /// `available` tells what came of it. A session may wait for this, so it takes a few seconds at most.
    fn look_again(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What the last looks still wait for: it resolves when `available` tells of it, too. `None` if nothing is
    /// outstanding.
    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// One step. The stream ends after `End` or an error; dropping it or cancelling ends the request at once.
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
