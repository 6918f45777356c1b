//! The compositor: turns user parts and call results into the neutral form that every dialect writes natively.
//! Opens and fetches nothing, except for `fetch_blobs`.

use std::borrow::Cow;
use std::collections::HashMap;

use attache_core::data_name::DataName;
use attache_core::hooks;
use attache_core::part::{Part, Passage, ToolPart, ToolState};
use attache_core::picture::Picture;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::{ModelError, ModelRequest};
pub(crate) use attache_core::prompt::media::Kind as MediaKind;
use attache_core::prompt::media::Marks;
use attache_core::prompt::shelf;
use attache_core::prompt::{BLOB_SCHEME, name_of_uri};
use attache_core::slash_commands;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What we read from the blob store: attachments by content id, in base64; texts by `text:` and their content
/// id, unchanged.
pub type BlobBytes = HashMap<String, String>;

fn text_key(digest: &str) -> String {
    format!("text:{digest}")
}

/// What the model gets for one user part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PromptPiece<'a> {
    Text(Cow<'a, str>),
    Media(Media<'a>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Media<'a> {
    pub(crate) kind: MediaKind,
    pub(crate) mime: &'a str,
    pub(crate) source: MediaSource<'a>,
    pub(crate) name: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaSource<'a> {
    Base64(&'a str),
    /// http or https. The provider fetches it; we never do.
    Url(&'a str),
}

/// Which media a dialect takes as an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fetches {
    pub(crate) images: bool,
    pub(crate) pdf: bool,
}

/// The pieces of a user passage, in order. A part that says nothing to a model gives no piece.
pub(crate) fn pieces<'a>(
    passage: &'a Passage,
    info: &ModelInfo,
    blobs: &'a BlobBytes,
    fetches: Fetches,
) -> Vec<PromptPiece<'a>> {
    passage.parts.iter().filter_map(|part| piece(part, info, blobs, fetches)).collect()
}

pub(crate) fn piece<'a>(
    part: &'a Part,
    info: &ModelInfo,
    blobs: &'a BlobBytes,
    fetches: Fetches,
) -> Option<PromptPiece<'a>> {
    match part {
        Part::Text { text, .. } => Some(PromptPiece::Text(Cow::Borrowed(text))),
        Part::File { .. } => FilePart::of(part).map(|about| about.piece(info, blobs)),
        Part::Data { name, data, .. } if *name == DataName::FileRef => Some(reference(data, info, fetches)),
        Part::Data { name, data, .. } if *name == DataName::Context => {
            Some(PromptPiece::Text(context(data, blobs).into()))
        }
        Part::Data { name, data, .. } if *name == DataName::Environment => {
            data.get("text").and_then(Value::as_str).map(|text| PromptPiece::Text(text.into()))
        }
        Part::Data { name, data, .. } if *name == DataName::Hook => {
            hooks::told_to_model(data).map(|text| PromptPiece::Text(text.into()))
        }
        Part::Data { name, .. } if *name == DataName::Command => {
            slash_commands::expansion(part).map(|text| PromptPiece::Text(text.into()))
        }
        Part::Data { .. }
        | Part::StepStart
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. } => None,
    }
}

/// The base64 of a file, wherever it is. `None` for a part that is no file, or a file that is gone.
pub(crate) fn file_data<'a>(part: &'a Part, blobs: &'a BlobBytes) -> Option<&'a str> {
    FilePart::of(part)?.base64(blobs)
}

struct FilePart<'a> {
    mime: &'a str,
    shown: ShownFile<'a>,
    url: &'a str,
    filename: Option<&'a str>,
    marks: Marks<'a>,
}

/// What the model gets of a file.
#[derive(Clone, Copy)]
struct ShownFile<'a> {
    mime: &'a str,
    /// `None` if the bytes are in the part itself.
    digest: Option<&'a str>,
}

impl<'a> FilePart<'a> {
    /// `None` for what is no file.
    fn of(part: &'a Part) -> Option<Self> {
        let Part::File { media_type, url, filename, provider_metadata } = part else { return None };
        let marks = Marks::of(provider_metadata.as_ref());
        // We show the form that providers take, and describe what the user gave.
        let shown = match marks.fitted {
            Some(fitted) => ShownFile { mime: fitted.mime, digest: Some(fitted.digest) },
            None => ShownFile { mime: media_type, digest: url.strip_prefix(BLOB_SCHEME) },
        };
        Some(Self { mime: media_type, shown, url, filename: filename.as_deref(), marks })
    }

