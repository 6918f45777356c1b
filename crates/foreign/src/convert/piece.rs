//! The pieces of a prompt in neutral form: what a user's part is, before anybody's words for it.

use std::borrow::Cow;

use attache_core::data_name::DataName;
use attache_core::hooks;
use attache_core::part::Part;
use attache_core::prompt::media::Marks;
use attache_core::prompt::name_of_uri;
use attache_core::slash_commands;
use serde_json::Value;

/// What one part of a user's message is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    Text(Cow<'a, str>),
    Link(Link<'a>),
    Context(ContextPiece<'a>),
    File(FilePiece<'a>),
}

/// A file that is named and not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub(crate) uri: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) mime: Option<&'a str>,
    pub(crate) size: Option<i64>,
}

/// A text that came along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextPiece<'a> {
    pub(crate) uri: &'a str,
    pub(crate) mime: Option<&'a str>,
    pub(crate) text: &'a str,
}

/// A file that came along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePiece<'a> {
    pub(crate) mime: &'a str,
    /// `data:…;base64,…`
    pub(crate) url: &'a str,
    pub(crate) filename: Option<&'a str>,
    /// Of an embedded resource.
    pub(crate) uri: Option<&'a str>,
}

/// What a link points at, by its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget {
    /// Text, or nobody said.
    Text,
    Image,
    Audio,
    Video,
    Document,
}

/// `None` for what says nothing to an agent.
pub(crate) fn piece(part: &Part) -> Option<Piece<'_>> {
    match part {
        Part::Text { text, .. } => Some(Piece::Text(Cow::Borrowed(text))),
        Part::File { media_type, url, filename, provider_metadata } => Some(Piece::File(FilePiece {
            mime: media_type,
            url,
            filename: filename.as_deref(),
            uri: Marks::of(provider_metadata.as_ref()).uri,
        })),
        Part::Data { name, data, .. } if *name == DataName::FileRef => Some(Piece::Link(Link::of(data))),
        Part::Data { name, data, .. } if *name == DataName::Context => {
            Some(Piece::Context(ContextPiece::of(data)))
        }
        Part::Data { name, data, .. } if *name == DataName::Hook => {
            hooks::told_to_model(data).map(|text| Piece::Text(text.into()))
        }
        Part::Data { name, .. } if *name == DataName::Command => {
            slash_commands::expansion(part).map(|text| Piece::Text(text.into()))
        }
        Part::Data { .. }
        | Part::StepStart
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. } => None,
    }
}

impl<'a> Link<'a> {
    fn of(data: &'a Value) -> Self {
        let text = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        Self {
            uri: data.get("uri").and_then(Value::as_str).unwrap_or_default(),
            name: text("name"),
            title: text("title"),
            description: text("description"),
            mime: text("mime"),
            size: data.get("size").and_then(Value::as_i64),
        }
    }

    /// `[@name](uri)`, or the bare uri where nothing has a name.
    pub(crate) fn as_text(&self) -> String {
        text_link(self.name.map(Cow::Borrowed).or_else(|| name_of_uri(self.uri)).as_deref(), self.uri)
    }

    /// What an agent could fetch itself: only addresses of the web. Frameworks drop every other scheme, or
    /// fail.
    pub(crate) fn fetched(&self) -> LinkTarget {
        let web = self.uri.starts_with("https://") || self.uri.starts_with("http://");
        match self.mime.filter(|_| web) {
            None => LinkTarget::Text,
            Some(mime) if mime.starts_with("image/") => LinkTarget::Image,
            Some(mime) if mime.starts_with("audio/") => LinkTarget::Audio,
            Some(mime) if mime.starts_with("video/") => LinkTarget::Video,
            Some(mime) if mime.starts_with("text/") => LinkTarget::Text,
            Some(_) => LinkTarget::Document,
        }
    }
}

impl<'a> ContextPiece<'a> {
    fn of(data: &'a Value) -> Self {
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        Self {
            uri: text("uri").unwrap_or_default(),
            mime: text("mime"),
            text: text("text").unwrap_or("[this text is not kept any more]"),
        }
    }

    /// In its frame, out of which it can't break.
    pub(crate) fn as_text(&self) -> String {
        let first = text_link(name_of_uri(self.uri).as_deref(), self.uri);
        let reference = self.uri.replace('"', "%22");
        let text = self.text.replace("</context", "<\\/context");
        format!("{first}\n<context ref=\"{reference}\">\n{text}\n</context>")
    }
}

impl<'a> FilePiece<'a> {
    pub(crate) fn base64(&self) -> &'a str {
        self.url.split_once(";base64,").map_or("", |(_, data)| data)
    }

    /// Decoded.
    pub(crate) fn bytes(&self) -> u64 {
        let data = self.base64();
        let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
        (data.len() / 4 * 3).saturating_sub(padding) as u64
    }
}

fn text_link(name: Option<&str>, uri: &str) -> String {
    match name {
        Some(name) => format!("[@{name}]({uri})"),
        None => uri.to_owned(),
    }
}

/// What is said for one turn only, as one text; `None` when there is nothing.
pub(crate) fn runtime_text(items: &[(Option<String>, String)]) -> Option<String> {
    let framed = items.iter().map(|(title, body)| {
        let body = body.replace("</context", "<\\/context");
        match title {
            Some(title) => {
                format!("<context title=\"{}\">\n{body}\n</context>", title.replace('"', "%22"))
            }
            None => format!("<context>\n{body}\n</context>"),
        }
    });
    let text = framed.collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then_some(text)
}
