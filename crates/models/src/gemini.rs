//! The dialect Gemini generateContent: requests out, events in.

mod code;
mod contents;
pub(crate) mod decode;
pub(crate) mod encode;
mod family;
mod finish;
#[cfg(test)]
mod tests;
mod wire;

use attache_core::chunk::{Rest, RestFields};
use serde_json::{Value, json};

/// A signature beside who made it: the API wants it back on the same part, and only from the model it came from.
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