    fn piece(&self, info: &ModelInfo, blobs: &'a BlobBytes) -> PromptPiece<'a> {
        match (self.shown_as(info), self.base64(blobs)) {
            (Some(kind), Some(data)) => {
                let source = MediaSource::Base64(data);
                PromptPiece::Media(Media { kind, mime: self.shown.mime, source, name: self.name() })
            }
            _ => PromptPiece::Text(self.descriptor(blobs).into()),
        }
    }

    /// `None` if we only describe it.
    fn shown_as(&self, info: &ModelInfo) -> Option<MediaKind> {
        let rejected = self.marks.rejected.is_some();
        MediaKind::of(self.shown.mime).filter(|kind| !rejected && kind.is_taken_by(info))
    }

    fn base64(&self, blobs: &'a BlobBytes) -> Option<&'a str> {
        match self.shown.digest {
            Some(digest) => blobs.get(digest).map(String::as_str),
            None => self.url.split_once(";base64,").map(|(_, data)| data),
        }
    }

    fn name(&self) -> Option<Cow<'a, str>> {
        let filename = self.filename.filter(|name| !name.is_empty());
        filename.map(Cow::Borrowed).or_else(|| name_of_uri(self.marks.uri?))
    }

    fn descriptor(&self, blobs: &BlobBytes) -> String {
        let inline = || self.url.split_once(";base64,").map(|(_, data)| decoded_bytes(data));
        let brought = || self.base64(blobs).map(decoded_bytes);
        let size = self.marks.size.or_else(inline).or_else(brought);
        descriptor(self.name().as_deref(), self.mime, size)
    }
}

impl Media<'_> {
    /// The description, for a dialect without a form for this medium.
    pub(crate) fn descriptor(&self) -> String {
        match self.source {
            MediaSource::Base64(data) => {
                descriptor(self.name.as_deref(), self.mime, Some(decoded_bytes(data)))
            }
            MediaSource::Url(url) => link(self.name.as_deref(), url),
        }
    }
}

/// What we say about an attachment that we cannot show: its name, type and size.
fn descriptor(name: Option<&str>, mime: &str, size: Option<u64>) -> String {
    let name = name.unwrap_or("attachment");
    match size {
        Some(size) => format!("[{name}, {mime}, {size} bytes]"),
        None => format!("[{name}, {mime}]"),
    }
}

fn decoded_bytes(base64: &str) -> u64 {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding) as u64
}

fn reference<'a>(data: &'a Value, info: &ModelInfo, fetches: Fetches) -> PromptPiece<'a> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let uri = data.get("uri").and_then(Value::as_str).unwrap_or_default();
    let name = text("name").map(Cow::Borrowed).or_else(|| name_of_uri(uri));
    let mime = text("mime").unwrap_or_default();
    let rejected = data.get("rejected").is_some();
    let fetched = !rejected && (uri.starts_with("https://") || uri.starts_with("http://"));
    let kind = MediaKind::of(mime).filter(|kind| {
        let dialect_fetches = match kind {
            MediaKind::Image => fetches.images,
            MediaKind::Pdf => fetches.pdf,
            MediaKind::Audio => false,
        };
        fetched && dialect_fetches && kind.is_taken_by(info)
    });
    match kind {
        Some(kind) => PromptPiece::Media(Media { kind, mime, source: MediaSource::Url(uri), name }),
        None => PromptPiece::Text(link(name.as_deref(), uri).into()),
    }
}

fn link(name: Option<&str>, uri: &str) -> String {
    match name {
        Some(name) => format!("[@{name}]({uri})"),
        None => uri.to_owned(),
    }
}

fn context(data: &Value, blobs: &BlobBytes) -> String {
    let uri = data.get("uri").and_then(Value::as_str).unwrap_or_default();
    let shelved = || blobs.get(&text_key(shelf::shelved_text(data)?)).map(String::as_str);
    let text = data.get("text").and_then(Value::as_str).or_else(shelved);
    let text = text.unwrap_or("[this text is not kept any more]");
    let first = link(name_of_uri(uri).as_deref(), uri);
    // Without these two replacements an attachment could break out of its frame.
    let reference = uri.replace('"', "%22");
    let text = text.replace("</context", "<\\/context");
    format!("{first}\n<context ref=\"{reference}\">\n{text}\n</context>")
}

/// The context of this turn only, as one text after the user's message. `None` if there is none.
pub(crate) fn runtime_context(items: &[(Option<String>, String)]) -> Option<String> {
    let mut text = String::new();
    for (title, body) in items {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let body = body.replace("</context", "<\\/context");
        match title {
            Some(title) => {
                let title = title.replace('"', "%22");
                text.push_str(&format!("<context title=\"{title}\">\n{body}\n</context>"));
            }
            None => text.push_str(&format!("<context>\n{body}\n</context>")),
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The one result of a call as a model gets it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) failed: bool,
    /// The picture that the text is about, if this model can see it.
    pub(crate) picture: Option<Media<'a>>,
}

/// Every call in a request has a result, even a call that never ended: providers refuse calls without one.
pub(crate) fn call_result<'a>(tool: &'a ToolPart, info: &ModelInfo, blobs: &'a BlobBytes) -> CallResult<'a> {
    let error = |text: &str| CallResult { text: Cow::Owned(text.to_owned()), failed: true, picture: None };
    match tool.state {
        ToolState::OutputAvailable if tool.preliminary != Some(true) => {
            if let Some(picture) = picture_of(tool) {
                return picture_result(picture, info, blobs);
            }
            let text = match &tool.output {
                Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
                Some(value) => Cow::Owned(value.to_string()),
                None => Cow::Borrowed(""),
            };
            CallResult { text, failed: false, picture: None }
        }
        ToolState::OutputError => error(tool.error_text.as_deref().unwrap_or("the call failed")),
        ToolState::OutputDenied => {
            let reason = tool.approval.as_ref().and_then(|approval| approval.reason.as_deref());
            error(tool.error_text.as_deref().or(reason).unwrap_or("the call was denied"))
        }
        ToolState::OutputAvailable
        | ToolState::InputStreaming
        | ToolState::InputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded => error("aborted: this call has no result"),
    }
}

/// What we add to the text of a result where the dialect cannot put the picture into the result.
pub(crate) const PICTURE_FOLLOWS: &str = "\nThe image itself is in the next message.";

fn picture_of(tool: &ToolPart) -> Option<Picture<'_>> {
    // A call that the provider ran is not ours to answer.
    tool.output.as_ref().filter(|_| tool.provider_executed != Some(true)).and_then(Picture::of)
}

