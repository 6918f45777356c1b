//! What a command answers on stdout. The only way there for everything that is not the protocol.

mod typed;
mod writer;

use std::io::{self, BufRead, BufWriter, IsTerminal, Write};

use anyhow::Context;
use attache_core::legible::legible;

pub(crate) use typed::{Interrupted, typed_line};
pub(crate) use writer::{AnswerKind, AnswerWriter};

/// Writes the answer, without anything in it that a terminal would obey: names and texts of others are in it.
pub(crate) fn write(text: &str) -> io::Result<()> {
    write_painted(&legible(text))
}

/// The same for who paints. A reader that has seen enough (`| head`) is no error.
pub(crate) fn write_painted(text: &str) -> io::Result<()> {
    let mut stdout = AnswerWriter::to(io::stdout().lock(), AnswerKind::Painted);
    forgive(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// A remark beside the answer, for the person who reads along.
pub(crate) fn note(text: &str) {
    eprintln!("{}", legible(text));
}

/// A remark that nobody should overlook.
pub(crate) fn alarm(text: &str) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stderr().is_terminal() && !plain {
        true => eprintln!("\x1b[31m{}\x1b[0m", legible(text)),
        false => note(text),
    }
}

/// For an answer that is too long to be held.
pub(crate) fn stream() -> impl Write + Send {
    BufWriter::new(AnswerWriter::to(io::stdout(), AnswerKind::Text))
}

/// Whether a person sees it.
pub(crate) fn is_seen() -> bool {
    io::stdout().is_terminal()
}

/// Asks the person who types. Anything but a clear yes is a no; so is an input without a person.
pub(crate) fn is_agreed(question: &str) -> anyhow::Result<bool> {
    if !is_typed() {
        return Ok(false);
    }
    write!(io::stderr(), "{} [y/N] ", legible(question))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("the answer could not be read")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Whether a person types what the program reads.
pub(crate) fn is_typed() -> bool {
    io::stdin().is_terminal()
}

/// The width of the terminal that shows the answer; `None` where there is none.
pub(crate) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && is_seen()).then_some(usize::from(size.ws_col))
}

/// A closed pipe ends the answer, not the program. Anything else is told as what it is.
pub(crate) fn forgive(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("standard output could not be written: {error}")))
        }
        Ok(()) => Ok(()),
    }
}
