//! The four dialects behind one face: a request becomes a body, events become chunks. Pure; `http` moves the
//! bytes.
//!
//! A dialect is a value: each has a folder, and there one constant `SPEC` with all that is its own. Outside of
//! the folders nothing compares dialects. What they share is `compose` (user parts in neutral form) and `sse`.

use std::fmt::Debug;

use attache_core::ports::{ModelError, ModelRequest, StepEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::compose::{self, BlobBytes, MediaKind};
use crate::discover::{ModelList, lists};
use crate::sse::SseEvent;
use crate::vendors::{AuthHeader, Compatibility};
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// How a server is spoken to. No `PartialEq`: a comparison would silently leave out the dialect that is added
/// next.
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
    /// As the configuration says it.
    pub(crate) name: &'static str,
    /// Where requests go, behind the base address; `{model}` is the model's id.
    pub(crate) path: &'static str,
    /// What a server may speak that does not know `path`.
    pub(crate) alternative: Dialect,
    pub(crate) server: ServerSpec,
    /// Whether a model with a budget for thoughts thinks only when it is told to.
    pub(crate) thinks_on_demand: bool,
    /// Whether there is a form for such a file.
    pub(crate) takes: fn(MediaKind, &str) -> bool,
    /// The request as the server wants it.
    pub(crate) body: fn(&Outgoing<'_>) -> Vec<u8>,
    /// A decoder for one answer of this model.
    pub(crate) decoder: fn(&ModelRequest) -> Box<dyn Decoder>,
}

/// How servers of a dialect are reached. Dialects of one maker share it.
#[derive(Debug)]
pub(crate) struct ServerSpec {
    /// How base addresses usually end: with the version, where the path of a request has none.
    pub(crate) base_path: &'static str,
    /// Of every request, beside the key's.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// How the key travels, unless the vendor has a way of its own.
    pub(crate) auth: AuthHeader,
    pub(crate) models: ModelList,
}

/// Servers that follow OpenAI, for both of its dialects.
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
    /// What is to be sent.
    pub request: &'a ModelRequest,
    /// The bytes of the attachments that are in the blob store, by content id.
    pub blobs: &'a BlobBytes,
    /// How this server differs from others of its dialect.
    pub compatibility: &'a Compatibility,
}

/// Whether an event moves the answer on. Only keep-alives leave the idle time-out running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamActivity {
    /// Something of the answer has come.
    Progress,
    /// The server only said that it is still there.
    KeepAlive,
}

/// Reads the events of one answer. Events it does not know are traced and passed over; nothing makes it panic.
pub trait Decoder: Send + Debug {
    /// Appends what the event says. `StepEvent::End` is the last thing a decoder ever appends.
    fn event(&mut self, event: &SseEvent<'_>, out: &mut Vec<StepEvent>)
    -> Result<StreamActivity, ModelError>;
    /// The body has ended. Appends the end if the answer is complete without a closing event; says nothing if
    /// it was cut.
    fn body_ended(&mut self, out: &mut Vec<StepEvent>);
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    /// The order in which a server is tried that did not answer as configured.
    pub(crate) const MOST_USED_FIRST: [Self; 4] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The one place that tells dialects apart.
    const fn spec(self) -> &'static DialectSpec {
        match self {
            Self::Anthropic => &anthropic::SPEC,
            Self::OpenAiChat => &openai_chat::SPEC,
            Self::OpenAiResponses => &openai_responses::SPEC,
            Self::Gemini => &gemini::SPEC,
        }
    }

    /// As configurations name it.
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

    /// The dialect to try where a server knows the address and not the path behind it.
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

    /// Whether there is a form for such a file.
    pub(crate) fn takes(self, mime: &str) -> bool {
        MediaKind::of(mime).is_some_and(|kind| (self.spec().takes)(kind, mime))
    }

    /// What follows the base address, version included where the dialect has one in the path.
    pub(crate) fn path(self, model_id: &str) -> String {
        self.spec().path.replace("{model}", model_id)
    }

    /// The request as the server wants it. Written passages are kept on the passages themselves.
    pub fn body(self, outgoing: &Outgoing<'_>) -> Vec<u8> {
        (self.spec().body)(outgoing)
    }

    /// The same with what has to be brought from the blob store for it.
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

/// The data of an event. Its characters are checked once for all of it: a JSON reader that is given bytes
/// checks each text anew.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// Streamed arguments as a value: nothing at all is an empty object, what is no JSON stays the text it is (the
/// loop tells the model).
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Who said something that only its author understands again (signatures, encrypted reasoning, item ids).
/// Stored beside it as `by`; sent back only to the same provider and model.
pub(crate) fn author(request: &ModelRequest) -> String {
    request.model().to_string()
}
