//! Speaks to language models and gives back chunks. Knows no sessions, no ACP and no disk: scripts arrive as text.

mod anthropic;
mod catalogue;
mod compose;
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
mod trouble;
mod vendors;
mod written;

pub use catalogue::{Catalogue, CatalogueError, fetch};
pub use compose::BlobBytes;
pub use dialect::{Decoder, Dialect, Heard, Outgoing};
pub use discover::{DiscoverError, Found, local_servers, models_of, served_as};
pub use endpoint::{BadUrl, BaseUrl, Endpoint};
pub use http::Http;
pub use http_model::HttpModel;
pub use limits::STREAM_IDLE;
pub use registry::Providers;
pub use script::{
    Directive, ErrorKind, Script, ScriptError, ScriptedCall, ScriptedError, ScriptedModel, Step,
};
pub use script_model::ScriptModel;
pub use secret::Secret;
pub use sse::{Event, SseParser, TooLarge};
pub use vendors::{
    AnswerLimit, AuthHeader, CallIds, Compatibility, Effort, KeyNeed, PictureUrls, ReasoningBack, Shelf,
    StreamUsage, Texts, TopEffort, Turns, VENDORS, Vendor,
};
