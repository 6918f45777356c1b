//! The items a passage becomes, and their JSON. `step` decides which of them only their author may get back.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use attache_core::ids::CallId;
use attache_core::part::{Passage, Role};
use attache_core::ports::model::ModelInfo;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::compose::{BlobBytes, Fetches, Media, MediaKind, MediaSource, PromptPiece, pieces};
use crate::limits::{CALL_NAME_BYTES, ITEM_ID_BYTES};
use crate::written::write_json;

/// What the passages are written with.
pub(super) struct ResponsesWriter<'a> {
    pub(super) author: String,
    pub(super) info: ModelInfo,
    pub(super) blobs: &'a BlobBytes,
}

/// An item as the wire has it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'a> {
    Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        content: InputContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: Vec<InputBlock<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// JSON within a text.
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: InputContent<'a>,
    },
    ImageGenerationCall {
        id: &'a str,
        status: &'static str,
        result: &'a str,
    },
    /// An item of a provider's tool, unchanged.
    #[serde(untagged)]
    AsItCame(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum InputContent<'a> {
    Plain(&'a str),
    Blocks(Vec<InputBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputBlock<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: MediaUrl<'a>, detail: &'static str },
    InputFile(InputFile<'a>),
    OutputText { text: &'a str, annotations: [(); 0] },
    SummaryText { text: &'a str },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum InputFile<'a> {
    Inline { filename: Cow<'a, str>, file_data: MediaUrl<'a> },
    Fetched { file_url: &'a str },
}

/// A web address, or the content itself. Written piece by piece, without first joining it into one string: it
/// may be megabytes.
pub(super) struct MediaUrl<'a> {
    mime: &'a str,
    source: MediaSource<'a>,
}

impl fmt::Display for MediaUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            MediaSource::Base64(data) => write!(f, "data:{};base64,{data}", self.mime),
            MediaSource::Url(url) => f.write_str(url),
        }
    }
}

impl Serialize for MediaUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl InputItem<'_> {
    /// Appends the item, after a comma if others come before it.
    pub(super) fn append_to(&self, json: &mut Vec<u8>) {
        if !json.is_empty() {
            json.push(b',');
        }
        write_json(json, self);
    }
}

impl ResponsesWriter<'_> {
    /// The items of a passage, separated by commas.
    pub(super) fn passage(&self, passage: &Passage, json: &mut Vec<u8>) {
        match passage.role {
            Role::User => self.message("user", passage, json),
            Role::System => self.message("system", passage, json),
            Role::Assistant => self.step(passage, json),
        }
    }

    fn message(&self, role: &'static str, passage: &Passage, json: &mut Vec<u8>) {
        let fetches = Fetches { images: true, pdf: true };
        let mut said = pieces(passage, &self.info, self.blobs, fetches);
        // The API refuses an empty text, which says nothing anyway.
        said.retain(|piece| !matches!(piece, PromptPiece::Text(text) if text.is_empty()));
        let content = match said.as_slice() {
            [] => return,
            [PromptPiece::Text(text)] => InputContent::Plain(text),
            _ => InputContent::Blocks(said.iter().map(block).collect()),
        };
        InputItem::Message { id: None, role, status: None, content, phase: None }.append_to(json);
    }
}

fn block<'a>(piece: &'a PromptPiece<'_>) -> InputBlock<'a> {
    match piece {
        PromptPiece::Text(text) => InputBlock::InputText { text: Cow::Borrowed(text) },
        PromptPiece::Media(media) => media_block(media),
    }
}

pub(super) fn media_block<'a>(media: &'a Media<'_>) -> InputBlock<'a> {
    let address = MediaUrl { mime: media.mime, source: media.source };
    match (media.kind, media.source) {
        (MediaKind::Image, _) => InputBlock::InputImage { image_url: address, detail: "auto" },
        (MediaKind::Pdf | MediaKind::Audio, MediaSource::Url(file_url)) => {
            InputBlock::InputFile(InputFile::Fetched { file_url })
        }
        (MediaKind::Pdf | MediaKind::Audio, MediaSource::Base64(_)) => {
            let filename = Cow::Borrowed(media.name.as_deref().unwrap_or("document.pdf"));
            InputBlock::InputFile(InputFile::Inline { filename, file_data: address })
        }
    }
}

/// A text of the user's side, as JSON.
pub(super) fn user_text(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    let content = InputContent::Plain(text);
    InputItem::Message { id: None, role: "user", status: None, content, phase: None }.append_to(&mut json);
    json
}

/// A call's id in the form the API takes: other dialects allow longer ones. The same id always gives the same
/// result.
pub(super) fn call_id(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    if !id.is_empty() && id.len() <= ITEM_ID_BYTES {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let front = &id[..id.floor_char_boundary(ITEM_ID_BYTES - 17)];
    Cow::Owned(format!("{front}_{:016x}", hasher.finish()))
}

/// A tool's name in the form the API takes: models make up names that it refuses.
pub(super) fn call_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= CALL_NAME_BYTES && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|c| if allowed(c) { c } else { '_' }).take(CALL_NAME_BYTES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_of_calls_fit_the_wire() {
        assert_eq!(call_id(&CallId::new("call_1")), "call_1");
        let long = "c".repeat(65);
        let long = CallId::new(long.as_str());
        let short = call_id(&long);
        assert!(short.len() == 64 && short == call_id(&long.clone()));
        assert_ne!(short, call_id(&CallId::new("c".repeat(66))));
        assert!(!call_id(&CallId::new("")).is_empty());
        assert_eq!(call_name("read"), "read");
        assert_eq!(call_name("functions.read file"), "functions_read_file");
        assert_eq!(call_name("é".repeat(80).as_str()), "_".repeat(64));
        assert_eq!(call_name(""), "unnamed");
    }
}
