//! Where a prompt is written: text, history, completions, attachments. Gives the blocks of a prompt; sends
//! nothing.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    AvailableCommand, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ResourceLink,
    TextResourceContents,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::screen::limits::{PASTE_BYTES, PASTE_LINES, PASTE_MOST};

mod completion;
mod files;
mod history;
mod show;
mod text;

pub(crate) use completion::{Offer, OwnCommand};
pub(crate) use files::{FileWalk, KnownFiles, walk};
pub(crate) use history::PromptHistory;

use completion::offer;
use text::{Motion, TypedText};

#[derive(Debug, Default)]
pub(crate) struct Composer {
    typed: TypedText,
    history: PromptHistory,
    pub(crate) files: KnownFiles,
    offer: Option<Offer>,
    /// The offer was put away for the word at this place.
    put_away: Option<usize>,
    pasted: Vec<Pasted>,
    /// Columns that the text had when it was last shown.
    width: usize,
}

/// A large text that stands for itself in the prompt by a short mark.
#[derive(Debug)]
struct Pasted {
    mark: String,
    text: String,
}

/// What a key came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Something was changed or shown.
    Taken,
    /// Enter: the prompt is to be sent.
    Send,
    /// Not a key of the composer.
    Other,
}

/// What stands at the cursor can be completed with these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vocabulary<'a> {
    pub(crate) own: &'a [OwnCommand],
    pub(crate) commands: &'a [AvailableCommand],
}

impl Composer {
    pub(crate) fn new(history: PromptHistory) -> Self {
        Self { history, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.typed.is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        self.typed.as_str()
    }

    pub(crate) fn set(&mut self, text: impl Into<String>) {
        self.typed.set(text);
        self.offer = None;
    }

    pub(crate) fn clear(&mut self) {
        self.set("");
        self.pasted.clear();
        self.history.leave();
    }

    /// Puts the list of completions away; false when there is none.
    pub(crate) fn dismiss(&mut self) -> bool {
        let offer = self.offer.take();
        self.put_away = offer.as_ref().map(|offer| offer.start);
        offer.is_some()
    }

    pub(crate) fn key(&mut self, key: KeyEvent, words: Vocabulary<'_>) -> Typed {
        if let Some(typed) = self.key_of_offer(key, words) {
            return typed;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift => self.typed.insert("\n"),
            KeyCode::Char('j') if control => self.typed.insert("\n"),
            KeyCode::Enter if self.ends_with_backslash() => {
                self.typed.delete(Motion::Left);
                self.typed.insert("\n");
            }
            KeyCode::Enter => return Typed::Send,
            KeyCode::Up | KeyCode::Down => return self.vertical(key.code),
            _ => match edit_of(key.code, control, alt) {
                Some(edit) => self.edit(edit),
                None => return Typed::Other,
            },
        }
        self.history.leave();
        self.look_for_offer(words);
        Typed::Taken
    }

    fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Insert(character) => {
                self.typed.insert(character.encode_utf8(&mut [0; 4]));
                self.put_away = None;
            }
            Edit::Go(motion) => self.typed.go(motion),
            Edit::Delete(motion) => self.typed.delete(motion),
            Edit::PutBack => self.typed.put_back(),
        }
    }

    /// Within several lines up and down move; at their ends they walk through the history.
    fn vertical(&mut self, code: KeyCode) -> Typed {
        let width = self.width.max(2);
        self.offer = None;
        if code == KeyCode::Up {
            if !self.typed.go_up(width)
                && let Some(older) = self.history.older(self.typed.as_str())
            {
                let older = older.to_owned();
                self.typed.set(older);
            }
        } else if !self.typed.go_down(width)
            && let Some(newer) = self.history.newer()
        {
            self.typed.set(newer);
        }
        Typed::Taken
    }

    fn ends_with_backslash(&self) -> bool {
        self.typed.as_str()[..self.typed.cursor()].ends_with('\\')
    }

    fn key_of_offer(&mut self, key: KeyEvent, words: Vocabulary<'_>) -> Option<Typed> {
        let offer = self.offer.as_mut()?;
        match key.code {
            KeyCode::Up => offer.up(),
            KeyCode::Down => offer.down(),
            KeyCode::Char('p') if key.modifiers.contains(KeyModifiers::CONTROL) => offer.up(),
            KeyCode::Char('n') if key.modifiers.contains(KeyModifiers::CONTROL) => offer.down(),
            KeyCode::Tab | KeyCode::Enter => {
                let row = offer.rows.get(offer.chosen)?.clone();
                let start = offer.start;
                self.offer = None;
                // A whole command is sent at once: Enter would only be asked for again.
                let whole = self.typed.as_str() == row.text.trim_end();
                if key.code == KeyCode::Enter && whole {
                    return Some(Typed::Send);
                }
                self.typed.replace_back_to(start, &row.text);
                self.look_for_offer(words);
            }
            _ => return None,
        }
        Some(Typed::Taken)
    }

    fn look_for_offer(&mut self, words: Vocabulary<'_>) {
        let before = &self.typed.as_str()[..self.typed.cursor()];
        self.offer = offer(before, words.own, words.commands, &self.files)
            .filter(|offer| self.put_away != Some(offer.start));
    }

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
        let number = self.pasted.len() + 1;
        let mark = format!("[pasted {lines} lines #{number}]");
        self.typed.insert(&mark);
        self.pasted.push(Pasted { mark, text });
        Ok(())
    }

    /// What is written becomes a prompt, and the composer is empty.
    pub(crate) fn take(&mut self, directory: &Path, embeds: Embeds) -> Option<Written> {
        let text = self.typed.take();
        let pasted = std::mem::take(&mut self.pasted);
        self.offer = None;
        self.history.leave();
        if text.trim().is_empty() {
            return None;
        }
        self.history.add(&text);
        let blocks = self.blocks(&text, &pasted, directory, embeds);
        Some(Written { text, blocks })
    }

    /// The text in the order it was written, with what it mentions and holds in the place of their marks.
    fn blocks(&self, text: &str, pasted: &[Pasted], directory: &Path, embeds: Embeds) -> Vec<ContentBlock> {
        let mut blocks = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        let mut at_start = true;
        while let Some(character) = rest.chars().next() {
            if let Some(pasted) = pasted.iter().find(|pasted| rest.starts_with(&pasted.mark)) {
                rest = &rest[pasted.mark.len()..];
                match embeds {
                    Embeds::Texts => {
                        flush(&mut plain, &mut blocks);
                        blocks.push(embedded(pasted));
                    }
                    Embeds::Nothing => plain.push_str(&pasted.text),
                }
            } else if let Some((path, length)) = at_start.then(|| self.mentioned(rest)).flatten() {
                flush(&mut plain, &mut blocks);
                let uri = file_uri(&directory.join(&path));
                blocks.push(ContentBlock::ResourceLink(ResourceLink::new(path, uri)));
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

    /// A known file behind `@`, and how many bytes name it.
    fn mentioned(&self, text: &str) -> Option<(String, usize)> {
        let word = text.strip_prefix('@')?;
        let (path, length) = match word.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"')?;
                (&quoted[..end], end + 3)
            }
            None => {
                let end = word.find(char::is_whitespace).unwrap_or(word.len());
                (&word[..end], end + 1)
            }
        };
        self.files.contains(path).then(|| (path.to_owned(), length))
    }
}

