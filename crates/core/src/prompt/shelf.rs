//! Moves what is too large for a row to the blob store: attachments, embedded texts and files that a model
//! made. Brings it back for clients. The part keeps the digest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::chunk::Chunk;
use crate::data_name::DataName;
use crate::entry::{Segment, SharedSegment};
use crate::ids::SessionId;
use crate::limits::INLINE_ATTACHMENT_BYTES;
use crate::part::Part;
use crate::picture::Picture;
use crate::ports::store::{Blobs, StoreResult};
use crate::prompt::media::Marks;

/// The scheme of a part whose content is in the blob store.
pub const BLOB_SCHEME: &str = "attache-blob:";

/// Moves content above the inline size to the blob store.
pub(crate) async fn shelve(parts: &mut [Part], session: &SessionId, blobs: &dyn Blobs) -> StoreResult<()> {
    for part in parts {
        match part {
            Part::File { url, provider_metadata, .. } => {
                let Some(bytes) = large_file(url) else { continue };
                let size = Some(bytes.len() as u64);
                *url = format!("{BLOB_SCHEME}{}", blobs.put(session, bytes).await?);
                *provider_metadata = Marks { size, ..Marks::of(provider_metadata.as_ref()) }
                    .within(provider_metadata.as_ref());
            }
            Part::Data { name, data, .. } if *name == DataName::Context => {
                let Some(text) = large_text(data) else { continue };
                let size = text.len();
                let digest = blobs.put(session, text.into_bytes()).await?;
                data["blob"] = format!("{BLOB_SCHEME}{digest}").into();
                data["size"] = size.into();
            }
            Part::StepStart
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::Tool(_)
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::Data { .. } => {}
        }
    }
    Ok(())
}

/// The same for a file that a model made, before it is recorded.
pub(crate) async fn shelve_chunk(
    chunk: &mut Chunk,
    session: &SessionId,
    blobs: &dyn Blobs,
) -> StoreResult<()> {
    let Chunk::File { url, rest, .. } = chunk else { return Ok(()) };
    let Some(bytes) = large_file(url) else { return Ok(()) };
    let size = Some(bytes.len() as u64);
    *url = format!("{BLOB_SCHEME}{}", blobs.put(session, bytes).await?);
    let metadata = Marks { size, ..Marks::of(rest.provider_metadata()) }.within(rest.provider_metadata());
    rest.0.get_or_insert_default().provider_metadata = metadata;
    Ok(())
}

/// The bytes of a data URL, if they are too many for a row.
fn large_file(url: &str) -> Option<Vec<u8>> {
    let (_, data) = url.split_once(";base64,")?;
    if data.len() / 4 * 3 <= INLINE_ATTACHMENT_BYTES {
        return None;
    }
    STANDARD.decode(data).ok()
}

/// Removes a text that is too large for a row from its part.
fn large_text(data: &mut Value) -> Option<String> {
    let fields = data.as_object_mut()?;
    let is_large = |text: &Value| text.as_str().is_some_and(|text| text.len() > INLINE_ATTACHMENT_BYTES);
    if !fields.get("text").is_some_and(is_large) {
        return None;
    }
    match fields.shift_remove("text") {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    }
}

/// The digest of an embedded text in the blob store.
pub fn shelved_text(data: &Value) -> Option<&str> {
    data.get("blob")?.as_str()?.strip_prefix(BLOB_SCHEME)
}

/// The digests that a part refers to.
pub fn digests(part: &Part) -> Vec<&str> {
    match part {
        Part::File { url, provider_metadata, .. } => {
            let fitted = Marks::of(provider_metadata.as_ref()).fitted.map(|fitted| fitted.digest);
            url.strip_prefix(BLOB_SCHEME).into_iter().chain(fitted).collect()
        }
        Part::Data { name, data, .. } if *name == DataName::Context => {
            shelved_text(data).into_iter().collect()
        }
        Part::Tool(tool) => {
            let picture = tool.output.as_ref().and_then(Picture::of);
            picture.map(|picture| picture.digest).into_iter().collect()
        }
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::Data { .. } => Vec::new(),
    }
}

/// Entries for clients, with shelved content restored. Content that is gone or unreadable stays a reference.
pub(crate) async fn brought_back(segment: SharedSegment, blobs: &dyn Blobs) -> SharedSegment {
    if !segment.chunks.iter().any(is_shelved) {
        return segment;
    }
    let mut chunks = segment.chunks.clone();
    for chunk in &mut chunks {
        if let Err(error) = bring_back(chunk, blobs).await {
            tracing::warn!(%error, "an attachment can't be read");
        }
    }
    let Segment { session_id, message_id, role, first_index, first_step, bytes, .. } = &*segment;
    let (session_id, message_id) = (session_id.clone(), message_id.clone());
    let (role, first_index, first_step, bytes) = (*role, *first_index, *first_step, *bytes);
    Segment { session_id, message_id, role, first_index, first_step, chunks, bytes }.into()
}

/// The same for the parts of a prompt.
pub async fn parts_brought_back(mut parts: Vec<Part>, blobs: &dyn Blobs) -> StoreResult<Vec<Part>> {
    for part in &mut parts {
        let digest = match &*part {
            Part::File { url, .. } => url.strip_prefix(BLOB_SCHEME),
            Part::Data { name, data, .. } if *name == DataName::Context => shelved_text(data),
            Part::StepStart
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::Tool(_)
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::Data { .. } => None,
        };
        let Some(digest) = digest else { continue };
        let Some(bytes) = blobs.get(digest).await? else { continue };
        match part {
            Part::File { url, media_type, .. } => *url = data_url(media_type, &bytes),
            Part::Data { data: Value::Object(fields), .. } => put_text_back(fields, &bytes),
            Part::StepStart
            | Part::Text { .. }
            | Part::Reasoning { .. }
            | Part::Tool(_)
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::Data { .. } => {}
        }
    }
    Ok(parts)
}

fn put_text_back(fields: &mut serde_json::Map<String, Value>, bytes: &[u8]) {
    fields.shift_remove("blob");
    fields.shift_remove("size");
    fields.insert("text".into(), json!(String::from_utf8_lossy(bytes)));
}

fn is_shelved(chunk: &Chunk) -> bool {
    shelved_file(chunk).is_some() || shelved_context(chunk).is_some()
}

fn shelved_file(chunk: &Chunk) -> Option<&str> {
    if let Chunk::File { url, .. } = chunk { url.strip_prefix(BLOB_SCHEME) } else { None }
}

fn shelved_context(chunk: &Chunk) -> Option<&str> {
    let Chunk::Data { name, data, .. } = chunk else { return None };
    shelved_text(data).filter(|_| *name == DataName::Context)
}

async fn bring_back(chunk: &mut Chunk, blobs: &dyn Blobs) -> StoreResult<()> {
    let Some(digest) = shelved_file(chunk).or_else(|| shelved_context(chunk)) else { return Ok(()) };
    let Some(bytes) = blobs.get(digest).await? else { return Ok(()) };
    if let Chunk::File { url, media_type, .. } = chunk {
        *url = data_url(media_type, &bytes);
    } else if let Chunk::Data { data: Value::Object(fields), .. } = chunk {
        put_text_back(fields, &bytes);
    }
    Ok(())
}

pub(crate) fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}
