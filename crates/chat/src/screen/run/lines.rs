//! The same conversation without a drawn screen: lines are read as the terminal gives them, and each line is
//! written once, when it is final. What a screen reader reads is what a pipe would get.

use std::io::BufRead;

use crossterm::event::EventStream;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::{ChatFailure, EventLoop, Wakeup};
use crate::screen::terminal::ScreenStyle;

/// Where what is typed comes from.
pub(super) enum Typing {
    Keys(EventStream),
    Lines(mpsc::UnboundedReceiver<String>),
}

impl Typing {
    pub(super) fn of(style: ScreenStyle) -> Self {
        match style {
            ScreenStyle::Drawn => Self::Keys(EventStream::new()),
            ScreenStyle::Lines => Self::Lines(lines()),
        }
    }

    pub(super) async fn next(&mut self) -> Wakeup {
        match self {
            Self::Keys(keys) => Wakeup::Key(keys.next().await),
            Self::Lines(lines) => Wakeup::Line(lines.recv().await),
        }
    }
}

/// A thread of its own, since a read of a terminal can't be given up. It ends with the input or the process.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What was written last.
#[derive(Debug, Default)]
pub(super) struct LinesPrinter {
    dialog: Vec<String>,
    hint: Option<String>,
    invitation: Invitation,
}

/// Whether the last output is the input prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Invitation {
    Stands,
    #[default]
    Due,
}

impl LinesPrinter {
    /// The line ended the invitation, and an answer that changes nothing is asked for again.
    pub(super) fn was_typed(&mut self) {
        self.invitation = Invitation::Due;
        self.dialog.clear();
        self.hint = None;
    }
}

impl EventLoop<'_> {
    pub(super) fn print(&mut self) -> Result<(), ChatFailure> {
        let mut text = String::new();
        let mut add = |lines: &[String]| lines.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
        let finished = self.conversation.take_finished();
        // Their names stand among the lines.
        drop(self.conversation.take_drawings());
        add(&finished.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>());
        let hint = self.conversation.hint_shown();
        if hint.is_some() && hint != self.lines.hint {
            add(&hint.clone().into_iter().collect::<Vec<_>>());
        }
        self.lines.hint = hint;
        let dialog = self.conversation.dialog_lines();
        if !dialog.is_empty() && dialog != self.lines.dialog {
            add(&dialog);
        }
        self.lines.dialog = dialog;
        let waits = self.conversation.waits_for_a_line();
        if !text.is_empty() && self.lines.invitation == Invitation::Stands {
            text.insert_str(0, "\r\n");
            self.lines.invitation = Invitation::Due;
        }
        if waits && self.lines.invitation == Invitation::Due {
            text.push_str("> ");
            self.lines.invitation = Invitation::Stands;
        }
        if !text.is_empty() {
            self.terminal.write(&text)?;
        }
        self.drawn = std::time::Instant::now();
        Ok(())
    }
}