/// A prompt as it was typed, and as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) blocks: Vec<ContentBlock>,
}

/// Whether the agent takes texts as attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Embeds {
    Texts,
    Nothing,
}

fn flush(plain: &mut String, blocks: &mut Vec<ContentBlock>) {
    if !plain.is_empty() {
        blocks.push(std::mem::take(plain).into());
    }
}

fn embedded(pasted: &Pasted) -> ContentBlock {
    let name = pasted.mark.trim_matches(['[', ']']).replace(" #", "-").replace(' ', "-");
    let contents = TextResourceContents::new(pasted.text.clone(), format!("pasted:///{name}.txt"));
    let resource = EmbeddedResourceResource::TextResourceContents(contents);
    ContentBlock::Resource(EmbeddedResource::new(resource))
}

/// With everything encoded that a URI may not hold.
fn file_uri(path: &Path) -> String {
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

enum Edit {
    Insert(char),
    Go(Motion),
    Delete(Motion),
    PutBack,
}

/// The keys of readline.
fn edit_of(code: KeyCode, control: bool, alt: bool) -> Option<Edit> {
    Some(match (code, control, alt) {
        (KeyCode::Char('a'), true, _) | (KeyCode::Home, ..) => Edit::Go(Motion::LineStart),
        (KeyCode::Char('e'), true, _) | (KeyCode::End, ..) => Edit::Go(Motion::LineEnd),
        (KeyCode::Char('b'), true, _) => Edit::Go(Motion::Left),
        (KeyCode::Char('f'), true, _) => Edit::Go(Motion::Right),
        (KeyCode::Char('b'), _, true) | (KeyCode::Left, true, _) | (KeyCode::Left, _, true) => {
            Edit::Go(Motion::WordLeft)
        }
        (KeyCode::Char('f'), _, true) | (KeyCode::Right, true, _) | (KeyCode::Right, _, true) => {
            Edit::Go(Motion::WordRight)
        }
        (KeyCode::Left, ..) => Edit::Go(Motion::Left),
        (KeyCode::Right, ..) => Edit::Go(Motion::Right),
        (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, _, true) | (KeyCode::Backspace, true, _) => {
            Edit::Delete(Motion::WordLeft)
        }
        (KeyCode::Char('d'), _, true) => Edit::Delete(Motion::WordRight),
        (KeyCode::Char('u'), true, _) => Edit::Delete(Motion::LineStart),
        (KeyCode::Char('k'), true, _) => Edit::Delete(Motion::LineEnd),
        (KeyCode::Char('y'), true, _) => Edit::PutBack,
        (KeyCode::Char('h'), true, _) | (KeyCode::Backspace, ..) => Edit::Delete(Motion::Left),
        (KeyCode::Delete, ..) => Edit::Delete(Motion::Right),
        (KeyCode::Char(character), false, false) => Edit::Insert(character),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
