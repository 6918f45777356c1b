//! Cuts what a model gets of a result to whole lines, and keeps the whole in a file.

use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use attache_sandbox::scratch_file;

use crate::limits::{RESULT_BYTES, RESULT_HEAD_BYTES};

/// The part of a text that a model gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutText {
    pub(crate) text: String,
    /// Where the whole is, if this is not all.
    pub(crate) whole: Option<PathBuf>,
}

/// The text itself where it fits, else its beginning and its end, with the whole in a file of `scratch`.
pub(crate) async fn cut(text: String, room: usize, scratch: &Path, file: &str) -> CutText {
    let limit = room.clamp(256, RESULT_BYTES);
    if text.len() <= limit {
        return CutText { text, whole: None };
    }
    let (scratch, file, bytes) = (scratch.to_owned(), file.to_owned(), text.clone().into_bytes());
    let saved = tokio::task::spawn_blocking(move || save(&scratch, &file, &bytes)).await;
    let (whole, place) = match saved.map_err(io::Error::other).flatten() {
        Ok(path) => (Some(path.clone()), format!("; the whole is in {}", path.display())),
        Err(error) => (None, format!("; the whole could not be kept: {error}")),
    };
    let room = limit.saturating_sub(place.len() + 64);
    let head_room = RESULT_HEAD_BYTES.min(room / 2);
    let head = text.floor_char_boundary(head_room);
    let head = text[..head].rfind('\n').map_or(head, |at| at + 1);
    let tail = text.ceil_char_boundary(text.len() - (room - head_room));
    let tail = text[tail..].find('\n').map_or(tail, |at| tail + at + 1);
    let note = format!("[… {} bytes left out{place} …]", tail - head);
    let newline = if text[..head].ends_with('\n') || head == 0 { "" } else { "\n" };
    CutText { text: format!("{}{newline}{note}\n{}", &text[..head], &text[tail..]), whole }
}

/// Writes a new file of a scratch directory.
pub(crate) fn save(scratch: &Path, file: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    for number in 0..1_000 {
        let (stem, end) = file.rsplit_once('.').unwrap_or((file, "txt"));
        let name = if number == 0 { file.to_owned() } else { format!("{stem}-{number}.{end}") };
        let path = scratch.join(name);
        match scratch_file::create(&path) {
            Ok(mut opened) => return opened.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many files of this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_fits_stays_and_what_does_not_is_kept_whole() {
        let place = tempfile::tempdir().unwrap();
        let short = cut("a\nb".to_owned(), 10_000, place.path(), "r.txt").await;
        assert_eq!(short, CutText { text: "a\nb".to_owned(), whole: None });
        let text: String = (0..10_000).map(|number| format!("line {number} ü\n")).collect();
        for file in ["r.txt", "r-1.txt"] {
            let cut = cut(text.clone(), 4_000, place.path(), "r.txt").await;
            assert!(cut.text.len() <= 4_000, "{}", cut.text.len());
            assert!(
                cut.text.starts_with("line 0 ü\n") && cut.text.ends_with("line 9999 ü\n"),
                "{}",
                cut.text
            );
            assert!(cut.text.contains(" bytes left out; the whole is in /"), "{}", cut.text);
            assert_eq!(cut.whole.as_deref(), Some(place.path().join(file).as_path()));
            assert_eq!(std::fs::read_to_string(cut.whole.unwrap()).unwrap(), text);
        }
    }
}
