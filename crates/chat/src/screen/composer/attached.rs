//! What a prompt holds beside its words: large texts and pictures that were pasted, files and sessions that are
//! mentioned. Makes the blocks of the prompt; reads nothing.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink,
    TextResourceContents,
};

use super::completion::mention;
use super::{Composer, Written};
use crate::screen::content::{self, last_part};
use crate::screen::limits::{PASTE_BYTES, PASTE_LINES, PASTE_MOST};

/// Kinds of content beside plain text that an agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptTakes {
    pub(crate) embeds: Embeds,
    pub(crate) pictures: PictureWay,
}

/// Whether the agent takes texts as attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Embeds {
    Texts,
    Nothing,
}

/// How the agent takes pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureWay {
    Taken,
    /// By their place at most.
    Linked,
}

/// A picture on its way into a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastedPicture {
    pub(crate) name: String,
    pub(crate) mime: String,
    /// In base64.
    pub(crate) data: String,
    /// Where it lies, if it is a file.
    pub(crate) uri: Option<String>,
}

/// A large attachment, shown in the prompt as a short mark.
#[derive(Debug)]
pub(super) struct Attached {
    mark: String,
    what: AttachedThing,
}

#[derive(Debug)]
enum AttachedThing {
    Text(String),
    Picture(PastedPicture),
}

impl Composer {
    /// A short text is typed; a long one becomes an attachment with a mark in the text. `Err` says why not.
    pub(crate) fn paste(&mut self, text: &str) -> Result<(), String> {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.len() > PASTE_MOST {
            return Err(format!("The pasted text is too large: {} MB", text.len() / 1_000_000));
        }
        self.offer = None;
        self.history.leave();
        let lines = text.lines().count();
        if lines <= PASTE_LINES && text.len() <= PASTE_BYTES {
            self.typed.insert(&text);
            return Ok(());
        }
        self.attach(&format!("pasted {lines} lines"), AttachedThing::Text(text));
        Ok(())
    }

    pub(crate) fn attach_picture(&mut self, picture: PastedPicture) {
        self.offer = None;
        self.history.leave();
        let name: String = picture.name.chars().filter(|c| !c.is_control() && !"[]".contains(*c)).collect();
        self.attach(&format!("image {name}"), AttachedThing::Picture(picture));
    }

    fn attach(&mut self, named: &str, what: AttachedThing) {
        let mark = format!("[{named} #{}]", self.attached.len() + 1);
        self.typed.insert(&mark);
        self.attached.push(Attached { mark, what });
    }

    /// A prompt that was sent comes back to be changed, with everything that it holds.
    pub(crate) fn take_over(&mut self, blocks: &[ContentBlock]) {
        self.clear();
        for block in blocks {
            match block {
                ContentBlock::Text(text) => self.typed.insert(&text.text),
                ContentBlock::ResourceLink(link) if link.uri.starts_with("file://") => {
                    self.typed.insert(&format!("{} ", mention(&link.name)));
                }
                ContentBlock::Image(image) => {
                    let name = image.uri.as_deref().map(last_part).unwrap_or_default().to_owned();
                    let (mime, data) = (image.mime_type.clone(), image.data.clone());
                    self.attach_picture(PastedPicture { name, mime, data, uri: image.uri.clone() });
                }
                ContentBlock::Resource(resource) => match &resource.resource {
                    EmbeddedResourceResource::TextResourceContents(text) => {
                        let lines = text.text.lines().count();
                        self.attach(&format!("text {lines} lines"), AttachedThing::Text(text.text.clone()));
                    }
                    _ => self.typed.insert(&content::name_of(block).unwrap_or_default()),
                },
                _ => self.typed.insert(&content::name_of(block).unwrap_or_default()),
            }
        }
    }

