//! The keys of vi, for whoever wants them: what a key means while nothing is inserted. Enter sends in both
//! modes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::text::{Motion, TypedText};
use super::{Composer, Typed};
use crate::screen::limits::VI_UNDOS;

/// Whose keys the composer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComposerKeys {
    /// Those of shells.
    Emacs,
    Vi,
}

#[derive(Debug, Default)]
pub(super) struct ViState {
    mode: ViMode,
    /// A key that waits for the next one.
    pending: Option<char>,
    /// The text and the cursor before each change, for undo.
    before: Vec<(String, usize)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ViMode {
    #[default]
    Insert,
    Normal,
}

impl Composer {
    pub(crate) fn use_keys(&mut self, keys: ComposerKeys) {
        self.vi = match keys {
            ComposerKeys::Emacs => None,
            ComposerKeys::Vi => Some(ViState::default()),
        };
    }

    pub(crate) fn keys(&self) -> ComposerKeys {
        if self.vi.is_some() { ComposerKeys::Vi } else { ComposerKeys::Emacs }
    }

    /// The name of the mode; empty without vi keys.
    pub(crate) fn mode_name(&self) -> Option<&'static str> {
        Some(match self.vi.as_ref()?.mode {
            ViMode::Insert => "INSERT",
            ViMode::Normal => "NORMAL",
        })
    }

    /// Escape ends inserting; false if there is nothing to end.
    pub(crate) fn leave_insert(&mut self) -> bool {
        let Some(vi) = self.vi.as_mut().filter(|vi| vi.mode == ViMode::Insert) else { return false };
        vi.mode = ViMode::Normal;
        vi.pending = None;
        if self.typed.cursor() > 0 && !self.typed.as_str()[..self.typed.cursor()].ends_with('\n') {
            self.typed.go(Motion::Left);
        }
        true
    }

    /// Another prompt begins as the first one did.
    pub(super) fn begin_insert(&mut self) {
        if let Some(vi) = &mut self.vi {
            *vi = ViState::default();
        }
    }

    /// The meaning of a key in normal mode; `None` in insert mode, and for keys that mean the same in both.
    pub(super) fn key_of_vi(&mut self, key: KeyEvent) -> Option<Typed> {
        let vi = self.vi.as_mut().filter(|vi| vi.mode == ViMode::Normal)?;
        let KeyCode::Char(character) = key.code else {
            vi.pending = None;
            return None;
        };
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let typed = &mut self.typed;
        match vi.pending.take() {
            Some(operator) => vi.operate(operator, character, typed),
            None if matches!(character, 'j' | 'k') => {
                return Some(self.vertical(if character == 'j' { KeyCode::Down } else { KeyCode::Up }));
            }
            // A list of commands or files is one key away in both modes.
            None if matches!(character, '/' | '!' | '@') && typed.is_empty() => {
                vi.mode = ViMode::Insert;
                return None;
            }
            None => vi.press(character, typed),
        }
        Some(Typed::Taken)
    }
}

impl ViState {
    fn press(&mut self, character: char, typed: &mut TypedText) {
        if let Some(motion) = motion_of(character) {
            return typed.go(motion);
        }
        match character {
            'd' | 'c' | 'y' | 'r' | 'g' => self.pending = Some(character),
            'u' => self.undo(typed),
            'i' => self.mode = ViMode::Insert,
            'a' => self.insert_at(typed, Motion::Right),
            'I' => self.insert_at(typed, Motion::FirstSign),
            'A' => self.insert_at(typed, Motion::LineEnd),
            'o' | 'O' => {
                self.remember(typed);
                match character {
                    'o' => {
                        typed.go(Motion::LineEnd);
                        typed.insert("\n");
                    }
                    _ => {
                        typed.go(Motion::LineStart);
                        typed.insert("\n");
                        typed.go(Motion::Left);
                    }
                }
                self.mode = ViMode::Insert;
            }
            'x' | 'X' | 'D' | 'C' | 's' | 'p' => {
                self.remember(typed);
                match character {
                    'x' | 's' => typed.delete(Motion::Right),
                    'X' => typed.delete(Motion::Left),
                    'p' => typed.put_behind(),
                    _ => typed.delete(Motion::LineEnd),
                }
                if matches!(character, 'C' | 's') {
                    self.mode = ViMode::Insert;
                }
            }
            _ => {}
        }
    }

