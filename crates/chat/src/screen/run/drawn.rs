//! Draws the terminal once a frame, for the size that it has then.

use std::time::Instant;

use super::{ChatFailure, EventLoop};
use crate::screen::terminal::ScreenStyle;

impl EventLoop<'_> {
    /// The terminal may have another size before it says so: what is drawn for the old one would stay.
    pub(super) fn resize(&mut self) -> Result<(), ChatFailure> {
        let size = self.terminal.size()?;
        if size != self.size {
            self.size = size;
            let cleared = self.painter.resized(size.0.into());
            self.terminal.write(&cleared)?;
            self.conversation.resize(size.0, size.1);
        }
        Ok(())
    }

    pub(super) fn draw(&mut self) -> Result<(), ChatFailure> {
        if self.start.style == ScreenStyle::Lines {
            return self.print();
        }
        self.resize()?;
        let view = self.conversation.view();
        let finished = self.conversation.take_finished();
        let drawings = self.conversation.take_drawings();
        let mut out = self.painter.frame_with(&finished, &drawings, &view);
        let title = self.conversation.title();
        if title != self.title {
            out.push_str(&format!("\x1b]2;{title}\x07"));
            self.title = title;
        }
        if !out.is_empty() {
            self.terminal.write(&out)?;
        }
        self.drawn = Instant::now();
        Ok(())
    }

    /// Whatever was done to the terminal meanwhile: it is ours again.
    pub(super) fn come_back(&mut self) -> Result<(), ChatFailure> {
        self.terminal.begin()?;
        self.size = self.terminal.size()?;
        self.conversation.resize(self.size.0, self.size.1);
        let cleared = self.painter.begin_anew();
        self.terminal.write(&cleared)?;
        self.title.clear();
        Ok(())
    }
}
