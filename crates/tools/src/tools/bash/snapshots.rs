//! Keeps the files that a command is about to write, and reads them again afterwards. Only if every path is
//! known; a rewind reports every other command as not covered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::SnapshotSink;
use attache_core::ports::tool::{Access, CommandAccess, CommandNature, Site};
use attache_core::snapshot::{CallSnapshot, FileKeeper, FileSnapshot};

use crate::limits::COMMAND_SNAPSHOT_FILES;
use crate::roots::OpenRoots;
use crate::snapshots::{left_at, of_path};

/// Programs that change the files they name and no others.
const PLAIN_WRITERS: &[&str] = &["cp", "ln", "mv", "rm", "tee", "touch", "truncate", "unlink"];

const UNKNOWN: &str = "it is unknown which files such a command changes";
const BACKGROUND: &str = "it runs in the background";

/// A command whose files are kept.
#[derive(Debug)]
pub(super) struct CommandSnapshots {
    sink: Arc<dyn SnapshotSink>,
    reach: OpenRoots,
    snapshot: CallSnapshot,
}

/// How long a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandLife {
    Call,
    Background,
}

impl CommandSnapshots {
    /// Reports what the command will change, as far as that is known; it may run once this returns without an
    /// error.
    pub(super) async fn before(
        sink: Arc<dyn SnapshotSink>,
        title: String,
        accesses: &[Access],
        life: CommandLife,
        site: &Site,
    ) -> Result<Self, String> {
        let reach = OpenRoots::new(&site.workspace, &site.granted);
        let mut snapshot = CallSnapshot { title, ..CallSnapshot::default() };
        let named: Vec<&PathBuf> = written(accesses).filter(|path| !reach.is_scratch(path)).collect();
        let mut paths = Vec::new();
        snapshot.uncovered = uncovered(accesses, life, named.len());
        for path in named {
            match with_what_it_leads_to(path, &reach) {
                Some(places) => paths.extend(places),
                None => snapshot.uncovered = Some(UNKNOWN.to_owned()),
            }
        }
        paths.sort();
        paths.dedup();
        if snapshot.uncovered.is_none() {
            for path in paths {
                let before = of_path(&*sink, &path, &reach).await;
                let keeper = FileKeeper::Disk;
                snapshot.files.push(FileSnapshot { path, keeper, before, after: None, made_directories: 0 });
            }
        }
        if snapshot.uncovered.is_some() || !snapshot.files.is_empty() {
            sink.record(snapshot.clone()).await?;
        }
        Ok(Self { sink, reach, snapshot })
    }

    /// Reports the state that the command left.
    pub(super) async fn after(mut self) {
        if self.snapshot.files.is_empty() {
            return;
        }
        for file in &mut self.snapshot.files {
            file.after = left_at(&file.path, &self.reach).await;
        }
        let is_same =
            |file: &FileSnapshot| file.after.as_ref().is_some_and(|left| left.is_same(&file.before));
        self.snapshot.files.retain(|file| !is_same(file));
        if let Err(error) = self.sink.record(self.snapshot).await {
            tracing::debug!(error, "what a command left is not known");
        }
    }
}

/// The path and its link target: a command may replace a link or write through it, even to a missing target.
/// `None`: the target is unknown.
fn with_what_it_leads_to(path: &Path, reach: &OpenRoots) -> Option<Vec<PathBuf>> {
    match reach.follow(path) {
        Ok(led) => Some(vec![path.to_owned(), led.named().to_owned()]),
        Err(_) if path.is_symlink() => None,
        // Reported when the path is read.
        Err(_) => Some(vec![path.to_owned()]),
    }
}

fn written(accesses: &[Access]) -> impl Iterator<Item = &PathBuf> {
    accesses.iter().filter_map(|access| match access {
        Access::WritePath(path) => Some(path),
        Access::ReadPath(_) | Access::Command(_) | Access::Network { .. } => None,
    })
}

/// `-b`, `-ib`, `--backup`: the command also writes files beside the named ones.
fn asks_for_backup(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|short| !short.starts_with('-'));
    word.starts_with("--backup") || short.is_some_and(|short| short.contains('b'))
}

/// Why not all files that the command changes are known.
fn uncovered(accesses: &[Access], life: CommandLife, paths: usize) -> Option<String> {
    let is_known = |command: &CommandAccess| match command.nature {
        CommandNature::ReadOnly => true,
        CommandNature::Effects => match command.words.split_first() {
            Some((program, options)) => {
                PLAIN_WRITERS.contains(&program.as_str()) && !options.iter().any(|word| asks_for_backup(word))
            }
            None => false,
        },
        CommandNature::Unclear(_) => false,
    };
    let commands = accesses.iter().all(|access| match access {
        Access::Command(command) => is_known(command),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => true,
    });
    let reads_only = paths == 0
        && accesses.iter().all(|access| match access {
            Access::Command(command) => command.nature == CommandNature::ReadOnly,
            Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => true,
        });
    match life {
        _ if reads_only => None,
        CommandLife::Background => Some(BACKGROUND.to_owned()),
        CommandLife::Call if !commands => Some(UNKNOWN.to_owned()),
        CommandLife::Call if paths > COMMAND_SNAPSHOT_FILES => {
            Some(format!("it writes {paths} files; up to {COMMAND_SNAPSHOT_FILES} are kept before a command"))
        }
        CommandLife::Call => None,
    }
}
