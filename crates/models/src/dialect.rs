//! The four dialects behind one face: a request becomes a body, events become chunks. Pure; `http` moves the bytes.
//!
//! Each dialect is a folder: `encode` writes requests, `decode` reads events. What they share is `compose` (user parts in
//! neutral form) and `sse`.

use std::fmt::Debug;

use attache_core::ports::{ModelError, ModelRequest, StepEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::compose::{self, BlobBytes, MediaKind};
use crate::sse::Event;
use crate::vendors::Quirks;
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
}

/// What an encoder works from.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub request: &'a ModelRequest,
    /// The bytes of the attachments that are in the blob store, by content id.
    pub blobs: &'a BlobBytes,
    pub quirks: &'a Quirks,
}

/// Whether an event moves the answer on. Only keep-alives leave the idle time-out running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Something,
    KeepAlive,
}

/// Reads the events of one answer. Events it does not know are traced and passed over; nothing makes it panic.
pub trait Decoder: Send + Debug {
    /// Appends what the event says. `StepEvent::End` is the last thing a decoder ever appends.
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<StepEvent>) -> Result<Heard, ModelError>;
    /// The body has ended. Appends the end if the answer is complete without a closing event; says nothing if it was cut.
    fn body_ended(&mut self, out: &mut Vec<StepEvent>);
}

impl Dialect {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// Whether there is a form for such a file.
    pub(crate) fn takes(self, mime: &str) -> bool {
        /// As their makers list them.
        const GEMINI_IMAGES: [&str; 5] =
            ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
        const GEMINI_AUDIO: [&str; 6] =
            ["audio/wav", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"];
        match (MediaKind::of(mime), self) {
            (None, _) => false,
            (Some(MediaKind::Pdf), _) => true,
            (Some(MediaKind::Image), Self::Gemini) => GEMINI_IMAGES.contains(&mime),
            (Some(MediaKind::Image), Self::Anthropic | Self::OpenAiChat | Self::OpenAiResponses) => true,
            (Some(MediaKind::Audio), Self::Gemini) => GEMINI_AUDIO.contains(&mime),
            (Some(MediaKind::Audio), Self::OpenAiChat) => openai_chat::audio_format(mime).is_some(),
            (Some(MediaKind::Audio), Self::Anthropic | Self::OpenAiResponses) => false,
        }
    }

    /// What stands behind the base address, version included where the dialect has one in the path.
    pub(crate) fn path(self, model_id: &str) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::OpenAiChat => "/chat/completions".to_owned(),
            Self::OpenAiResponses => "/responses".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model_id}:streamGenerateContent?alt=sse"),
        }
    }

    /// The request as the server wants it. Written passages are kept on the passages themselves.
    pub fn body(self, outgoing: &Outgoing<'_>) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::encode::body(outgoing),
            Self::OpenAiChat => openai_chat::encode::body(outgoing),
            Self::OpenAiResponses => openai_responses::encode::body(outgoing),
            Self::Gemini => gemini::encode::body(outgoing),
        }
    }

    /// The same with what has to be brought from the blob store for it.
    pub async fn body_of(self, request: &ModelRequest, quirks: &Quirks) -> Result<Vec<u8>, ModelError> {
        let blobs = compose::fetch_blobs(request).await?;
        Ok(self.body(&Outgoing { request, blobs: &blobs, quirks }))
    }

    /// A decoder for one answer of this model.
    pub fn decoder(self, request: &ModelRequest) -> Box<dyn Decoder> {
        match self {
            Self::Anthropic => Box::new(anthropic::decode::AnthropicDecoder::new(request)),
            Self::OpenAiChat => Box::new(openai_chat::decode::ChatDecoder::new(request)),
            Self::OpenAiResponses => Box::new(openai_responses::decode::ResponsesDecoder::new(request)),
            Self::Gemini => Box::new(gemini::decode::GeminiDecoder::new(request)),
        }
    }
}

/// The data of an event. Its characters are checked once for all of it: a JSON reader that is given bytes checks each text anew.
pub(crate) fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(data),
    }
}

/// Streamed arguments as a value: nothing at all is an empty object, what is no JSON stays the text it is (the loop tells the
/// model).
pub(crate) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Who said something that only its author understands again (signatures, encrypted reasoning, item ids). Stored beside it as
/// `by`; sent back only to the same provider and model.
pub(crate) fn author(request: &ModelRequest) -> String {
    request.model().to_string()
}
