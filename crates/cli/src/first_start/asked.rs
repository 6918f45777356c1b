//! Asks one question in the terminal: numbered rows, and a line to type. Uses plain lines, so that every
//! terminal and screen reader can follow.

use std::io::{self, Write};

use anyhow::Result;
use attache_core::legible::legible_line;

use crate::answer;

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PersonSaid<T> {
    Answer(T),
    /// The end of the input.
    Nothing,
    Interrupted,
}

impl<T> PersonSaid<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> PersonSaid<U> {
        match self {
            Self::Answer(answer) => PersonSaid::Answer(change(answer)),
            Self::Nothing => PersonSaid::Nothing,
            Self::Interrupted => PersonSaid::Interrupted,
        }
    }
}

/// Asks for a row and returns its index; an empty line means the first.
pub(super) async fn choose(rows: &[String]) -> Result<PersonSaid<usize>> {
    loop {
        match ask(rows).await? {
            PersonSaid::Answer(line) => match row_of(&line, rows.len()) {
                Some(index) => return Ok(PersonSaid::Answer(index)),
                None => answer::note(&format!("Type a number from 1 to {}.", rows.len())),
            },
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        }
    }
}

/// Shows the rows and reads a line, trimmed.
pub(super) async fn ask(rows: &[String]) -> Result<PersonSaid<String>> {
    for (index, row) in rows.iter().enumerate() {
        answer::note(&format!("{:4}  {}", index + 1, legible_line(row)));
    }
    let default = if rows.is_empty() { "" } else { "[1] " };
    write!(io::stderr(), "{default}> ")?;
    match answer::typed_line().await {
        Ok(Some(line)) => Ok(PersonSaid::Answer(line.trim().to_owned())),
        Ok(None) => Ok(PersonSaid::Nothing),
        Err(error) if error.is::<answer::Interrupted>() => Ok(PersonSaid::Interrupted),
        Err(error) => Err(error),
    }
}

fn row_of(line: &str, rows: usize) -> Option<usize> {
    match line {
        "" => Some(0),
        typed => typed.parse::<usize>().ok()?.checked_sub(1).filter(|index| *index < rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_number_and_the_first_one_by_default() {
        assert_eq!([row_of("", 3), row_of("1", 3), row_of("3", 3)], [Some(0), Some(0), Some(2)]);
        for nothing in ["0", "4", "two", "-1"] {
            assert_eq!(row_of(nothing, 3), None, "{nothing}");
        }
    }
}
