//! The terminal itself: taken when the chat begins, given back as it was however it ends. Written to through
//! its own device, so that no other output of the process can mix with it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// The terminal is ours: what a panic or a signal has to undo.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The title is kept; pasted text comes in brackets, so that it can't press keys; the terminal says whether
/// somebody looks at it.
const BEGIN: &str = "\x1b[22;2t\x1b[?2004h\x1b[?1004h";
/// A frame that was cut ends; focus, pastes, cursor, styles and title are as they were.
const END: &str = "\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[0m\x1b[23;2t";
/// Out of a whole page.
const END_OF_A_PAGE: &str = "\x1b[?1049l";

/// Why there is no chat here.
#[derive(Debug, thiserror::Error)]
pub enum TerminalFailure {
    #[error("chat needs a terminal; for scripts and pipes there is `attache chat -p \"…\"`")]
    None,
    #[error("the terminal can't be used: {0}")]
    Io(#[from] io::Error),
}

/// How a terminal is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenStyle {
    /// Key by key, and what is live is drawn again and again.
    Drawn,
    /// Line by line, each written once: for screen readers, and for terminals that can do no more.
    Lines,
}

/// The terminal while it is ours. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct ScreenTerminal {
    device: File,
    style: ScreenStyle,
}

impl ScreenTerminal {
    pub(crate) fn take(style: ScreenStyle) -> Result<Self, TerminalFailure> {
        if !io::stdin().is_terminal() {
            return Err(TerminalFailure::None);
        }
        let device = OpenOptions::new().write(true).open("/dev/tty").map_err(|_| TerminalFailure::None)?;
        undo_on_panic();
        let mut terminal = Self { device, style };
        terminal.begin()?;
        Ok(terminal)
    }

    /// Again, after another program had it.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.style == ScreenStyle::Lines {
            return Ok(());
        }
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Release);
        self.write(BEGIN)
    }

    /// To the shell or an editor, until `begin`.
    pub(crate) fn lend(&mut self) -> io::Result<()> {
        if self.style == ScreenStyle::Lines {
            return Ok(());
        }
        self.write(END)?;
        TAKEN.store(false, Ordering::Release);
        disable_raw_mode()
    }

    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.device.write_all(text.as_bytes())?;
        self.device.flush()
    }

    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(&self.device)?;
        // Some pseudo-terminals have none.
        match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => Ok((80, 24)),
            size => Ok(size),
        }
    }
}

impl Drop for ScreenTerminal {
    fn drop(&mut self) {
        if let Err(error) = self.lend() {
            tracing::debug!(%error, "the terminal was gone before it could be given back");
        }
    }
}

/// A message of a panic is read in a terminal that is in order again.
fn undo_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if TAKEN.swap(false, Ordering::AcqRel) {
                let device = OpenOptions::new().write(true).open("/dev/tty");
                drop(
                    device.and_then(|mut device| {
                        device.write_all(format!("{END_OF_A_PAGE}{END}\r\n").as_bytes())
                    }),
                );
                drop(disable_raw_mode());
            }
            before(panic);
        }));
    });
}
