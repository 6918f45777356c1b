//! What a command prints: beginning and end in memory, the whole on disk once it is more. Bounded in both.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::bounded::Bounded;
use crate::limits::{LIVE_OUTPUT_BYTES, OUTPUT_BYTES, SPILL_BYTES};

const END_BYTES: usize = OUTPUT_BYTES / 2;

#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    /// The last `END_BYTES` after the head, and up to as many before them that are not dropped yet.
    tail: Vec<u8>,
    total: u64,
    spill_path: PathBuf,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    /// All of it is in memory.
    NotNeeded,
    Open {
        file: File,
        written: u64,
    },
    /// The disk did not take it; said once in the log, and the answer names no file.
    Failed,
}

impl Capture {
    /// `spill_path` is made when memory no longer holds everything.
    pub(super) fn new(spill_path: PathBuf) -> Self {
        Self { head: Vec::new(), tail: Vec::new(), total: 0, spill_path, spill: Spill::NotNeeded }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let fits = self.total <= OUTPUT_BYTES as u64;
        if !fits {
            self.spill(bytes);
        }
        let (head, rest) = bytes.split_at(bytes.len().min(END_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Dropping in steps of a whole end moves each byte once.
        if self.tail.len() > 2 * END_BYTES {
            self.tail.drain(..self.tail.len() - END_BYTES);
        }
    }

    /// What the model gets.
    pub(super) fn bounded(&self) -> Bounded {
        let tail = &self.tail[self.tail.len().saturating_sub(END_BYTES)..];
        Bounded::from_ends(&self.head, tail, self.total, OUTPUT_BYTES)
    }

    /// The last of it, for a view of the running command.
    pub(super) fn latest(&self) -> String {
        let bytes = if self.tail.len() >= LIVE_OUTPUT_BYTES {
            self.tail[self.tail.len() - LIVE_OUTPUT_BYTES..].to_vec()
        } else {
            let from_head = (LIVE_OUTPUT_BYTES - self.tail.len()).min(self.head.len());
            [&self.head[self.head.len() - from_head..], &self.tail].concat()
        };
        let cut = (bytes.len() as u64) < self.total;
        let start =
            if cut { bytes.iter().take_while(|byte| matches!(byte, 0x80..=0xbf)).count().min(3) } else { 0 };
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// The file with the output, if it has become one, and whether it holds all of it.
    pub(super) fn spilled(&self) -> Option<(&Path, Kept)> {
        match &self.spill {
            Spill::NotNeeded | Spill::Failed => None,
            Spill::Open { written, .. } if *written < self.total => {
                Some((&self.spill_path, Kept::Beginning(*written)))
            }
            Spill::Open { .. } => Some((&self.spill_path, Kept::All)),
        }
    }

    fn spill(&mut self, bytes: &[u8]) {
        if let Spill::NotNeeded = self.spill {
            self.spill = match self.open_spill() {
                Ok(file) => Spill::Open { file, written: (self.head.len() + self.tail.len()) as u64 },
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

    /// The file with everything so far: head and tail are still whole when memory overflows for the first time.
    fn open_spill(&self) -> io::Result<File> {
        if let Some(directory) = self.spill_path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.spill_path)?;
        file.write_all(&self.head)?;
        file.write_all(&self.tail)?;
        Ok(file)
    }
}

/// How much of the output a spill file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
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
        for _ in 0..OUTPUT_BYTES / 10 {
            capture.push(b"123456789\n");
        }
        assert_eq!(capture.bounded().text().len(), OUTPUT_BYTES);
        assert!(!capture.bounded().is_cut());
        assert_eq!(capture.spilled(), None);
        assert!(!directory.path().join("scratch").exists());
    }

    #[test]
    fn a_disk_that_refuses_costs_the_file_only() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("scratch"), "in the way").unwrap();
        let mut capture = Capture::new(directory.path().join("scratch/x"));
        capture.push(&vec![b'a'; 3 * OUTPUT_BYTES]);
        assert!(capture.bounded().is_cut());
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
        assert_eq!(capture.spilled().unwrap().1, Kept::Beginning(SPILL_BYTES));
        assert_eq!(directory.path().join("x").metadata().unwrap().len(), SPILL_BYTES);
        assert!(capture.tail.len() <= 2 * END_BYTES + megabyte.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn beginning_and_end_and_file_are_what_was_printed(sizes in prop::collection::vec(1usize..80_000, 1..12)) {
            let directory = tempfile::tempdir().unwrap();
            let mut capture = Capture::new(directory.path().join("x"));
            let mut all = Vec::new();
            for (index, size) in sizes.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|at| b'a' + ((at + index) % 26) as u8).collect();
                capture.push(&bytes);
                all.extend(bytes);
            }
            let all = String::from_utf8(all).unwrap();
            let bounded = capture.bounded();
            prop_assert!(bounded.text().len() <= OUTPUT_BYTES);
            prop_assert_eq!(bounded.is_cut(), all.len() > OUTPUT_BYTES);
            prop_assert!(all.starts_with(&bounded.text()[..bounded.text().len().min(90_000)]));
            prop_assert!(all.ends_with(&bounded.text()[bounded.text().len().saturating_sub(90_000)..]));
            prop_assert!(all.ends_with(&capture.latest()));
            if bounded.is_cut() {
                prop_assert_eq!(std::fs::read_to_string(directory.path().join("x")).unwrap(), all);
            }
        }
    }
}
