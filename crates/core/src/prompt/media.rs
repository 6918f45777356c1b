//! Images and audio in a prompt: how a file part remembers what it was sent as, and whether a model takes it.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::limits::REJECTION_CHARACTERS;
use crate::part::Part;
use crate::picture::{self, Picture};
use crate::ports::model::ModelInfo;

/// A prompt block that a model must be able to take. Embedded resources are none: what a model can't take of them is
/// described to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    Image,
    Audio,
}

impl Block {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Image, Self::Audio].into_iter().find(|block| block.as_str() == text)
    }

    fn is_taken_by(self, info: &ModelInfo) -> bool {
        match self {
            Self::Image => info.images,
            Self::Audio => info.audio,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Audio => "audio",
        }
    }
}

/// What stands under `providerMetadata.attache` of a user's file part. Ours alone: it reaches neither a client nor a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks<'a> {
    /// `None` for an embedded resource.
    pub block: Option<Block>,
    /// The block's own uri.
    pub uri: Option<&'a str>,
    /// Of an attachment that left its row for the blob store.
    pub size: Option<u64>,
    /// Why a provider would not take it; from then on it is only described.
    pub rejected: Option<&'a str>,
}

impl<'a> Marks<'a> {
    pub fn of(provider_metadata: Option<&'a Value>) -> Self {
        let ours = provider_metadata.and_then(|metadata| metadata.get("attache"));
        let text = |key: &str| ours.and_then(|ours| ours.get(key)?.as_str());
        Self {
            block: text("block").and_then(Block::parse),
            uri: text("uri"),
            size: ours.and_then(|ours| ours.get("size")?.as_u64()),
            rejected: text("rejected"),
        }
    }

    /// The metadata that says this; `None` when there is nothing to say.
    pub fn metadata(&self) -> Option<Value> {
        let mut ours = Map::new();
        let block = self.block.map(Block::as_str);
        for (key, text) in [("block", block), ("uri", self.uri), ("rejected", self.rejected)] {
            if let Some(text) = text {
                ours.insert(key.into(), text.into());
            }
        }
        if let Some(size) = self.size {
            ours.insert("size".into(), size.into());
        }
        (!ours.is_empty()).then(|| json!({ "attache": ours }))
    }
}

/// A block that the chosen model can't take.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("prompt[{index}]: {model} does not take {}; {advice}", .block.in_words())]
pub struct NotTaken {
    index: usize,
    block: Block,
    model: String,
    advice: String,
}

/// Whether the model takes every image and audio block. What the user can do instead stands in the error.
pub fn check(parts: &[Part], chosen: &ModelInfo, available: &[ModelInfo]) -> Result<(), NotTaken> {
    for (index, part) in parts.iter().enumerate() {
        let Some(block) = block_of(part).filter(|block| !block.is_taken_by(chosen)) else { continue };
        let model = chosen.model.to_string();
        return Err(NotTaken { index, block, model, advice: advice(block, available) });
    }
    Ok(())
}

fn block_of(part: &Part) -> Option<Block> {
    match part {
        Part::File { provider_metadata, .. } => Marks::of(provider_metadata.as_ref()).block,
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::Data { .. } => None,
    }
}

fn advice(block: Block, available: &[ModelInfo]) -> String {
    const NAMED: usize = 3;
    let able = available.iter().filter(|info| block.is_taken_by(info));
    let names: Vec<_> = able.take(NAMED).map(|info| info.model.to_string()).collect();
    match names.is_empty() {
        true => "no configured model does, so leave it out".to_owned(),
        false => format!("choose a model that does ({}) or leave it out", names.join(", ")),
    }
}

/// The same attachment, marked as one that a provider would not take. `None` for what is no attachment that a provider is
/// given, and for one that is marked already.
pub fn rejected(part: &Part, reason: &str) -> Option<Part> {
    if rejected_name(part).is_some() {
        return None;
    }
    let reason: String = reason.chars().take(REJECTION_CHARACTERS).collect();
    let mut marked = part.clone();
    match &mut marked {
        Part::File { provider_metadata, .. } => {
            let marks = Marks { rejected: Some(&reason), ..Marks::of(provider_metadata.as_ref()) };
            *provider_metadata = marks.metadata();
        }
        // One that the provider was to fetch itself.
        Part::Data { name, data, .. } if name == "file-ref" && is_fetched(data) => {
            data["rejected"] = reason.into();
        }
        Part::Tool(tool) => match tool.output.take() {
            Some(output) if Picture::of(&output).is_some() => {
                tool.output = Some(picture::rejected(output, &reason));
            }
            Some(_) | None => return None,
        },
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::Data { .. } => return None,
    }
    Some(marked)
}

/// How a rejected attachment is called; `None` for every other part.
pub fn rejected_name(part: &Part) -> Option<&str> {
    match part {
        Part::File { media_type, filename, provider_metadata, .. } => {
            let marks = Marks::of(provider_metadata.as_ref());
            marks.rejected.map(|_| filename.as_deref().or(marks.uri).unwrap_or(media_type))
        }
        Part::Data { name, data, .. } if name == "file-ref" => {
            data.get("rejected").map(|_| data.get("uri").and_then(Value::as_str).unwrap_or_default())
        }
        Part::Tool(tool) => {
            let picture = tool.output.as_ref().and_then(Picture::of)?;
            picture.rejected.map(|_| picture.name())
        }
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::Data { .. } => None,
    }
}

/// The part as it was before a provider rejected it.
pub fn as_sent(mut part: Part) -> Part {
    match &mut part {
        Part::File { provider_metadata, .. } => {
            if Marks::of(provider_metadata.as_ref()).rejected.is_some() {
                *provider_metadata =
                    Marks { rejected: None, ..Marks::of(provider_metadata.as_ref()) }.metadata();
            }
        }
        Part::Data { data: Value::Object(fields), .. } => drop(fields.remove("rejected")),
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::Data { .. } => {}
    }
    part
}

/// Whether a provider may be given the address of a linked file instead of a text.
fn is_fetched(data: &Value) -> bool {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let (uri, mime) = (text("uri"), text("mime"));
    let fetched = uri.starts_with("https://") || uri.starts_with("http://");
    fetched && (mime.starts_with("image/") || mime.starts_with("audio/") || mime == "application/pdf")
}
