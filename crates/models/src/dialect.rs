//! The four dialects behind one face: a request becomes a body, events become chunks. Pure; `http` moves the
//! bytes.
//!
//! A dialect is a value. Each has a folder with one constant `SPEC`, which holds everything that differs. No
//! code outside the folders compares dialects. They share `compose` (user parts in neutral form) and `sse`.

use std::fmt::Debug;

use attache_core::ports::{ModelError, ModelRequest, StepEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::compose::{self, BlobBytes, MediaKind};
use crate::discover::{ModelList, lists};
use crate::sse::SseEvent;
use crate::vendors::{AuthHeader, Compatibility};
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// How we speak to a server. Has no `PartialEq`: a comparison would silently miss the next dialect that we add.
#[derive(Clone, Copy, Debug)]
pub enum Dialect {
    /// The Messages API.
    Anthropic,
    /// Chat Completions, which most servers speak.
    OpenAiChat,
    /// The Responses API.
    OpenAiResponses,
    /// The Gemini API.
    Gemini,
}

/// Everything about one dialect.
#[derive(Debug)]
pub(crate) struct DialectSpec {
    /// Its name in the configuration.
    pub(crate) name: &'static str,
    /// Where requests go, behind the base address; `{model}` is the model's id.
    pub(crate) path: &'static str,
    /// The dialect to try on a server that does not know `path`.
    pub(crate) alternative: Dialect,
    pub(crate) server: ServerSpec,
    /// Whether a model with a thinking budget thinks only if we ask for it.
    pub(crate) thinks_on_demand: bool,
    /// Whether the dialect has a form for such a file.
    pub(crate) takes: fn(MediaKind, &str) -> bool,
    /// The request as the server wants it.
    pub(crate) body: fn(&Outgoing<'_>) -> Vec<u8>,
    /// A decoder for one answer of this model.
    pub(crate) decoder: fn(&ModelRequest) -> Box<dyn Decoder>,
}

/// How to reach servers of a dialect. The dialects of one maker share it.
#[derive(Debug)]
pub(crate) struct ServerSpec {
    /// How base addresses usually end: with the version, where the request path has none.
    pub(crate) base_path: &'static str,
    /// Sent with every request, beside the key's header.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// How the key travels, unless the vendor has a way of its own.
    pub(crate) auth: AuthHeader,
    pub(crate) models: ModelList,
}

/// Servers that follow OpenAI, in both of its dialects.
pub(crate) const OPENAI_SERVER: ServerSpec = ServerSpec {
    base_path: "/v1",
    headers: &[],
    auth: AuthHeader::Bearer,
    models: ModelList {
        path: "/models",
        items: lists::openai_items,
        item: lists::openai_item,
        own_servers: true,
    },
};

/// What an encoder works from.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The request to encode.
    pub request: &'a ModelRequest,
    /// The bytes of attachments from the blob store, by content id.
    pub blobs: &'a BlobBytes,
    /// How this server differs from others of its dialect.
    pub compatibility: &'a Compatibility,
}

/// Whether an event advances the answer. Keep-alives do not reset the idle time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamActivity {
    /// A piece of the answer arrived.
    Progress,
    /// The server only said that it is still alive.
    KeepAlive,
}

/// Reads the events of one answer. Traces and ignores events it does not know; never panics.
pub trait Decoder: Send + Debug {
    /// Appends what the event says. `StepEvent::End` is the last thing a decoder ever appends.
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<StepEvent>)
    -> Result<StreamActivity, ModelError>;
    /// The body has ended. Appends the end if the answer is complete without a closing event; appends nothing
    /// if it was cut.
    fn body_ended(&mut self, out: &mut Vec<StepEvent>);
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// The order in which we try dialects on a server that did not answer as configured.
    pub(crate) const MOST_USED_FIRST: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The only place that tells dialects apart.
    const fn spec(self) -> &'static DialectSpec {
        match self {
            Self::Anthropic => &anthropic::SPEC,
            Self::OpenAiChat => &openai_chat::SPEC,
            Self::OpenAiResponses => &openai_responses::SPEC,
            Self::Gemini => &gemini::SPEC,
        }
    }

    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        self.spec().name
    }

    /// The dialect of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// How the key travels, unless the vendor has a way of its own.
    pub fn auth(self) -> AuthHeader {
        self.spec().server.auth
    }

    /// How base addresses usually end: `/v1`, or nothing where the version is in the paths behind it.
    pub fn base_path(self) -> &'static str {
        self.spec().server.base_path
    }

    /// The dialect to try when the server exists but does not know the path.
    pub(crate) fn alternative(self) -> Self {
        self.spec().alternative
    }

    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        self.spec().server.headers
    }

    pub(crate) fn models(self) -> &'static ModelList {
        &self.spec().server.models
    }

    pub(crate) fn thinks_on_demand(self) -> bool {
        self.spec().thinks_on_demand
    }

    /// Whether the dialect has a form for such a file.
    pub(crate) fn takes(self, mime: &str) -> bool {
        MediaKind::of(mime).is_some_and(|kind| (self.spec().takes)(kind, mime))
    }

    /// The path after the base address, with the version where the dialect puts it into the path.
    pub(crate) fn path(self, model_id: &str) -> String {
        self.spec().path.replace("{model}", model_id)
    }

    /// The request as the server wants it. Caches each encoded passage on the passage itself.
    pub fn body(self, outgoing: &Outgoing<'_>) -> Vec<u8> {
        (self.spec().body)(outgoing)
    }

    /// The same, after reading what it needs from the blob store.
    pub async fn body_of(
        self,
        request: &ModelRequest,
        compatibility: &Compatibility,
    ) -> Result<Vec<u8>, ModelError> {
        let blobs = compose::fetch_blobs(request).await?;
        Ok(self.body(&Outgoing { request, blobs: &blobs, compatibility }))
    }

    /// A decoder for one answer of this model.
    pub fn decoder(self, request: &ModelRequest) -> Box<dyn Decoder> {
        (self.spec().decoder)(request)
    }
}

/// The data of an event. Checks the UTF-8 once for all of it: a JSON reader over bytes checks each string
/// again.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// Streamed arguments as a value: no text is an empty object; text that is no JSON stays a text (the loop tells
/// the model).
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Names the model that said something only it understands again (signatures, encrypted reasoning, item ids).
/// Stored beside it as `by`; goes back only to the same provider and model.
pub(crate) fn author(request: &ModelRequest) -> String {
    request.model().to_string()
}
