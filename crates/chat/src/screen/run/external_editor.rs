//! A text in the user's own editor, and back.

use std::io::{self, Write};

use tokio::process::Command;

use crate::screen::limits::EDITED_BYTES;

/// `$VISUAL`, else `$EDITOR`, else vi; each may have arguments.
pub(super) async fn edit(text: String) -> io::Result<String> {
    let name = |variable: &str| std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
    let editor = name("VISUAL").or_else(|| name("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut file = tempfile::Builder::new().prefix("prompt-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // Not by `PATH`, which may lead into a project.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .status()
        .await?;
    if !status.success() {
        return Err(io::Error::other(format!("`{editor}` ended with {status}")));
    }
    let size = std::fs::metadata(file.path())?.len();
    if size > EDITED_BYTES {
        return Err(io::Error::other(format!("the text is too large: {size} bytes")));
    }
    // Some editors put a new file in the place of the old one.
    let edited = std::fs::read_to_string(file.path())?;
    Ok(edited.trim_end_matches('\n').to_owned())
}
