//! Files, links and sources to content blocks. Inlines only what stands in the entry; fetches nothing.

use agent_client_protocol_schema::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, TextResourceContents,
};
use attache_core::chunk::Rest;
use attache_core::entry::Entry;
use attache_core::part::Part;
use serde_json::Value;

use super::line;

/// A file with its bytes inline becomes the block it is; one that stands elsewhere becomes a link to it.
pub(super) fn file(
    entry: Entry<'_>,
    url: &str,
    media_type: &str,
    rest: &Rest,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let uri = rest.provider_metadata().and_then(|metadata| metadata.pointer("/attache/uri")?.as_str());
    let filename = rest.0.as_ref().and_then(|rest| rest.unknown.get("filename")?.as_str());
    line::block(entry, file_block(url, media_type, filename, uri), out)
}

fn file_block(url: &str, media_type: &str, filename: Option<&str>, uri: Option<&str>) -> ContentBlock {
    let Some(data) = inline_data(url) else {
        let name = filename.or(uri).unwrap_or(url);
        return ContentBlock::ResourceLink(ResourceLink::new(name, url).mime_type(media_type.to_owned()));
    };
    match media_type.split('/').next() {
        Some("image") => ContentBlock::Image(ImageContent::new(data, media_type).uri(uri.map(str::to_owned))),
        Some("audio") => ContentBlock::Audio(AudioContent::new(data, media_type)),
        _ => {
            // The schema wants a uri; the file's name is the best there is for one that came without.
            let uri = uri.or(filename).unwrap_or("attache:file");
            let blob = BlobResourceContents::new(data, uri).mime_type(media_type.to_owned());
            let resource = EmbeddedResourceResource::BlobResourceContents(blob);
            ContentBlock::Resource(EmbeddedResource::new(resource))
        }
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
    // A document has no address of its own; its id is what names it.
    let uri = if source_id.contains(':') { source_id.to_owned() } else { format!("source:{source_id}") };
    let link = ResourceLink::new(filename.unwrap_or(title), uri)
        .title(title.to_owned())
        .mime_type(media_type.to_owned());
    line::block(entry, ContentBlock::ResourceLink(link), out)
}

/// A stored part of a prompt as the block it was sent as; `None` for parts that no prompt has.
pub(super) fn user_block(part: &Part) -> Option<ContentBlock> {
    match part {
        Part::Text { text, .. } => Some(text.as_str().into()),
        Part::File { media_type, url, filename, provider_metadata } => {
            let uri =
                provider_metadata.as_ref().and_then(|metadata| metadata.pointer("/attache/uri")?.as_str());
            Some(file_block(url, media_type, filename.as_deref(), uri))
        }
        Part::Data { name, data, .. } if name == "file-ref" => file_reference(data),
        Part::Data { name, data, .. } if name == "context" => context(data),
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

/// `data-context`: a text the user gave along.
pub(super) fn context(data: &Value) -> Option<ContentBlock> {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let contents =
        TextResourceContents::new(text("text")?, text("uri")?).mime_type(text("mime").map(str::to_owned));
    let resource = EmbeddedResourceResource::TextResourceContents(contents);
    Some(ContentBlock::Resource(EmbeddedResource::new(resource)))
}

/// The base64 of a data url.
fn inline_data(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(data)
}
