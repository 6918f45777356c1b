//! Reads a key: from a person without showing it, or one line from a pipe.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};
use attache_models::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::answer::Interrupted;
use crate::limits::MAX_KEY_BYTES;

/// `provider` is the name to show.
pub(super) async fn read(provider: &str) -> Result<Secret> {
    let stdin = io::stdin();
    let silence = match stdin.is_terminal() {
        true => {
            // Before the question, so that what the user types ahead stays hidden, too.
            let silence = Silence::begin()?;
            write!(io::stderr(), "Key for {provider}: ")?;
            Some(silence)
        }
        false => None,
    };
    // After an interrupt the terminal must echo again, so the process goes on to its normal end.
    let line = tokio::select! {
        read = tokio::task::spawn_blocking(one_line) => read.context("reading the key")?,
        _ = tokio::signal::ctrl_c() => Err(io::ErrorKind::Interrupted.into()),
    };
    if let Some(silence) = silence {
        drop(silence);
        writeln!(io::stderr())?;
    }
    match line {
        Ok(line) => key(&line, provider),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(Interrupted.into()),
        Err(error) => Err(error).context("the key could not be read"),
    }
}

fn one_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    io::stdin().lock().take(MAX_KEY_BYTES + 1).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Says what is wrong without repeating any of the key.
fn key(line: &[u8], provider: &str) -> Result<Secret> {
    if line.len() as u64 > MAX_KEY_BYTES {
        bail!("that is too long for a key; nothing was stored");
    }
    let Ok(text) = std::str::from_utf8(line) else { bail!("that is not text; nothing was stored") };
    let Some(secret) = Secret::new(text) else {
        bail!(
            "no key was given; paste it when asked, or pipe it in: echo KEY | attache auth login {provider}"
        )
    };
    // A key is sent in an HTTP header.
    if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "a key has no blanks and only plain ASCII characters; did you copy more than the key? Nothing was stored"
        );
    }
    Ok(secret)
}

/// Hides typed characters while it lives.
struct Silence {
    before: Termios,
}

impl Silence {
    fn begin() -> Result<Self> {
        let before = tcgetattr(io::stdin()).context("the terminal")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent).context("the terminal")?;
        Ok(Self { before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_without_blanks() {
        assert_eq!(key(b"  sk-1234\r\n", "openai").unwrap().expose(), "sk-1234");
        for bad in
            [&b"\n"[..], b"", b"sk 12", b"sk-\x1b[A", "schl\u{fc}ssel".as_bytes(), b"\xff", &[b'x'; 20_000]]
        {
            let message = key(bad, "openai").unwrap_err().to_string();
            assert!(!message.contains("sk-") && !message.contains("schl"), "{message}");
        }
    }
}
