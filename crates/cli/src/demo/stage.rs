//! Where the demo is seen: lines with a gutter that says who speaks, and checks that must hold.

use anyhow::{Result, ensure};
use attache_core::legible::legible;

use super::paint::{Colour, Paint};
use crate::answer;

pub(super) struct Stage {
    paint: Paint,
    checks: usize,
    /// Something was written on the current line.
    in_line: bool,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self { paint: Paint::for_answers(), checks: 0, in_line: false }
    }

    pub(super) fn title(&mut self, text: &str) {
        self.line(&self.paint.paint(Colour::Bold, text));
    }

    pub(super) fn chapter(&mut self, text: &str) {
        self.end_line();
        self.line("");
        self.line(&self.paint.paint(Colour::Bold, &format!("── {text}")));
    }

    pub(super) fn user(&mut self, text: &str) {
        self.labelled(Colour::Blue, "you", text);
    }

    pub(super) fn fact(&mut self, text: &str) {
        self.labelled(Colour::Grey, "", &self.paint.paint(Colour::Grey, text));
    }

    pub(super) fn crash(&mut self, text: &str) {
        self.labelled(Colour::Red, "SIGKILL", &self.paint.paint(Colour::Red, text));
    }

    /// One line, or several under one label.
    pub(super) fn labelled(&mut self, colour: Colour, label: &str, text: &str) {
        self.end_line();
        let mut label = label;
        for line in text.lines() {
            self.line(&format!("{} {line}", self.paint.paint(colour, &format!("{label:>9}"))));
            label = "";
        }
    }

    /// Text as it streams, under a label that is written once.
    pub(super) fn streaming(&mut self, colour: Colour, label: &str, text: &str) {
        if !self.in_line {
            self.raw(&format!("{} ", self.paint.paint(colour, &format!("{label:>9}"))));
            self.in_line = true;
        }
        self.raw(&legible(text).replace('\n', "\n          "));
    }

    pub(super) fn end_line(&mut self) {
        if self.in_line {
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
        let mut lines = Vec::new();
        lines.extend(old[..same_start].iter().map(|line| format!("  {line}")));
        let removed = &old[same_start..old.len() - same_end];
        lines.extend(removed.iter().map(|line| self.paint.paint(Colour::Red, &format!("- {line}"))));
        let added = &new[same_start..new.len() - same_end];
        lines.extend(added.iter().map(|line| self.paint.paint(Colour::Green, &format!("+ {line}"))));
        lines.extend(old[old.len() - same_end..].iter().map(|line| format!("  {line}")));
        self.labelled(Colour::Grey, "", &lines.join("\n"));
    }

    /// Says what was checked; what does not hold ends the demo.
    pub(super) fn check(&mut self, what: &str, holds: bool) -> Result<()> {
        self.end_line();
        if holds {
            self.checks += 1;
            self.line(&format!("{} {what}", self.paint.paint(Colour::Green, "        ✓")));
        } else {
            self.line(&format!("{} {what}", self.paint.paint(Colour::Red, "        ✗")));
        }
        ensure!(holds, "the demo did not come out as scripted: {what}");
        Ok(())
    }

    pub(super) fn closing(&mut self) {
        self.line("");
        let done = format!("{} checks passed. Point your editor at `attache acp` to use it.", self.checks);
        self.line(&self.paint.paint(Colour::Bold, &done));
    }

    fn line(&mut self, text: &str) {
        self.raw(&format!("{text}\n"));
    }

    fn raw(&mut self, text: &str) {
        // A reader that has gone sees nothing more; the checks still count.
        drop(answer::write_painted(text));
    }
}
