//! What a command answers on stdout. The only way there for everything that is not the protocol.

use std::io::{self, BufWriter, Write};

/// Writes the answer; a reader that has seen enough (`| head`) is no error.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    forgive(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Stdout for an answer that is too long to be held.
pub(crate) struct Stdout(BufWriter<io::Stdout>);

impl Stdout {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout()))
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A closed pipe ends the answer, not the program.
pub(crate) fn forgive(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
