//! Pictures, sounds and PDFs in a prompt: how a part remembers its original form, and whether a model accepts
//! it.

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::data_name::DataName;
use crate::limits::REJECTION_CHARACTERS;
use crate::metadata::{OWN_KEY, only_own, own};
use crate::part::Part;
use crate::picture::{self, Picture};
use crate::ports::model::ModelInfo;

/// A prompt block of its own type. Embedded resources are not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A picture.
    Image,
    /// A recording.
    Audio,
}

impl Block {
    /// The name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
        }
    }

    /// The block with that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Image, Self::Audio].into_iter().find(|block| block.as_str() == text)
    }
}

/// Kinds of files that a model may get natively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pictures.
    Image,
    /// Recordings.
    Audio,
    /// PDF files.
    Pdf,
}

impl Kind {
    /// `None` for a type that no model gets natively: requests describe such a file.
    pub fn of(mime: &str) -> Option<Self> {
        if mime.starts_with("image/") {
            Some(Self::Image)
        } else if mime.starts_with("audio/") {
            Some(Self::Audio)
        } else {
            (mime == "application/pdf").then_some(Self::Pdf)
        }
    }

    /// Whether this model accepts such files.
    pub fn is_taken_by(self, info: &ModelInfo) -> bool {
        match self {
            Self::Image => info.images,
            Self::Audio => info.audio,
            Self::Pdf => info.pdf,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Audio => "audio",
            Self::Pdf => "PDF files",
        }
    }
}

/// A picture in the form that providers accept, in the blob store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted<'a> {
    /// Its digest in the blob store.
    pub digest: &'a str,
    /// Its type.
    pub mime: &'a str,
    /// In bytes.
    pub size: u64,
}

/// The content of `providerMetadata.attache` of a user's file part. For attache alone: neither clients nor
/// models get it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks<'a> {
    /// `None` for an embedded resource.
    pub block: Option<Block>,
    /// The block's own uri.
    pub uri: Option<&'a str>,
    /// The size of an attachment in the blob store.
    pub size: Option<u64>,
    /// What models get instead, if providers would not accept the original.
    pub fitted: Option<Fitted<'a>>,
    /// Why a provider refused it; from then on requests only describe it.
    pub rejected: Option<&'a str>,
}

impl<'a> Marks<'a> {
    /// Reads the marks of a part; empty if it has none.
    pub fn of(provider_metadata: Option<&'a Value>) -> Self {
        let ours = provider_metadata.and_then(own);
        let text = |key: &str| ours.and_then(|ours| ours.get(key)?.as_str());
        Self {
            block: text("block").and_then(Block::parse),
            uri: text("uri"),
            size: ours.and_then(|ours| ours.get("size")?.as_u64()),
            fitted: ours.and_then(|ours| Fitted::of(ours.get("fitted")?)),
            rejected: text("rejected"),
        }
    }

    /// The metadata with these marks; `None` if there are none.
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
        if let Some(Fitted { digest, mime, size }) = self.fitted {
            ours.insert("fitted".into(), json!({ "digest": digest, "mime": mime, "size": size }));
        }
        (!ours.is_empty()).then(|| only_own(ours))
    }

    /// The same beside what others keep there: a file that a model made carries data that its provider wants
    /// back.
    pub fn within(&self, metadata: Option<&Value>) -> Option<Value> {
        let mut all = metadata.and_then(Value::as_object).cloned().unwrap_or_default();
        all.shift_remove(OWN_KEY);
        if let Some(Value::Object(ours)) = self.metadata() {
            all.extend(ours);
        }
        (!all.is_empty()).then_some(Value::Object(all))
    }
}

impl<'a> Fitted<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        let text = |key: &str| value.get(key)?.as_str();
        Some(Self { digest: text("digest")?, mime: text("mime")?, size: value.get("size")?.as_u64()? })
    }
}

/// A file that the chosen model does not accept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("prompt[{index}]: {model} does not take {what}; {advice}")]
pub struct NotTaken {
    index: usize,
    /// `images`, or the type if the model accepts others of its kind.
    what: String,
    model: String,
    advice: String,
}

/// Whether a model gets such a file natively, judged by its abilities and its dialect.
pub type Takes<'a> = &'a dyn Fn(&ModelInfo, &str) -> bool;

