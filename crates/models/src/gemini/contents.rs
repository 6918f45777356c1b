//! Passages as contents: the user's parts, the model's parts, and after the model's calls their results.
//!
//! The API pairs calls and results by position: one user content, right after the step's content, must hold
//! exactly one result per call, in the order of the calls, and nothing else. So we never join contents across
//! passages, and pictures from calls go into their own content after the results.

use std::borrow::Cow;

use attache_core::part::{Part, Passage, Role, ToolPart};
use serde::Serialize;
use serde_json::Value;

use super::family::{Addresses, GeminiCallIds, GeminiFamily, Signatures};
use super::signature;
use crate::compose::{self, Fetches, Media, MediaSource, PromptPiece};
use crate::dialect::{Outgoing, author};
use crate::written::{EncodedPassage, write_json};

/// Google documents this value for calls that have no signature, such as calls of another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The types that the API fetches from public addresses.
const FETCHED: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/bmp", "application/pdf"];

/// Writes passages for one model.
#[derive(Debug)]
pub(super) struct GeminiWriter<'a> {
    outgoing: &'a Outgoing<'a>,
    author: String,
    family: GeminiFamily,
}

#[derive(Serialize)]
struct RequestContent<'a> {
    role: &'static str,
    parts: Vec<RequestPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestPart<'a> {
    #[serde(flatten)]
    kind: RequestPartKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum RequestPartKind<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    FileData {
        mime_type: &'a str,
        file_uri: &'a str,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: Cow<'a, str>,
        args: Cow<'a, Value>,
    },
    FunctionResponse {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: Cow<'a, str>,
        response: FunctionResponseBody<'a>,
    },
}

/// The two keys that the API knows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum FunctionResponseBody<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

impl<'a> From<RequestPartKind<'a>> for RequestPart<'a> {
    fn from(kind: RequestPartKind<'a>) -> Self {
        Self { kind, thought: None, thought_signature: None }
    }
}

/// One user content with one text.
pub(super) fn said_by_user(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    let parts = vec![RequestPartKind::Text(Cow::Borrowed(text)).into()];
    write_json(&mut json, &RequestContent { role: "user", parts });
    json
}

/// The calls of a passage that we answer, without those that the provider ran.
pub(super) fn calls(passage: &Passage) -> impl Iterator<Item = &ToolPart> {
    let tools = passage.parts.iter().filter_map(Part::tool);
    tools.filter(|tool| tool.provider_executed != Some(true))
}

impl<'a> GeminiWriter<'a> {
    pub(super) fn new(outgoing: &'a Outgoing<'a>) -> Self {
        let family = GeminiFamily::of(&outgoing.request.model().model_id);
        Self { outgoing, author: author(outgoing.request), family }
    }

    pub(super) fn write(&self, passage: &Passage, encoded: &mut EncodedPassage) {
        match passage.role {
            // Only the body's own instruction speaks as the system; we send a system message within the
            // conversation like a user's.
            Role::User | Role::System => append(encoded, "user", self.user_parts(passage)),
            Role::Assistant => {
                append(encoded, "model", self.model_parts(passage));
                let (mut results, mut pictures) = (Vec::new(), Vec::new());
                for call in calls(passage) {
                    results.push(self.result(call, &mut pictures));
                }
                append(encoded, "user", results);
                append(encoded, "user", pictures);
            }
        }
    }

    fn user_parts<'p>(&'p self, passage: &'p Passage) -> Vec<RequestPart<'p>> {
        let fetched = self.family.addresses == Addresses::Fetched;
        let fetches = Fetches { images: fetched, pdf: fetched };
        let pieces = compose::pieces(passage, &self.outgoing.request.info, self.outgoing.blobs, fetches);
        pieces.into_iter().filter_map(user_part).map(RequestPart::from).collect()
    }

    fn model_parts<'p>(&'p self, passage: &'p Passage) -> Vec<RequestPart<'p>> {
        let mut calls = 0;
        let parts = passage.parts.iter();
        parts
            .filter_map(|part| match part {
                Part::Text { text, provider_metadata, .. } => {
                    let signature = signature(provider_metadata.as_ref(), &self.author);
                    let said = signature.is_some() || !text.is_empty();
                    said.then(|| RequestPart { thought_signature: signature, ..text_part(text) })
                }
                // A thought without a signature is a summary for people; the model does not need it back.
                Part::Reasoning { text, provider_metadata, .. } => {
                    let signature = signature(provider_metadata.as_ref(), &self.author)?;
                    let thought_signature = Some(signature);
                    Some(RequestPart { thought: Some(true), thought_signature, ..text_part(text) })
                }
                Part::Tool(tool) if tool.provider_executed == Some(true) => None,
                Part::Tool(tool) => {
                    calls += 1;
                    Some(self.call(tool, calls))
                }
                Part::File { provider_metadata, .. } => self.file(part, provider_metadata.as_ref()),
                Part::StepStart
                | Part::SourceUrl { .. }
                | Part::SourceDocument { .. }
                | Part::Data { .. } => None,
            })
            .collect()
    }

