//! Converts files, links and sources to content blocks. Inlines only what the entry holds; fetches nothing.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, TextResourceContents,
};
use attache_core::chunk::Rest;
use attache_core::data_name::DataName;
use attache_core::entry::Entry;
use attache_core::metadata::OWN_KEY;
use attache_core::part::Part;
use attache_core::prompt::media::{Block, Marks};
use attache_core::prompt::name_of_uri;
use serde_json::{Value, json};

use super::{commands, line};

/// A file with inline bytes becomes the block it was; a file stored elsewhere becomes a link to it.
pub(super) fn file(
    entry: Entry<'_>,
    url: &str,
    media_type: &str,
    rest: &Rest,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let filename = rest.0.as_ref().and_then(|rest| rest.unknown.get("filename")?.as_str());
    let file = FileContent { url, media_type, filename, marks: Marks::of(rest.provider_metadata()) };
    line::block(entry, file.block(), out)
}

struct FileContent<'a> {
    url: &'a str,
    media_type: &'a str,
    filename: Option<&'a str>,
    marks: Marks<'a>,
}

impl FileContent<'_> {
    fn block(&self) -> ContentBlock {
        let Some(data) = inline_data(self.url) else { return self.link() };
        match self.medium() {
            Some(Block::Image) => {
                let uri = self.marks.uri.map(str::to_owned);
                ContentBlock::Image(ImageContent::new(data, self.media_type).uri(uri))
            }
            Some(Block::Audio) => ContentBlock::Audio(AudioContent::new(data, self.media_type)),
            None => {
                // The schema requires a uri; for a file without one, its name is the best we have.
                let uri = self.marks.uri.or(self.filename).unwrap_or("attache:file");
                let blob = BlobResourceContents::new(data, uri).mime_type(self.media_type.to_owned());
                let resource = EmbeddedResourceResource::BlobResourceContents(blob);
                ContentBlock::Resource(EmbeddedResource::new(resource))
            }
        }
    }

    /// The block type in which it came. A model's file did not come as a block, so its type decides.
    fn medium(&self) -> Option<Block> {
        if self.marks.block.is_some() || self.marks.uri.is_some() {
            return self.marks.block;
        }
        self.media_type.split('/').next().and_then(Block::parse)
    }

    /// For a user's large attachment, links to its origin, if we know that: only we can open our own storage.
    fn link(&self) -> ContentBlock {
        let uri = self.marks.uri.unwrap_or(self.url);
        let link = ResourceLink::new(self.filename.unwrap_or(uri), uri)
            .mime_type(self.media_type.to_owned())
            .size(self.marks.size.and_then(|size| i64::try_from(size).ok()));
        ContentBlock::ResourceLink(link)
    }
}

pub(super) fn source_url(
    entry: Entry<'_>,
    url: &str,
    title: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let link = ResourceLink::new(title.unwrap_or(url), url).title(title.map(str::to_owned));
    line::block(entry, ContentBlock::ResourceLink(link), out)
}

pub(super) fn source_document(
    entry: Entry<'_>,
    source_id: &str,
    media_type: &str,
    title: &str,
    filename: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    // A document has no address, so its id names it.
    let uri = if source_id.contains(':') { source_id.to_owned() } else { format!("source:{source_id}") };
    let link = ResourceLink::new(filename.unwrap_or(title), uri)
        .title(title.to_owned())
        .mime_type(media_type.to_owned());
    line::block(entry, ContentBlock::ResourceLink(link), out)
}

/// A stored part of a prompt as the block the client sent; `None` for parts that no prompt has.
pub(super) fn user_block(part: &Part) -> Option<ContentBlock> {
    match part {
        Part::Text { text, .. } => Some(text.as_str().into()),
        Part::File { media_type, url, filename, provider_metadata } => {
            let marks = Marks::of(provider_metadata.as_ref());
            Some(FileContent { url, media_type, filename: filename.as_deref(), marks }.block())
        }
        Part::Data { name, data, .. } if *name == DataName::Command => {
            commands::typed(data).map(ContentBlock::from)
        }
        Part::Data { name, data, .. } if *name == DataName::FileRef => file_reference(data),
        Part::Data { name, data, .. } if *name == DataName::Context => context(data),
        Part::Data { .. }
        | Part::StepStart
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. } => None,
    }
}

/// `data-file-ref`: a file the user pointed to.
pub(super) fn file_reference(data: &Value) -> Option<ContentBlock> {
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    let link = ResourceLink::new(text("name")?, text("uri")?)
        .title(text("title"))
        .description(text("description"))
        .mime_type(text("mime"))
        .size(data.get("size").and_then(Value::as_i64));
    Some(ContentBlock::ResourceLink(link))
}

/// `data-context`: a text the user attached. If it is in the blob store, only its name.
pub(super) fn context(data: &Value) -> Option<ContentBlock> {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let (uri, mime) = (text("uri")?, text("mime"));
    Some(match text("text") {
        Some(text) => embedded_text(text, uri, mime, None),
        None => {
            let name = name_of_uri(uri).unwrap_or(Cow::Borrowed(uri)).into_owned();
            let size = data.get("size").and_then(Value::as_i64);
            let link = ResourceLink::new(name, uri).mime_type(mime.map(str::to_owned)).size(size);
            ContentBlock::ResourceLink(link)
        }
    })
}

/// The same as blocks that each fit a line: splits a long text into pieces, each with its number.
pub(super) fn context_in_pieces(data: &Value) -> Vec<ContentBlock> {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let (Some(whole), Some(uri)) = (text("text"), text("uri")) else {
        return context(data).into_iter().collect();
    };
    let mime = text("mime");
    let beside = uri.len() + mime.map_or(0, str::len);
    let pieces: Vec<_> = line::pieces_beside(whole, beside).collect();
    if pieces.len() < 2 {
        return vec![embedded_text(whole, uri, mime, None)];
    }
    let of = pieces.len();
    let piece = |(index, text): (usize, &&str)| embedded_text(text, uri, mime, Some((index + 1, of)));
    pieces.iter().enumerate().map(piece).collect()
}

fn embedded_text(text: &str, uri: &str, mime: Option<&str>, piece: Option<(usize, usize)>) -> ContentBlock {
    let contents = TextResourceContents::new(text, uri).mime_type(mime.map(str::to_owned));
    let resource = EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents));
    let meta =
        piece.and_then(|(number, of)| json!({ OWN_KEY: { "piece": number, "of": of } }).as_object().cloned());
    ContentBlock::Resource(resource.meta(meta))
}

/// A file of this machine, only as a link.
pub(super) fn file_link(path: &Path, mime: &str, size: u64) -> ContentBlock {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let link =
        ResourceLink::new(name, file_uri(path)).mime_type(mime.to_owned()).size(i64::try_from(size).ok());
    ContentBlock::ResourceLink(link)
}

fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => {
                let written = write!(uri, "%{other:02X}");
                debug_assert!(written.is_ok(), "writing to a string");
            }
        }
    }
    uri
}

/// The base64 of a data url.
fn inline_data(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(data)
}
