//! What a prompt is made of: the words, what came through a pipe, files. Made into the blocks that the agent
//! takes; reads no files itself.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use attache_acp_client::{AgentAbility, AgentClient};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Material {
    pub words: Option<String>,
    /// From standard input. Without words it is the prompt, if it is text.
    pub piped: Option<AttachedContent>,
    pub attachments: Vec<AttachedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// Absolute.
    pub path: PathBuf,
    pub content: AttachedContent,
}

/// What something is by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachedContent {
    Text(String),
    /// With its media type.
    Bytes(Vec<u8>, &'static str),
    /// Only named: a directory.
    Place,
}

/// Kinds of content that an agent takes in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TakenBlocks {
    pub(super) images: bool,
    pub(super) audio: bool,
    pub(super) embedded: bool,
}

impl TakenBlocks {
    pub(super) fn of(client: &AgentClient) -> Self {
        Self {
            images: client.can(AgentAbility::Images),
            audio: client.can(AgentAbility::Audio),
            embedded: client.can(AgentAbility::EmbeddedContext),
        }
    }
}

/// The name of what came through the pipe.
const PIPED: &str = "stdin:";

impl Material {
    /// Whether there is anything to ask.
    pub fn is_empty(&self) -> bool {
        let said = self.words.as_ref().is_some_and(|words| !words.trim().is_empty());
        let piped = self.piped.as_ref().is_some_and(|piped| match piped {
            AttachedContent::Text(text) => !text.trim().is_empty(),
            AttachedContent::Bytes(..) | AttachedContent::Place => true,
        });
        !said && !piped
    }

    pub(super) fn blocks(&self, taken: TakenBlocks) -> Result<Vec<ContentBlock>, String> {
        let mut blocks = Vec::new();
        match (&self.words, &self.piped) {
            (None, Some(AttachedContent::Text(text))) => blocks.push(text.clone().into()),
            (words, piped) => {
                blocks.extend(words.clone().map(ContentBlock::from));
                if let Some(piped) = piped {
                    blocks.push(block(PIPED, "standard input", piped, taken)?);
                }
            }
        }
        for AttachedFile { path, content } in &self.attachments {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            blocks.push(block(&file_uri(path), &name, content, taken)?);
        }
        Ok(blocks)
    }
}

fn block(
    uri: &str,
    name: &str,
    content: &AttachedContent,
    taken: TakenBlocks,
) -> Result<ContentBlock, String> {
    let embedded = |resource| ContentBlock::Resource(EmbeddedResource::new(resource));
    let is_named = uri != PIPED;
    Ok(match content {
        AttachedContent::Text(text) if taken.embedded => {
            let text = TextResourceContents::new(text.clone(), uri).mime_type("text/plain".to_owned());
            embedded(EmbeddedResourceResource::TextResourceContents(text))
        }
        // Every agent takes text.
        AttachedContent::Text(text) => format!("{name}:\n\n{text}").into(),
        AttachedContent::Bytes(bytes, media_type) => {
            let data = || STANDARD.encode(bytes);
            match media_type.split('/').next() {
                Some("image") if taken.images => {
                    let image = ImageContent::new(data(), *media_type);
                    ContentBlock::Image(image.uri(is_named.then(|| uri.to_owned())))
                }
                Some("audio") if taken.audio => ContentBlock::Audio(AudioContent::new(data(), *media_type)),
                Some("image" | "audio") if !is_named => {
                    return Err(format!("the agent takes no {media_type} from a pipe"));
                }
                Some("image" | "audio") => link(uri, name, Some(media_type)),
                _ if taken.embedded => {
                    let blob = BlobResourceContents::new(data(), uri).mime_type((*media_type).to_owned());
                    embedded(EmbeddedResourceResource::BlobResourceContents(blob))
                }
                _ if !is_named => return Err("the agent takes no binary data from a pipe".to_owned()),
                _ => link(uri, name, Some(media_type)),
            }
        }
        AttachedContent::Place => link(uri, name, None),
    })
}

fn link(uri: &str, name: &str, media_type: Option<&str>) -> ContentBlock {
    ContentBlock::ResourceLink(ResourceLink::new(name, uri).mime_type(media_type.map(str::to_owned)))
}

/// Bytes that have a meaning in addresses, and those that are no ASCII, are written in hexadecimal.
fn file_uri(path: &std::path::Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt;
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'/'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'+'
            | b'@'
            | b',' => {
                uri.push(char::from(*byte));
            }
            // Writing to a string can't fail.
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ALL: TakenBlocks = TakenBlocks { images: true, audio: true, embedded: true };

    fn made(material: &Material, taken: TakenBlocks) -> Value {
        serde_json::to_value(material.blocks(taken).unwrap()).unwrap()
    }

    fn attached(path: &str, content: AttachedContent) -> Material {
        let attachments = vec![AttachedFile { path: path.into(), content }];
        Material { words: Some("look".to_owned()), piped: None, attachments }
    }

    #[test]
    fn a_pipe_is_the_prompt_or_context_of_one() {
        let piped = Some(AttachedContent::Text("one\n".to_owned()));
        let alone = Material { piped: piped.clone(), ..Material::default() };
        assert_eq!(made(&alone, ALL), json!([{ "type": "text", "text": "one\n" }]));
        let both = Material { words: Some("why?".to_owned()), piped, ..Material::default() };
        let resource = json!({ "uri": "stdin:", "mimeType": "text/plain", "text": "one\n" });
        let words = json!({ "type": "text", "text": "why?" });
        assert_eq!(made(&both, ALL), json!([words, { "type": "resource", "resource": resource }]));
        let plain = json!({ "type": "text", "text": "standard input:\n\none\n" });
        assert_eq!(made(&both, TakenBlocks::default()), json!([words, plain]));
    }

    #[test]
    fn an_attachment_is_what_the_agent_takes() {
        let image = attached("/tmp/a b#.png", AttachedContent::Bytes(vec![1, 2, 3], "image/png"));
        assert_eq!(
            made(&image, ALL)[1],
            json!({ "type": "image", "data": "AQID", "mimeType": "image/png", "uri": "file:///tmp/a%20b%23.png" })
        );
        assert_eq!(
            made(&image, TakenBlocks::default())[1],
            json!({ "type": "resource_link", "name": "a b#.png", "uri": "file:///tmp/a%20b%23.png", "mimeType": "image/png" })
        );
        let document = attached("/d/x.pdf", AttachedContent::Bytes(vec![0], "application/pdf"));
        assert_eq!(made(&document, ALL)[1]["resource"]["blob"], "AA==");
        assert_eq!(made(&document, TakenBlocks::default())[1]["type"], "resource_link");
        assert_eq!(made(&attached("/d", AttachedContent::Place), ALL)[1]["type"], "resource_link");
    }

    #[test]
    fn what_a_pipe_can_not_carry_is_refused() {
        let piped = Some(AttachedContent::Bytes(vec![0], "image/png"));
        let material = Material { words: Some("what is it?".to_owned()), piped, ..Material::default() };
        assert!(material.blocks(TakenBlocks::default()).unwrap_err().contains("image/png"));
        assert_eq!(made(&material, ALL)[1]["uri"], Value::Null);
    }

    #[test]
    fn blanks_are_no_prompt() {
        assert!(Material::default().is_empty());
        let blank = Material { words: Some(" \n".to_owned()), ..Material::default() };
        assert!(blank.is_empty());
    }
}
