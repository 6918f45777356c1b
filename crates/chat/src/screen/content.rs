//! Content blocks in words: what is no text is shown by its name, its kind and its size.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource};

use crate::screen::harmless;

/// The text of a block; `None` for what has none.
pub(crate) fn text_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// The name of a block that is no text: harmless, on one line.
pub(crate) fn name_of(block: &ContentBlock) -> Option<String> {
    let name = match block {
        ContentBlock::Image(image) => {
            let name = image.uri.as_deref().map(last_part).unwrap_or_default();
            format!("[image: {}]", parts(&[name, &image.mime_type, &size(image.data.len() * 3 / 4)]))
        }
        ContentBlock::Audio(audio) => {
            format!("[audio: {}]", parts(&[&audio.mime_type, &size(audio.data.len() * 3 / 4)]))
        }
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            let name = if name.is_empty() { last_part(&link.uri) } else { name };
            match link.uri.strip_prefix("file://") {
                Some(path) => format!("[{name}: {path}]"),
                None => format!("[{name}: {}]", link.uri),
            }
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let lines = format!("{} lines", text.text.lines().count());
                format!("[{}]", parts(&[last_part(&text.uri), &lines]))
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let mime = blob.mime_type.as_deref().unwrap_or_default();
                format!("[{}]", parts(&[last_part(&blob.uri), mime, &size(blob.blob.len() * 3 / 4)]))
            }
            _ => "[an attachment]".to_owned(),
        },
        ContentBlock::Text(_) => return None,
        _ => "[content of a newer kind]".to_owned(),
    };
    Some(harmless::exact_line(&name))
}

/// Blocks of a prompt as it was typed, more or less: for the composer and for lists.
pub(crate) fn prompt_text(blocks: &[ContentBlock]) -> String {
    blocks.iter().fold(String::new(), |mut text, block| {
        match (block, name_of(block)) {
            (ContentBlock::Text(plain), _) => text.push_str(&plain.text),
            (ContentBlock::ResourceLink(link), _) if link.uri.starts_with("file://") => {
                text.push('@');
                text.push_str(&link.name);
            }
            (_, Some(name)) => text.push_str(&name),
            (_, None) => {}
        }
        text
    })
}

pub(crate) fn last_part(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

fn parts(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", ")
}

pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::{ImageContent, ResourceLink};

    #[test]
    fn what_is_no_text_has_a_name() {
        let image = ImageContent::new("A".repeat(4000), "image/png").uri("file:///w/shot.png".to_owned());
        assert_eq!(name_of(&ContentBlock::Image(image)).unwrap(), "[image: shot.png, image/png, 3 kB]");
        let link = ContentBlock::ResourceLink(ResourceLink::new("a\x1b[2J", "https://x.example/y"));
        assert_eq!(name_of(&link).unwrap(), "[a\\u{1b}[2J: https://x.example/y]");
        assert_eq!(name_of(&"text".into()), None);
    }

    #[test]
    fn a_prompt_reads_as_it_was_typed() {
        let link = ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///w/a.rs"));
        assert_eq!(prompt_text(&["fix ".into(), link, " now".into()]), "fix @a.rs now");
    }
}
