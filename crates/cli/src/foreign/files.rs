//! Files of other agents: found below a directory, read line by line or as one object, with limits on depth and
//! size.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::talk::TalkError;
use crate::limits::{FOREIGN_DEPTH, FOREIGN_FILE_BYTES, FOREIGN_HEAD_BYTES, FOREIGN_LINE_BYTES};

/// The files below a directory, or the file itself, that `fits` accepts. Does not follow links.
pub(super) fn below(place: &Path, fits: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(place, FOREIGN_DEPTH, fits, &mut found);
    found.sort();
    found
}

fn collect(place: &Path, depth: usize, fits: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    if place.is_file() {
        if fits(place) {
            found.push(place.to_owned());
        }
        return;
    }
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(&entry.path(), depth - 1, fits, found),
            Ok(kind) if kind.is_file() && fits(&entry.path()) => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
}

/// When the file last changed.
pub(super) fn changed_at(path: &Path) -> i64 {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

/// How much of a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HowMuch {
    All,
    /// Only as much as a list needs.
    Head,
}

/// The objects of a file with one per line. The last line may be cut off because its program was killed.
pub(super) fn objects(path: &Path, how_much: HowMuch) -> Result<Vec<Value>, TalkError> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if size > FOREIGN_FILE_BYTES {
        return Err(TalkError::Form(format!("it is larger than {} MiB", FOREIGN_FILE_BYTES >> 20)));
    }
    let most = match how_much {
        HowMuch::All => FOREIGN_FILE_BYTES,
        HowMuch::Head => FOREIGN_HEAD_BYTES,
    };
    let mut input = BufReader::new(file.take(most));
    let (mut objects, mut text, mut line) = (Vec::new(), Vec::new(), 0);
    loop {
        text.clear();
        line += 1;
        let read = input.by_ref().take(FOREIGN_LINE_BYTES).read_until(b'\n', &mut text)?;
        if read == 0 {
            return Ok(objects);
        }
        let is_whole = text.ends_with(b"\n");
        if text.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(value) => objects.push(value),
            Err(_) if !is_whole && !objects.is_empty() => return Ok(objects),
            Err(error) => return Err(TalkError::Line { line, what: told(&error) }),
        }
    }
}

/// A file that holds one object.
pub(super) fn object(path: &Path) -> Result<Value, TalkError> {
    let mut text = Vec::new();
    File::open(path)?.take(FOREIGN_FILE_BYTES).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|error| TalkError::Line { line: error.line(), what: told(&error) })
}

fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("it is not JSON: {what}")
}