    /// The second key of two.
    fn operate(&mut self, operator: char, character: char, typed: &mut TypedText) {
        match (operator, character) {
            ('g', 'g') => typed.go(Motion::TextStart),
            ('y', 'y') => typed.copy_line(),
            ('r', sign) if !typed.as_str()[typed.cursor()..].is_empty() => {
                self.remember(typed);
                typed.delete(Motion::Right);
                typed.insert(sign.encode_utf8(&mut [0; 4]));
                typed.go(Motion::Left);
            }
            ('d', 'd') => {
                self.remember(typed);
                typed.delete_line();
            }
            ('c', 'c') => {
                self.remember(typed);
                typed.go(Motion::LineStart);
                if !typed.as_str()[typed.cursor()..].starts_with('\n') {
                    typed.delete(Motion::LineEnd);
                }
                self.mode = ViMode::Insert;
            }
            ('d' | 'c', _) => {
                let Some(motion) = motion_of(character) else { return };
                self.remember(typed);
                match (operator, motion) {
                    // To change a word leaves the blank behind it.
                    ('c', Motion::NextWord) | (_, Motion::WordEnd) => typed.delete_through(Motion::WordEnd),
                    (_, motion) => typed.delete(motion),
                }
                if operator == 'c' {
                    self.mode = ViMode::Insert;
                }
            }
            _ => {}
        }
    }

    fn insert_at(&mut self, typed: &mut TypedText, motion: Motion) {
        typed.go(motion);
        self.mode = ViMode::Insert;
    }

    fn remember(&mut self, typed: &TypedText) {
        if self.before.len() == VI_UNDOS {
            self.before.remove(0);
        }
        self.before.push((typed.as_str().to_owned(), typed.cursor()));
    }

    fn undo(&mut self, typed: &mut TypedText) {
        if let Some((text, cursor)) = self.before.pop() {
            typed.set_at(text, cursor);
        }
    }
}

fn motion_of(character: char) -> Option<Motion> {
    Some(match character {
        'h' => Motion::Left,
        'l' | ' ' => Motion::Right,
        'w' => Motion::NextWord,
        'b' => Motion::WordLeft,
        'e' => Motion::WordEnd,
        '0' => Motion::LineStart,
        '^' => Motion::FirstSign,
        '$' => Motion::LineEnd,
        'G' => Motion::TextEnd,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::composer::Vocabulary;

    /// The text after these keys; `<` is Escape.
    fn after(text: &str, keys: &str) -> String {
        let mut composer = Composer::default();
        composer.use_keys(ComposerKeys::Vi);
        composer.set(text);
        composer.leave_insert();
        for character in keys.chars() {
            match character {
                '<' => assert!(composer.leave_insert(), "{keys}"),
                other => {
                    let nothing = Vocabulary { own: &[], commands: &[] };
                    composer.key(KeyEvent::from(KeyCode::Char(other)), nothing);
                }
            }
        }
        composer.text().to_owned()
    }

    #[test]
    fn keys_do_what_they_do_in_vi() {
        for (text, keys, expected) in [
            ("fix the typo", "x", "fix the typ"),
            ("fix the typo", "0dw", "the typo"),
            ("fix the typo", "0cwmend<", "mend the typo"),
            ("fix the typo", "0wde", "fix  typo"),
            ("fix the typo", "bD", "fix the "),
            ("fix the typo", "0ianew <", "anew fix the typo"),
            ("fix the typo", "A!<", "fix the typo!"),
            ("fix the typo", "0rF", "Fix the typo"),
            ("one\ntwo\nthree", "dd", "one\ntwo"),
            ("one\ntwo\nthree", "ggdd", "two\nthree"),
            ("one\ntwo", "ggyyGp", "one\ntwo\none"),
            ("one\ntwo", "ggddp", "two\none"),
            ("one", "onext<", "one\nnext"),
            ("two", "Oone<", "one\ntwo"),
            ("one two", "0dwuu", "one two"),
            ("one\ntwo", "ccnew<", "one\nnew"),
            ("a b", "0dwP", "b"),
        ] {
            assert_eq!(after(text, keys), expected, "{text:?} {keys}");
        }
    }

    #[test]
    fn a_command_can_be_begun_from_the_normal_mode() {
        assert_eq!(after("", "/model"), "/model");
        assert_eq!(after("", "jk"), "");
    }
}
