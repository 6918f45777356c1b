//! Speaks to language models and gives back chunks. Knows no sessions, no ACP and no disk: scripts arrive as
//! text.
#![warn(missing_docs)]

mod answer_length;
mod anthropic;
mod catalogue;
mod compose;
mod diagnose;
mod dialect;
mod discover;
mod endpoint;
mod escaped;
mod failure;
mod gemini;
mod http;
mod http_model;
mod limits;
mod openai_chat;
mod openai_responses;
mod registry;
mod script;
mod script_model;
mod secret;
mod sse;
mod transport_error;
mod vendors;
mod written;

pub use answer_length::answer_share;
pub use catalogue::{Catalogue, CatalogueError, fetch};
pub use compose::BlobBytes;
pub use diagnose::{
    Correction, ListFailure, ProviderDiagnosis, ProviderFailure, diagnose_provider, find_correction,
};
pub use dialect::{Decoder, Dialect, Outgoing, StreamActivity};
pub use discover::{DiscoverError, ListWait, list_address, models_of, served_as};
pub use endpoint::{BadUrl, BaseUrl, Endpoint};
pub use http::Http;
pub use http_model::HttpModel;
pub use limits::STREAM_IDLE;
pub use registry::Providers;
pub use script::{
    Directive, ErrorKind, Script, ScriptError, ScriptStep, ScriptedCall, ScriptedError, ScriptedModel,
};
pub use script_model::ScriptModel;
pub use secret::Secret;
pub use sse::{SseEvent, SseParser, TooLarge};
pub use vendors::{
    AnswerLimit, AuthHeader, CallIds, Compatibility, Effort, KeyNeed, PictureUrls, ReasoningBack, Shelf,
    StreamUsage, TextParts, TopEffort, Turns, VENDORS, Vendor,
};