/// Checks that the model accepts every image, sound and PDF. The error says what the user can do instead.
pub fn check(
    parts: &[Part],
    chosen: &ModelInfo,
    available: &[ModelInfo],
    takes: Takes<'_>,
) -> Result<(), NotTaken> {
    for (index, part) in parts.iter().enumerate() {
        let Some((kind, mime)) = given(part).filter(|(_, mime)| !takes(chosen, mime)) else { continue };
        let what = match kind.is_taken_by(chosen) {
            true => mime.to_owned(),
            false => kind.in_words().to_owned(),
        };
        let (model, advice) = match chosen.foreign_agent() {
            Some(agent) => (format!("the agent `{agent}`"), "leave it out".to_owned()),
            None => (chosen.model.to_string(), advice(mime, available, takes)),
        };
        return Err(NotTaken { index, what, model, advice });
    }
    Ok(())
}

/// What a model would get natively of a part, and as which kind; `None` for what it gets as text or as a
/// description.
fn given(part: &Part) -> Option<(Kind, &str)> {
    let Part::File { media_type, provider_metadata, .. } = part else { return None };
    let marks = Marks::of(provider_metadata.as_ref());
    let mime = marks.fitted.map_or(media_type.as_str(), |fitted| fitted.mime);
    Kind::of(mime).map(|kind| (kind, mime))
}

/// The names of the files in a prompt that no model sees: it gets only their name, type and size.
pub(crate) fn described_names(parts: &[Part]) -> Vec<String> {
    let name = |part: &Part| {
        let Part::File { media_type, filename, provider_metadata, .. } = part else { return None };
        let marks = Marks::of(provider_metadata.as_ref());
        let name = filename.as_deref().or(marks.uri).unwrap_or("a file");
        Kind::of(media_type).is_none().then(|| format!("{name} ({media_type})"))
    };
    parts.iter().filter_map(name).collect()
}

fn advice(mime: &str, available: &[ModelInfo], takes: Takes<'_>) -> String {
    const NAMED: usize = 3;
    let able = available.iter().filter(|info| takes(info, mime));
    let names: Vec<_> = able.take(NAMED).map(|info| info.model.to_string()).collect();
    match names.is_empty() {
        true => "no configured model does, so leave it out".to_owned(),
        false => format!("choose a model that does ({}) or leave it out", names.join(", ")),
    }
}

/// The same attachment, marked as refused by a provider. `None` for a part that no provider gets, and for one
/// that is marked already.
pub fn rejected(part: &Part, reason: &str) -> Option<Part> {
    if rejected_name(part).is_some() {
        return None;
    }
    let reason: String = reason.chars().take(REJECTION_CHARACTERS).collect();
    let mut marked = part.clone();
    match &mut marked {
        Part::File { provider_metadata, .. } => {
            let marks = Marks { rejected: Some(&reason), ..Marks::of(provider_metadata.as_ref()) };
            *provider_metadata = marks.within(provider_metadata.as_ref());
        }
        // The provider would have fetched this one itself.
        Part::Data { name, data, .. } if *name == DataName::FileRef && is_fetched(data) => {
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

/// The name of a rejected attachment; `None` for every other part.
pub fn rejected_name(part: &Part) -> Option<&str> {
    match part {
        Part::File { media_type, filename, provider_metadata, .. } => {
            let marks = Marks::of(provider_metadata.as_ref());
            marks.rejected.map(|_| filename.as_deref().or(marks.uri).unwrap_or(media_type))
        }
        Part::Data { name, data, .. } if *name == DataName::FileRef => {
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

/// The part in its form before a provider rejected it.
pub(crate) fn as_sent(mut part: Part) -> Part {
    match &mut part {
        Part::File { provider_metadata, .. } => {
            if Marks::of(provider_metadata.as_ref()).rejected.is_some() {
                *provider_metadata = Marks { rejected: None, ..Marks::of(provider_metadata.as_ref()) }
                    .within(provider_metadata.as_ref());
            }
        }
        Part::Data { data: Value::Object(fields), .. } => {
            fields.remove("rejected");
            // The files of a command may have changed since; a user who sends it again means the same.
            ["expansion", "agent", "model"]
                .into_iter()
                .for_each(|written| drop(fields.shift_remove(written)));
        }
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

/// Whether a provider may get the address of a linked file instead of a text.
fn is_fetched(data: &Value) -> bool {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let (uri, mime) = (text("uri"), text("mime"));
    let fetched = uri.starts_with("https://") || uri.starts_with("http://");
    fetched && (mime.starts_with("image/") || mime.starts_with("audio/") || mime == "application/pdf")
}
