//! Where the session database is: a path, or `sqlite:PATH`. Touches no file.

use std::path::{Path, PathBuf};

/// `directory` is the base of a relative path; `None` means the working directory.
pub(super) fn parse(text: &str, directory: Option<&Path>) -> Result<PathBuf, String> {
    let path = match scheme(text) {
        Some("sqlite") => {
            let rest = &text["sqlite:".len()..];
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.contains('?') {
                return Err("parameters (`?`) of a sqlite: address are not supported".to_owned());
            }
            path
        }
        Some(other) => {
            return Err(format!(
                "this version keeps sessions in SQLite only: give a path or sqlite:PATH, not `{other}:`"
            ));
        }
        None => text,
    };
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    if path == ":memory:" {
        return Err("a database in memory would lose every session; give a path".to_owned());
    }
    if path.contains('\0') {
        return Err("a path can't hold a null character".to_owned());
    }
    let path = directory.map_or_else(|| PathBuf::from(path), |directory| directory.join(path));
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The scheme of an address. A single letter is no scheme, nor is a name with a slash before the colon.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let mut characters = scheme.chars();
    let starts_well = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
    let goes_on = characters.all(|next| next.is_ascii_alphanumeric() || "+-.".contains(next));
    (scheme.len() > 1 && starts_well && goes_on).then_some(scheme)
}
