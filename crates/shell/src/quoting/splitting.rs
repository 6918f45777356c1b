//! Turns characters into words: blanks split them, and the rest of each word is put together.

use super::{Quotes, ShellChar};
use crate::word::{Word, WordPart};

/// Blanks from variables end words.
pub(super) fn split(marks: Vec<ShellChar>) -> Vec<Vec<ShellChar>> {
    let mut words = vec![Vec::new()];
    for mark in marks {
        match mark {
            ShellChar::Expanded(' ' | '\t' | '\n') => words.push(Vec::new()),
            mark => {
                if let Some(word) = words.last_mut() {
                    word.push(mark);
                }
            }
        }
    }
    if words.len() > 1 {
        words.retain(|word| !word.is_empty());
    }
    words
}

pub(super) fn word(marks: &[ShellChar], source: &str) -> Word {
    let mut pieces: Vec<WordPart> = Vec::new();
    let mut splits = false;
    for mark in marks {
        match mark {
            ShellChar::Plain(wild @ ('*' | '?' | '[')) | ShellChar::Expanded(wild @ ('*' | '?' | '[')) => {
                pieces.push(WordPart::Wild(wild.to_string()));
            }
            ShellChar::Plain(character) | ShellChar::Quoted(character) | ShellChar::Expanded(character) => {
                if let Some(WordPart::Text(text)) = pieces.last_mut() {
                    text.push(*character);
                } else {
                    pieces.push(WordPart::Text(character.to_string()));
                }
            }
            ShellChar::Open(piece, quotes) => {
                // A name that matches a pattern may contain blanks.
                splits |= matches!(piece, WordPart::Unknown | WordPart::Chosen(_)) && *quotes == Quotes::None;
                pieces.push(piece.clone());
            }
        }
    }
    Word { pieces, source: source.to_owned(), splits }
}
