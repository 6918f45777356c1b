//! Archives in the ustar format, the same bytes from the same files: no owner, no time but that of the commit.
//! And `ar`, which a Debian package is.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const BLOCK: usize = 512;

/// An archive while it is made, in memory: ours are a few dozen megabytes.
#[derive(Debug)]
pub(super) struct Tape {
    bytes: Vec<u8>,
    /// Seconds since 1970, of every entry.
    time: u64,
}

/// What an entry is, with its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Directory,
    File,
    Program,
}

impl EntryKind {
    fn mode(self) -> u32 {
        match self {
            Self::Directory | Self::Program => 0o755,
            Self::File => 0o644,
        }
    }

    fn flag(self) -> u8 {
        match self {
            Self::Directory => b'5',
            Self::File | Self::Program => b'0',
        }
    }
}

impl Tape {
    pub(super) fn new(time: u64) -> Self {
        Self { bytes: Vec::new(), time }
    }

    pub(super) fn entry(&mut self, path: &str, kind: EntryKind, content: &[u8]) -> Result<()> {
        let mut header = [0_u8; BLOCK];
        let name = path.as_bytes();
        if name.len() > 100 {
            bail!("{path} is too long for an archive");
        }
        header[..name.len()].copy_from_slice(name);
        let mut field = |place: usize, text: &str| {
            header[place..place + text.len()].copy_from_slice(text.as_bytes());
        };
        field(100, &format!("{:07o}", kind.mode()));
        field(108, "0000000");
        field(116, "0000000");
        field(124, &format!("{:011o}", content.len()));
        field(136, &format!("{:011o}", self.time));
        // What the sum is counted with.
        field(148, "        ");
        field(257, "ustar\u{0}00");
        field(265, "root");
        field(297, "root");
        header[156] = kind.flag();
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    /// Everything below a directory in the order of its names; `prefix` stands for the directory.
    pub(super) fn tree(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), format!("{prefix}{}", entry.file_name().to_string_lossy()));
            if path.is_dir() {
                self.entry(&format!("{name}/"), EntryKind::Directory, &[])?;
                self.tree(&path, &format!("{name}/"))?;
            } else {
                let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let is_program = name.ends_with("/attache") || name.ends_with("/attache.js");
                let kind = if is_program { EntryKind::Program } else { EntryKind::File };
                self.entry(&name, kind, &content)?;
            }
        }
        Ok(())
    }

    /// The whole archive, compressed.
    pub(super) fn compressed(mut self) -> Result<Vec<u8>> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        gzip(self.bytes)
    }
}

fn gzip(bytes: Vec<u8>) -> Result<Vec<u8>> {
    let mut command = Command::new("gzip");
    command.args(["-9", "-n", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start `gzip`")?;
    let mut input = child.stdin.take().context("gzip takes nothing")?;
    // gzip writes before it has read everything.
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output()?;
    match writer.join() {
        Ok(written) => written.context("gzip did not take everything")?,
        Err(_) => bail!("gzip did not take everything"),
    }
    if output.status.success() { Ok(output.stdout) } else { bail!("gzip ended with {}", output.status) }
}

/// The members of a Debian package, in this order.
pub(super) fn ar(members: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        bytes.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "100644").bytes());
        bytes.extend(content);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}