    /// The API signs only the first call of a step, and checks only that one.
    fn call<'p>(&self, tool: &'p ToolPart, number: usize) -> RequestPart<'p> {
        let own = signature(tool.call_provider_metadata.as_ref(), &self.author);
        let stands_in = number == 1 && self.family.signatures == Signatures::Demanded;
        let kind = RequestPartKind::FunctionCall {
            id: self.call_id(tool),
            name: name(&tool.tool_name),
            args: compose::call_input(tool),
        };
        RequestPart { thought_signature: own.or(stands_in.then_some(NO_SIGNATURE)), ..kind.into() }
    }

    fn result<'p>(&'p self, tool: &'p ToolPart, pictures: &mut Vec<RequestPart<'p>>) -> RequestPart<'p> {
        let mut result = compose::call_result(tool, &self.outgoing.request.info, self.outgoing.blobs);
        if let Some(media) = result.picture.take() {
            result.text.to_mut().push_str(compose::PICTURE_FOLLOWS);
            pictures.push(RequestPartKind::Text(media.descriptor().into()).into());
            pictures.extend(user_part(PromptPiece::Media(media)).map(RequestPart::from));
        }
        let response = if result.failed {
            FunctionResponseBody::Error(result.text)
        } else {
            FunctionResponseBody::Output(result.text)
        };
        RequestPartKind::FunctionResponse { id: self.call_id(tool), name: name(&tool.tool_name), response }
            .into()
    }

    fn call_id<'p>(&self, tool: &'p ToolPart) -> Option<&'p str> {
        (self.family.call_ids == GeminiCallIds::Expected).then(|| tool.call_id.as_str())
    }

    /// A picture goes back to the model that made it; another model gets a description.
    fn file<'p>(&'p self, part: &'p Part, metadata: Option<&'p Value>) -> Option<RequestPart<'p>> {
        let signature = signature(metadata, &self.author);
        let piece =
            compose::piece(part, &self.outgoing.request.info, self.outgoing.blobs, Fetches::default())?;
        let kind = match piece {
            PromptPiece::Media(media) if signature.is_none() => {
                RequestPartKind::Text(media.descriptor().into())
            }
            piece => user_part(piece)?,
        };
        Some(RequestPart { thought_signature: signature, ..kind.into() })
    }
}

fn user_part(piece: PromptPiece<'_>) -> Option<RequestPartKind<'_>> {
    match piece {
        PromptPiece::Text(text) => (!text.is_empty()).then_some(RequestPartKind::Text(text)),
        PromptPiece::Media(Media { mime, source: MediaSource::Base64(data), .. }) => {
            Some(RequestPartKind::InlineData { mime_type: mime, data })
        }
        PromptPiece::Media(Media { mime, source: MediaSource::Url(uri), .. })
            if FETCHED.contains(&mime) && uri.starts_with("https://") =>
        {
            Some(RequestPartKind::FileData { mime_type: mime, file_uri: uri })
        }
        PromptPiece::Media(media) => Some(RequestPartKind::Text(media.descriptor().into())),
    }
}

fn text_part(text: &str) -> RequestPart<'_> {
    RequestPartKind::Text(Cow::Borrowed(text)).into()
}

/// A name the API takes, even for a call of a tool that never existed.
fn name(tool_name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !tool_name.is_empty() && tool_name.len() <= LONGEST && tool_name.chars().all(allowed) {
        return Cow::Borrowed(tool_name);
    }
    let name: String = tool_name.chars().take(LONGEST).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".to_owned() } else { name })
}

/// The API refuses a content without parts, so leave it out.
fn append(encoded: &mut EncodedPassage, role: &'static str, parts: Vec<RequestPart<'_>>) {
    if parts.is_empty() {
        return;
    }
    if !encoded.json.is_empty() {
        encoded.json.push(b',');
    }
    write_json(&mut encoded.json, &RequestContent { role, parts });
}
