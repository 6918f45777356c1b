//! The output of a background command: all of it in a file, beginning and end of the new part in memory.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use attache_sandbox::scratch_file;

use crate::bounded::Bounded;
use crate::limits::{OUTPUT_HEAD_BYTES, SPILL_BYTES};
use crate::tools::bash::capture::{BODY_BYTES, HeadAndTail};
use crate::tools::bash::fold::OutputFold;

#[derive(Debug)]
pub(super) struct Log {
    fold: OutputFold,
    path: PathBuf,
    /// `None` when it is full or writing failed: reported once in this process's log.
    file: Option<File>,
    written: u64,
    unread: HeadAndTail,
    /// Whether there was output since the last look.
    has_news: bool,
}

impl Log {
    pub(super) fn create(scratch: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
        // Another process of attache may have used this name in this session.
        let path = scratch.join(format!("{name}-{}.txt", std::process::id()));
        let file = scratch_file::create(&path)?;
        Ok(Self {
            fold: OutputFold::default(),
            path,
            file: Some(file),
            written: 0,
            unread: empty(),
            has_news: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.has_news = true;
        let mut folded = Vec::new();
        self.fold.push(bytes, &mut folded);
        self.keep(&folded);
    }

    /// The output since the last time.
    pub(super) fn news(&mut self) -> Bounded {
        self.has_news = false;
        let mut folded = Vec::new();
        self.fold.settle(&mut folded);
        self.keep(&folded);
        let rest = format!("; all of it is in {}", self.path.display());
        let unread = std::mem::replace(&mut self.unread, empty());
        Bounded::lines(&unread.ends(), BODY_BYTES, OUTPUT_HEAD_BYTES, &rest)
    }

    fn keep(&mut self, folded: &[u8]) {
        self.unread.push(folded);
        let room = usize::try_from(SPILL_BYTES.saturating_sub(self.written)).unwrap_or(usize::MAX);
        let taken = &folded[..folded.len().min(room)];
        let Some(file) = &mut self.file else { return };
        match file.write_all(taken) {
            Ok(()) => self.written += taken.len() as u64,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the output of a command could not be kept");
                self.file = None;
            }
        }
    }
}

fn empty() -> HeadAndTail {
    HeadAndTail::new(OUTPUT_HEAD_BYTES, BODY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_gives_what_is_new_and_the_file_has_all_of_it() {
        let place = tempfile::tempdir().unwrap();
        let mut log = Log::create(place.path(), "bg_1").unwrap();
        log.push(b"one\n");
        assert_eq!(log.news().text(), "one\n");
        assert_eq!(log.news().text(), "");
        log.push(b"1%\r2%\r3%");
        assert_eq!(log.news().text(), "3%");
        log.push(&b"line\n".repeat(10_000));
        let news = log.news();
        assert!(news.is_cut() && news.text().len() <= BODY_BYTES);
        assert!(news.text().contains(&format!("; all of it is in {}", log.path().display())));
        let all = std::fs::read_to_string(log.path()).unwrap();
        assert_eq!(all, format!("one\n3%{}", "line\n".repeat(10_000)));
    }
}
