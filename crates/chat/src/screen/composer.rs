//! Where a prompt is written: text, history, completions, attachments. Gives the blocks of a prompt; sends
//! nothing.

use agent_client_protocol_schema::v1::{AvailableCommand, ContentBlock};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

mod attached;
mod completion;
mod files;
mod history;
mod sessions;
mod show;
mod text;
mod vi;

pub(crate) use attached::{Embeds, PastedPicture, PictureWay, PromptTakes, embedded, file_uri};
pub(crate) use completion::{Offer, OwnCommand};
pub(crate) use files::{FileWalk, KnownFiles, walk};
pub(crate) use history::PromptHistory;
pub(crate) use sessions::{KnownSessions, session_of};
pub use vi::ComposerKeys;

use super::harmless;
use attached::Attached;
use completion::{Completion, mentioned, offer};
use text::{Motion, TypedText};
use vi::ViState;

#[derive(Debug, Default)]
pub(crate) struct Composer {
    typed: TypedText,
    history: PromptHistory,
    pub(crate) files: KnownFiles,
    pub(crate) sessions: KnownSessions,
    offer: Option<Offer>,
    /// The offer was put away for the word at this place.
    put_away: Option<usize>,
    attached: Vec<Attached>,
    /// For whoever wants the keys of vi.
    vi: Option<ViState>,
    /// Columns that the text had when it was last shown.
    width: usize,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Something was changed or shown.
    Taken,
    /// Enter: the prompt is to be sent.
    Send,
    /// Tab behind a command: its agent may know how it goes on.
    Complete,
    /// Not a key of the composer.
    Other,
}

/// Completions for the word at the cursor.
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

    /// The text was not for the agent; it goes into the history all the same.
    pub(crate) fn sent_elsewhere(&mut self) {
        let text = self.typed.take();
        self.history.add(&text);
        self.clear();
    }

    pub(crate) fn clear(&mut self) {
        self.set("");
        self.attached.clear();
        self.history.leave();
    }

    /// Puts the list of completions away; false when there is none.
    pub(crate) fn dismiss(&mut self) -> bool {
        let offer = self.offer.take();
        self.put_away = offer.as_ref().map(|offer| offer.start);
        offer.is_some()
    }

    pub(crate) fn key(&mut self, key: KeyEvent, words: Vocabulary<'_>) -> Typed {
        if let Some(typed) = self.key_of_offer(key, words).or_else(|| self.key_of_vi(key)) {
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
            KeyCode::Tab if self.is_behind_command() => return Typed::Complete,
            KeyCode::Up | KeyCode::Down => return self.vertical(key.code),
            _ => match edit_of(key) {
                Some(edit) => self.edit(edit),
                None => return Typed::Other,
            },
        }
        self.history.leave();
        self.look_for_offer(words);
        Typed::Taken
    }

    fn is_behind_command(&self) -> bool {
        let (text, cursor) = (self.typed.as_str(), self.typed.cursor());
        text.starts_with('/') && text.contains(char::is_whitespace) && cursor == text.len()
    }

    /// Offers these for the whole text, unless it has become another meanwhile.
    pub(crate) fn offer_completed(&mut self, asked: &str, texts: Vec<String>) {
        if self.typed.as_str() != asked || texts.is_empty() {
            return;
        }
        let row = |text: String| Completion { text: harmless::exact_line(&text), hint: String::new() };
        let rows = texts.into_iter().map(row).collect();
        self.offer = Some(Offer { start: 0, rows, chosen: 0 });
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
        self.files.end_search();
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

    /// More can be completed now than when the word was typed.
    pub(crate) fn look_again(&mut self, words: Vocabulary<'_>) {
        if self.offer.is_none() && !self.typed.is_empty() {
            self.look_for_offer(words);
        }
    }

    /// Whether more files are still to be looked at for the word at the cursor.
    pub(crate) fn is_searching(&self) -> bool {
        self.files.is_searching()
    }

    /// Looks at some of them. Who has gone down the list stays at the row.
    pub(crate) fn search_on(&mut self, words: Vocabulary<'_>) {
        let row = |offer: &Offer| offer.rows.get(offer.chosen).cloned().filter(|_| offer.chosen > 0);
        let chosen = self.offer.as_ref().and_then(row);
        self.look_for_offer(words);
        if let (Some(offer), Some(chosen)) = (&mut self.offer, chosen) {
            offer.chosen = offer.rows.iter().position(|row| *row == chosen).unwrap_or(0);
        }
    }

    fn look_for_offer(&mut self, words: Vocabulary<'_>) {
        let before = &self.typed.as_str()[..self.typed.cursor()];
        if mentioned(before).is_none() {
            self.files.end_search();
        }
        self.offer = offer(before, words, &mut self.files, &self.sessions)
            .filter(|offer| self.put_away != Some(offer.start));
    }
}

/// A prompt as it was typed, and as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) blocks: Vec<ContentBlock>,
}

enum Edit {
    Insert(char),
    Go(Motion),
    Delete(Motion),
    PutBack,
}

/// The keys of readline.
fn edit_of(key: KeyEvent) -> Option<Edit> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    Some(match (key.code, control, alt) {
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
