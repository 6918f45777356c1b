//! Writes a command's answer to stdout. All code but the protocol writes there through this module.

mod typed;
mod writer;

use std::io::{self, BufRead, BufWriter, IsTerminal, Write};

use anyhow::Context;
use attache_core::legible::legible;

pub(crate) use typed::{Interrupted, typed_line};
pub(crate) use writer::{AnswerKind, AnswerWriter};

/// Writes the answer. Escapes everything that a terminal would obey, because names and texts of others are in
/// it.
pub(crate) fn write(text: &str) -> io::Result<()> {
    write_painted(&legible(text))
}

/// The same for text with our colours. A reader that has closed the pipe (`| head`) is no error.
pub(crate) fn write_painted(text: &str) -> io::Result<()> {
    let mut stdout = AnswerWriter::to(io::stdout().lock(), AnswerKind::Painted);
    forgive(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// A remark for the person at the terminal, beside the answer.
pub(crate) fn note(text: &str) {
    eprintln!("{}", legible(text));
}

/// A remark that must not be missed.
pub(crate) fn alarm(text: &str) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stderr().is_terminal() && !plain {
        true => eprintln!("\x1b[31m{}\x1b[0m", legible(text)),
        false => note(text),
    }
}

/// For an answer that is too long to hold in memory.
pub(crate) fn stream() -> impl Write + Send {
    BufWriter::new(AnswerWriter::to(io::stdout(), AnswerKind::Text))
}

/// Whether stdout is a terminal.
pub(crate) fn is_seen() -> bool {
    io::stdout().is_terminal()
}

/// Asks the person at the terminal. Anything but a clear yes means no, and so does an input without a person.
pub(crate) fn is_agreed(question: &str) -> anyhow::Result<bool> {
    if !is_typed() {
        return Ok(false);
    }
    write!(io::stderr(), "{} [y/N] ", legible(question))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("the answer could not be read")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Whether stdin is a terminal.
pub(crate) fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// The width of the terminal on stdout; `None` if there is none.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && is_seen()).then_some(usize::from(size.ws_col))
}

/// A closed pipe ends the answer without an error; any other error stays one.
pub(crate) fn forgive(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("standard output could not be written: {error}")))
        }
        Ok(()) => Ok(()),
    }
}
