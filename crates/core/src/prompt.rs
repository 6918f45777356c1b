//! A prompt on its way in: typed user parts, what a client says of them, and the shelving of large attachments.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::ids::{MessageId, SessionId};
use crate::limits::INLINE_ATTACHMENT_BYTES;
use crate::part::Part;
use crate::ports::store::{Blobs, StoreResult};
use crate::prompt::media::Marks;

pub mod media;

/// The scheme of a file part whose bytes are in the blob store.
pub const BLOB_SCHEME: &str = "attache-blob:";

/// One user message as a client sent it, validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    pub parts: Vec<Part>,
    /// Minted by the client so that sending twice stores once.
    pub message_id: Option<MessageId>,
    /// Text for the model requests of this turn only: (title, text). Never stored.
    pub runtime_context: Vec<(Option<String>, String)>,
}

/// Moves attachments above the inline size to the blob store; the part keeps the content id.
pub async fn shelve(parts: &mut [Part], session: &SessionId, blobs: &dyn Blobs) -> StoreResult<()> {
    for part in parts {
        let Part::File { url, provider_metadata, .. } = part else { continue };
        let Some((_, data)) = url.split_once(";base64,") else { continue };
        if data.len() / 4 * 3 <= INLINE_ATTACHMENT_BYTES {
            continue;
        }
        let Ok(bytes) = STANDARD.decode(data) else { continue };
        let size = Some(bytes.len() as u64);
        let digest = blobs.put(session, bytes).await?;
        *provider_metadata = Marks { size, ..Marks::of(provider_metadata.as_ref()) }.metadata();
        *url = format!("{BLOB_SCHEME}{digest}");
    }
    Ok(())
}

/// The text of a prompt as one string: text parts joined by blank lines.
pub fn text_of(parts: &[Part]) -> String {
    let mut joined = String::new();
    for part in parts {
        if let Part::Text { text, .. } = part {
            if !joined.is_empty() {
                joined.push_str("\n\n");
            }
            joined.push_str(text);
        }
    }
    joined
}

/// SHA-256 in hex: how blobs are named.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
