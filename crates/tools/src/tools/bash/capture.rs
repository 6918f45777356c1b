//! Captures a command's output twice: unchanged, for people, and folded, for the model. Keeps beginning and end
//! in memory, and the whole folded text on disk if it is longer. All of these are bounded.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use attache_sandbox::scratch_file;

use super::fold::OutputFold;
use crate::bounded::{Bounded, Ends};
use crate::limits::{
    LIVE_OUTPUT_BYTES, OUTPUT_BYTES, OUTPUT_HEAD_BYTES, OUTPUT_NOTES_BYTES, SHOWN_OUTPUT_BYTES, SPILL_BYTES,
};

/// The part of a result that is output.
pub(super) const BODY_BYTES: usize = OUTPUT_BYTES - OUTPUT_NOTES_BYTES;

#[derive(Debug)]
pub(super) struct Capture {
    printed: HeadAndTail,
    fold: OutputFold,
    folded: HeadAndTail,
    spill_path: PathBuf,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    /// Everything is in memory.
    NotNeeded,
    Open {
        file: File,
        written: u64,
    },
    /// Writing failed; reported once in the log, and the answer names no file.
    Failed,
}

impl Capture {
    /// The file at `spill_path` is created when memory can't hold everything any more.
    pub(super) fn new(spill_path: PathBuf) -> Self {
        Self {
            printed: HeadAndTail::new(SHOWN_OUTPUT_BYTES / 2, SHOWN_OUTPUT_BYTES / 2),
            fold: OutputFold::default(),
            // Together larger than a body, so that they hold everything until it has to go to disk.
            folded: HeadAndTail::new(OUTPUT_HEAD_BYTES, BODY_BYTES),
            spill_path,
            spill: Spill::NotNeeded,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.printed.push(bytes);
        let mut folded = Vec::new();
        self.fold.push(bytes, &mut folded);
        self.keep(&folded);
    }

    /// Finalises lines that could still have been redrawn. Call this before telling the model anything.
    pub(super) fn settle(&mut self) {
        let mut folded = Vec::new();
        self.fold.settle(&mut folded);
        self.keep(&folded);
    }

    fn keep(&mut self, folded: &[u8]) {
        if self.folded.total + folded.len() as u64 > BODY_BYTES as u64 {
            self.spill(folded);
        }
        self.folded.push(folded);
    }

    /// The text for the model: whole lines, and in the middle how many are missing and where they are.
    pub(super) fn for_model(&self) -> Bounded {
        let rest = match self.spilled() {
            None => String::new(),
            Some((path, Extent::All)) => format!("; the whole output is in {}", path.display()),
            Some((path, Extent::Beginning(bytes))) => {
                format!("; the first {bytes} bytes are in {}", path.display())
            }
        };
        Bounded::lines(&self.folded.ends(), BODY_BYTES, OUTPUT_HEAD_BYTES, &rest)
    }

    /// The text for people at the end.
    pub(super) fn for_people(&self) -> Bounded {
        let Ends { head, tail, total, .. } = self.printed.ends();
        Bounded::from_ends(head, tail, total, SHOWN_OUTPUT_BYTES)
    }

    /// The last part, for showing a running command.
    pub(super) fn latest(&self) -> String {
        self.printed.latest(LIVE_OUTPUT_BYTES)
    }

    /// The file with the folded output, if there is one, and whether it is complete.
    pub(super) fn spilled(&self) -> Option<(&Path, Extent)> {
        match &self.spill {
            Spill::NotNeeded | Spill::Failed => None,
            Spill::Open { written, .. } if *written < self.folded.total => {
                Some((&self.spill_path, Extent::Beginning(*written)))
            }
            Spill::Open { .. } => Some((&self.spill_path, Extent::All)),
        }
    }

    fn spill(&mut self, bytes: &[u8]) {
        if let Spill::NotNeeded = self.spill {
            self.spill = match self.open_spill() {
                Ok(file) => Spill::Open { file, written: self.folded.total },
                Err(error) => failed(&self.spill_path, &error),
            };
        }
        if let Spill::Open { file, written } = &mut self.spill {
            let room = usize::try_from(SPILL_BYTES.saturating_sub(*written)).unwrap_or(usize::MAX);
            let taken = &bytes[..bytes.len().min(room)];
            match file.write_all(taken) {
                Ok(()) => *written += taken.len() as u64,
                Err(error) => self.spill = failed(&self.spill_path, &error),
            }
        }
    }

    /// A file with everything so far: head and tail are still complete when memory overflows for the first
    /// time.
    fn open_spill(&self) -> io::Result<File> {
        if let Some(directory) = self.spill_path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut file = scratch_file::create(&self.spill_path)?;
        file.write_all(&self.folded.head)?;
        file.write_all(&self.folded.tail)?;
        Ok(file)
    }
}

/// The beginning and the end of a stream.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    head_bytes: usize,
    /// The last `tail_bytes` after the head, plus as many earlier bytes that are not dropped yet.
    tail: Vec<u8>,
    tail_bytes: usize,
    total: u64,
    lines: u64,
}

