//! Prints the demo: lines with a gutter that names the speaker, and checks that must hold. On a terminal it
//! wraps at words and prints slowly enough to read; in a pipe it does neither.

use std::io;
use std::time::Duration;

use anyhow::{Result, ensure};
use attache_core::legible::legible;

use crate::answer;
use crate::paint::{Colour, Paint};

/// Columns before the text: the speaker's name and a blank.
const GUTTER: usize = 10;

/// The narrowest wrapping, however narrow the terminal is.
const NARROWEST: usize = 20;

/// How long the reader gets for a line, or for a piece of a streamed answer.
const LINE_PACE: Duration = Duration::from_millis(60);
const PIECE_PACE: Duration = Duration::from_millis(12);

pub(super) struct DemoStage {
    paint: Paint,
    checks: usize,
    /// Columns for text; `None` if no person reads it.
    width: Option<usize>,
    /// Whether the current line already has text.
    in_line: bool,
    /// For streamed text: how many columns of its line are filled, and the word that is not complete yet.
    column: usize,
    word: String,
    /// The first error of the output, if any.
    written: io::Result<()>,
}

impl DemoStage {
    pub(super) fn new() -> Self {
        let width = answer::columns().map(|columns| columns.saturating_sub(GUTTER).max(NARROWEST));
        let paint = Paint::for_answers();
        Self { paint, checks: 0, width, in_line: false, column: 0, word: String::new(), written: Ok(()) }
    }

    pub(super) fn title(&mut self, text: &str) {
        self.paragraph(text, Some(Colour::Bold));
    }

    /// Text without a gutter.
    fn paragraph(&mut self, text: &str, colour: Option<Colour>) {
        for line in wrap(text, self.width.map(|width| width + GUTTER)) {
            match colour {
                Some(colour) => self.line(&self.paint.paint(colour, &line)),
                None => self.line(&line),
            }
        }
    }

    pub(super) fn chapter(&mut self, text: &str) {
        self.end_line();
        self.line("");
        self.paragraph(&format!("── {text}"), Some(Colour::Bold));
    }

    pub(super) fn user(&mut self, text: &str) {
        self.labelled(Colour::Blue, "you", text);
    }

    pub(super) fn fact(&mut self, text: &str) {
        self.painted(Colour::Grey, "", text, Some(Colour::Grey));
    }

    pub(super) fn crash(&mut self, text: &str) {
        self.painted(Colour::Red, "SIGKILL", text, Some(Colour::Red));
    }

    /// One line, or several under one label.
    pub(super) fn labelled(&mut self, colour: Colour, label: &str, text: &str) {
        self.painted(colour, label, text, None);
    }

    fn painted(&mut self, colour: Colour, label: &str, text: &str, text_colour: Option<Colour>) {
        self.end_line();
        let (mut label, width) = (label, self.width);
        for line in text.lines().flat_map(|line| wrap(line, width)) {
            let line = match text_colour {
                Some(colour) => self.paint.paint(colour, &line),
                None => line,
            };
            self.line(&format!("{} {line}", self.paint.paint(colour, &format!("{label:>9}"))));
            label = "";
        }
    }

    /// Streamed text under a label that appears once.
    pub(super) fn streaming(&mut self, colour: Colour, label: &str, text: &str) {
        if !self.in_line {
            self.raw(&format!("{} ", self.paint.paint(colour, &format!("{label:>9}"))));
            (self.in_line, self.column) = (true, 0);
        }
        for character in legible(text).chars() {
            match character {
                '\n' => {
                    self.end_word();
                    self.new_line();
                }
                ' ' => {
                    self.end_word();
                    self.column += 1;
                    self.raw(" ");
                }
                other => self.word.push(other),
            }
        }
        // Waits for the end of a word before wrapping it, but only on a terminal, where a person reads.
        match self.width {
            Some(_) => std::thread::sleep(PIECE_PACE),
            None => self.end_word(),
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let length = word.chars().count();
        if self.column > 0 && self.width.is_some_and(|width| self.column + length > width) {
            self.new_line();
        }
        self.column += length;
        self.raw(&word);
    }

    fn new_line(&mut self) {
        self.column = 0;
        self.raw("\n          ");
    }

    pub(super) fn end_line(&mut self) {
        if self.in_line {
            self.end_word();
            self.in_line = false;
            self.raw("\n");
        }
    }

    pub(super) fn diff(&mut self, old: &str, new: &str) {
        let (old, new) = (legible(old), legible(new));
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same_start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let rest = old.len().min(new.len()) - same_start;
        let same_end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let (removed, added) =
            (&old[same_start..old.len() - same_end], &new[same_start..new.len() - same_end]);
        self.end_line();
        self.diff_lines("  ", &old[..same_start], None);
        self.diff_lines("- ", removed, Some(Colour::Red));
        self.diff_lines("+ ", added, Some(Colour::Green));
        self.diff_lines("  ", &old[old.len() - same_end..], None);
    }

    /// Wraps lines that are too long for a narrow terminal.
    fn diff_lines(&mut self, mark: &str, lines: &[&str], colour: Option<Colour>) {
        for text in lines {
            let mut mark = mark;
            for piece in wrap(text, self.width.map(|width| width.saturating_sub(mark.len()))) {
                let line = format!("{mark}{piece}");
                let line = colour.map_or_else(|| line.clone(), |colour| self.paint.paint(colour, &line));
                self.line(&format!("{:GUTTER$}{line}", ""));
                mark = "  ";
            }
        }
    }

    /// Prints what it checked; ends the demo if the check fails.
    pub(super) fn check(&mut self, what: &str, holds: bool) -> Result<()> {
        if holds {
            self.checks += 1;
            self.labelled(Colour::Green, "✓", what);
        } else {
            self.labelled(Colour::Red, "✗", what);
        }
        ensure!(holds, "the demo did not come out as scripted: {what}");
        Ok(())
    }

    /// Prints the last words; returns the error if some output failed.
    pub(super) fn closing(mut self) -> io::Result<()> {
        self.line("");
        let done = format!("{} checks passed.", self.checks);
        self.line(&self.paint.paint(Colour::Bold, &done));
        let afterwards = "All of it was temporary and is removed: the project, the settings and the session, which \
                          `attache sessions list` therefore does not show. `attache doctor` says what to set up; \
                          `attache chat` talks to the agent here, `attache init` puts it into your editor.";
        self.paragraph(afterwards, None);
        self.written
    }

    fn line(&mut self, text: &str) {
        self.raw(&format!("{text}\n"));
        if self.width.is_some() {
            std::thread::sleep(LINE_PACE);
        }
    }

    fn raw(&mut self, text: &str) {
        // If the reader has gone, print nothing more; the checks still count.
        if self.written.is_ok() {
            self.written = answer::write_painted(text);
        }
    }
}

/// Lines of at most `width` columns, broken between words; a longer word gets its own line.
pub(crate) fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![text.to_owned()] };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_in_pipes_not_at_all() {
        assert_eq!(wrap("one two three", Some(7)), ["one two", "three"]);
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible words", Some(5)), ["incomprehensible", "words"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("", Some(5)), [""]);
    }
}