fn is_shown(picture: Picture<'_>, info: &ModelInfo) -> bool {
    picture.rejected.is_none() && MediaKind::Image.is_taken_by(info)
}

fn picture_result<'a>(picture: Picture<'a>, info: &ModelInfo, blobs: &'a BlobBytes) -> CallResult<'a> {
    let data = blobs.get(picture.digest).filter(|_| is_shown(picture, info));
    let reason = match (data, picture.rejected) {
        (Some(_), _) => String::new(),
        (None, Some(reason)) => format!(" can't be shown: the provider did not take it ({reason})"),
        (None, None) if !info.images => " can't be shown: this model takes no images".to_owned(),
        (None, None) => " can't be shown: it is not kept any more".to_owned(),
    };
    let mut text = descriptor(Some(picture.path), picture.mime, Some(picture.size)) + &reason;
    for beside in [picture.text, picture.warning].into_iter().flatten() {
        text.push_str("\n\n");
        text.push_str(beside);
    }
    let media = |data: &'a String| Media {
        kind: MediaKind::Image,
        mime: picture.mime,
        source: MediaSource::Base64(data),
        name: Some(Cow::Borrowed(picture.name())),
    };
    CallResult { text: Cow::Owned(text), failed: false, picture: data.map(media) }
}

/// The arguments of a call as an object. If they did not parse as one, we send no arguments, and the result
/// says why.
pub(crate) fn call_input(tool: &ToolPart) -> Cow<'_, Value> {
    match &tool.input {
        Some(input @ Value::Object(_)) => Cow::Borrowed(input),
        _ => Cow::Owned(Value::Object(serde_json::Map::new())),
    }
}

/// What we must read from the blob store, by its content id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeededBlob<'a> {
    Media(&'a str),
    Text(&'a str),
}

/// What this model gets from the blob store.
pub(crate) fn wanted<'a>(
    passages: impl Iterator<Item = &'a Passage>,
    info: &ModelInfo,
) -> Vec<NeededBlob<'a>> {
    let parts = passages.flat_map(|passage| &passage.parts);
    let one = |part: &'a Part| match part {
        Part::Tool(tool) => {
            let picture = picture_of(tool).filter(|picture| is_shown(*picture, info))?;
            Some(NeededBlob::Media(picture.digest))
        }
        Part::Data { name, data, .. } if *name == DataName::Context => {
            shelf::shelved_text(data).map(NeededBlob::Text)
        }
        other => {
            let attachment = FilePart::of(other).filter(|attachment| attachment.shown_as(info).is_some())?;
            attachment.shown.digest.map(NeededBlob::Media)
        }
    };
    parts.filter_map(one).collect()
}

/// Whether the blob store holds a part of it: such a passage takes megabytes once encoded.
pub(crate) fn is_in_blob_store(passage: &Passage) -> bool {
    passage.parts.iter().any(|part| !shelf::digests(part).is_empty())
}

/// Reads the blobs. A blob that is gone is described instead of sent.
pub(crate) async fn fetch_blobs(request: &ModelRequest) -> Result<BlobBytes, ModelError> {
    let mut blobs = BlobBytes::new();
    for wanted in wanted(request.passages.iter().map(|passage| &**passage), &request.info) {
        let (digest, key) = match wanted {
            NeededBlob::Media(digest) => (digest, digest.to_owned()),
            NeededBlob::Text(digest) => (digest, text_key(digest)),
        };
        if blobs.contains_key(&key) {
            continue;
        }
        let found = request.blobs.get(digest).await;
        let found = found
            .map_err(|error| ModelError::Permanent(format!("an attachment could not be read: {error}")))?;
        if let Some(bytes) = found {
            let content = match wanted {
                NeededBlob::Media(_) => in_base64(&bytes),
                NeededBlob::Text(_) => String::from_utf8_lossy(&bytes).into_owned(),
            };
            blobs.insert(key, content);
        }
    }
    Ok(blobs)
}

pub(crate) fn in_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests;