impl HeadAndTail {
    pub(super) fn new(head_bytes: usize, tail_bytes: usize) -> Self {
        Self { head: Vec::new(), head_bytes, tail: Vec::new(), tail_bytes, total: 0, lines: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Dropping a whole tail at a time moves each byte only once.
        if self.tail.len() > 2 * self.tail_bytes {
            self.tail.drain(..self.tail.len() - self.tail_bytes);
        }
    }

    pub(super) fn ends(&self) -> Ends<'_> {
        let tail = &self.tail[self.tail.len().saturating_sub(self.tail_bytes)..];
        Ends { head: &self.head, tail, total: self.total, lines: self.lines }
    }

    fn latest(&self, wanted: usize) -> String {
        let bytes = if self.tail.len() >= wanted {
            self.tail[self.tail.len() - wanted..].to_vec()
        } else {
            let from_head = (wanted - self.tail.len()).min(self.head.len());
            [&self.head[self.head.len() - from_head..], &self.tail].concat()
        };
        let cut = (bytes.len() as u64) < self.total;
        let start =
            if cut { bytes.iter().take_while(|byte| matches!(byte, 0x80..=0xbf)).count().min(3) } else { 0 };
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }
}

/// How much of the output a file contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    Beginning(u64),
}

fn failed(path: &Path, error: &io::Error) -> Spill {
    tracing::warn!(path = %path.display(), %error, "the output of a command could not be kept");
    Spill::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_whole_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(directory.path().join("scratch/x"));
        for _ in 0..BODY_BYTES / 10 {
            capture.push(b"123456789\n");
        }
        capture.settle();
        assert_eq!(capture.for_model().text().len(), BODY_BYTES / 10 * 10);
        assert!(!capture.for_model().is_cut());
        assert_eq!(capture.spilled(), None);
        assert!(!directory.path().join("scratch").exists());
    }

    #[test]
    fn a_disk_that_refuses_costs_the_file_only() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("scratch"), "in the way").unwrap();
        let mut capture = Capture::new(directory.path().join("scratch/x"));
        capture.push(&vec![b'a'; 3 * OUTPUT_BYTES]);
        capture.settle();
        assert!(capture.for_model().is_cut());
        assert_eq!(capture.spilled(), None);
    }

    #[test]
    fn the_file_is_capped() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(directory.path().join("x"));
        let megabyte = vec![b'a'; 1024 * 1024];
        for _ in 0..70 {
            capture.push(&megabyte);
        }
        capture.settle();
        assert_eq!(capture.spilled().unwrap().1, Extent::Beginning(SPILL_BYTES));
        assert_eq!(directory.path().join("x").metadata().unwrap().len(), SPILL_BYTES);
        assert!(capture.folded.tail.len() <= 2 * BODY_BYTES + megabyte.len());
    }

    #[test]
    fn people_see_the_redraws_and_the_model_what_is_left_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(directory.path().join("x"));
        for percent in 0..=100 {
            capture.push(format!("\r\x1b[32m{percent}%\x1b[0m").as_bytes());
        }
        capture.settle();
        assert_eq!(capture.for_model().text(), "100%");
        assert!(capture.for_people().text().starts_with("\r\x1b[32m0%"));
        assert!(capture.latest().ends_with("\r\x1b[32m100%\x1b[0m"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn beginning_and_end_and_file_are_what_was_printed(
            sizes in prop::collection::vec((1usize..8_000, 1usize..200), 1..12),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut capture = Capture::new(directory.path().join("x"));
            let mut all = Vec::new();
            for (index, (size, line)) in sizes.iter().enumerate() {
                let letter = |at: usize| if at.is_multiple_of(*line) { b'\n' } else { b'a' + ((at + index) % 26) as u8 };
                let bytes: Vec<u8> = (0..*size).map(letter).collect();
                capture.push(&bytes);
                all.extend(bytes);
            }
            capture.settle();
            let all = String::from_utf8(all).unwrap();
            let bounded = capture.for_model();
            prop_assert!(bounded.text().len() <= BODY_BYTES);
            prop_assert_eq!(bounded.is_cut(), all.len() > BODY_BYTES);
            prop_assert!(all.ends_with(&capture.latest()));
            if bounded.is_cut() {
                let (head, rest) = bounded.text().split_once("[… ").unwrap();
                let (note, tail) = rest.split_once(" …]\n").unwrap();
                prop_assert!(all.starts_with(head.trim_end_matches('\n')) && all.ends_with(tail));
                prop_assert!(tail.len() > 2 * head.len(), "more of the end");
                prop_assert!(note.ends_with(&directory.path().join("x").display().to_string()), "{note}");
                prop_assert_eq!(std::fs::read_to_string(directory.path().join("x")).unwrap(), all);
            } else {
                prop_assert_eq!(bounded.text(), all);
            }
        }
    }
}
