//! The dialect Gemini generateContent: requests out, events in.

mod code;
mod contents;
pub(crate) mod decode;
pub(crate) mod encode;
mod family;
mod finish;
mod models;
#[cfg(test)]
mod tests;
mod wire;

use attache_core::chunk::{Rest, RestFields};
use serde_json::{Value, json};

use crate::compose::MediaKind;
use crate::dialect::{Dialect, DialectSpec, ServerSpec};
use crate::discover::ModelList;
use crate::vendors::AuthHeader;

/// The picture types that Google lists.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const AUDIO: [&str; 6] = ["audio/wav", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"];

pub(crate) const SPEC: DialectSpec = DialectSpec {
    name: "gemini",
    path: "/v1beta/models/{model}:streamGenerateContent?alt=sse",
    alternative: Dialect::OpenAiChat,
    server: ServerSpec {
        base_path: "",
        headers: &[],
        auth: AuthHeader::Goog,
        models: ModelList {
            path: "/v1beta/models?pageSize=1000",
            items: models::items,
            item: models::item,
            own_servers: false,
        },
    },
    thinks_on_demand: false,
    takes: |kind, mime| match kind {
        MediaKind::Image => IMAGES.contains(&mime),
        MediaKind::Audio => AUDIO.contains(&mime),
        MediaKind::Pdf => true,
    },
    body: encode::body,
    decoder: |request| Box::new(decode::GeminiDecoder::new(request)),
};

/// A signature with the model that made it: the API wants it back on the same part, and only from that model.
fn signed(signature: String, author: &str) -> Rest {
    let metadata = json!({ "google": { "thoughtSignature": signature, "by": author } });
    Rest(Some(Box::new(RestFields { provider_metadata: Some(metadata), ..RestFields::default() })))
}

/// The signature on a part, if this author made it.
fn signature<'a>(metadata: Option<&'a Value>, author: &str) -> Option<&'a str> {
    let google = metadata?.get("google")?;
    let by = google.get("by")?.as_str()?;
    (by == author).then(|| google.get("thoughtSignature")?.as_str()).flatten()
}
