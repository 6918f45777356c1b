//! Lines that a person types, and the interrupt that they press instead.

use std::io::{self, BufRead};

use anyhow::{Context, Result};

/// The person pressed Ctrl-C. The exit code is 130.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; nothing was stored")]
pub(crate) struct Interrupted;

/// `None` at the end of the input, and `Interrupted` as the error. A question that was asked before may have
/// taken the interrupt from the system, so nobody else would end the process.
pub(crate) async fn typed_line() -> Result<Option<String>> {
    let read = tokio::select! {
        read = tokio::task::spawn_blocking(one_line) => read.context("reading the answer")?,
        _ = tokio::signal::ctrl_c() => return Err(Interrupted.into()),
    };
    read.context("the answer could not be read")
}

fn one_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then_some(line))
}