    /// Makes a prompt of the text and empties the composer.
    pub(crate) fn take(&mut self, directory: &Path, takes: PromptTakes) -> Option<Written> {
        let text = self.typed.take();
        let attached = std::mem::take(&mut self.attached);
        self.offer = None;
        self.history.leave();
        self.begin_insert();
        if text.trim().is_empty() {
            return None;
        }
        self.history.add(&text);
        let blocks = self.blocks(&text, &attached, directory, takes);
        Some(Written { text, blocks })
    }

    /// The text in the order it was written, with what it mentions and holds in the place of their marks.
    fn blocks(
        &self,
        text: &str,
        attached: &[Attached],
        directory: &Path,
        takes: PromptTakes,
    ) -> Vec<ContentBlock> {
        let mut blocks = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        let mut at_start = true;
        while let Some(character) = rest.chars().next() {
            if let Some(one) = attached.iter().find(|one| rest.starts_with(&one.mark)) {
                rest = &rest[one.mark.len()..];
                match one.block(takes) {
                    Some(block) => {
                        flush(&mut plain, &mut blocks);
                        blocks.push(block);
                    }
                    None => plain.push_str(one.text()),
                }
            } else if let Some((link, length)) = at_start.then(|| self.mentioned(rest, directory)).flatten() {
                flush(&mut plain, &mut blocks);
                blocks.push(ContentBlock::ResourceLink(link));
                rest = &rest[length..];
            } else {
                plain.push(character);
                rest = &rest[character.len_utf8()..];
            }
            at_start = character.is_whitespace();
        }
        flush(&mut plain, &mut blocks);
        blocks
    }

    /// A known file or session behind `@`, and how many bytes name it.
    fn mentioned(&self, text: &str, directory: &Path) -> Option<(ResourceLink, usize)> {
        let word = text.strip_prefix('@')?;
        let (name, length) = match word.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                (&quoted[..end], end + 3)
            }
            None => {
                let end = word.find(char::is_whitespace).unwrap_or(word.len());
                (&word[..end], end + 1)
            }
        };
        if self.files.contains(name) {
            return Some((ResourceLink::new(name, file_uri(&directory.join(name))), length));
        }
        self.sessions.link(name).map(|link| (link, length))
    }
}

impl Attached {
    /// `None` where only its words can be given.
    fn block(&self, takes: PromptTakes) -> Option<ContentBlock> {
        match (&self.what, takes) {
            (AttachedThing::Text(text), PromptTakes { embeds: Embeds::Texts, .. }) => {
                let name = self.mark.trim_matches(['[', ']']).replace(" #", "-").replace(' ', "-");
                Some(embedded(text, &format!("pasted:///{name}.txt")))
            }
            (AttachedThing::Picture(picture), PromptTakes { pictures: PictureWay::Taken, .. }) => {
                let image = ImageContent::new(picture.data.clone(), picture.mime.clone());
                Some(ContentBlock::Image(image.uri(picture.uri.clone())))
            }
            (AttachedThing::Picture(PastedPicture { uri: Some(uri), name, .. }), _) => {
                Some(ContentBlock::ResourceLink(ResourceLink::new(name.clone(), uri.clone())))
            }
            (AttachedThing::Text(_) | AttachedThing::Picture(_), _) => None,
        }
    }

    fn text(&self) -> &str {
        match &self.what {
            AttachedThing::Text(text) => text,
            // The agent learns at least that there was one.
            AttachedThing::Picture(_) => &self.mark,
        }
    }
}

/// A text under a name of its own.
pub(crate) fn embedded(text: &str, uri: &str) -> ContentBlock {
    let contents = TextResourceContents::new(text.to_owned(), uri.to_owned());
    ContentBlock::Resource(EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(contents)))
}

fn flush(plain: &mut String, blocks: &mut Vec<ContentBlock>) {
    if !plain.is_empty() {
        blocks.push(std::mem::take(plain).into());
    }
}

/// With everything encoded that a URI may not hold.
pub(crate) fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().iter().fold("file://".to_owned(), |mut uri, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
        uri
    })
}
