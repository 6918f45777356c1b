//! Runs `true` as a command would run in a sandbox, to learn whether that works here.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::WriteGrant;

use super::reexec::{ConfinedLine, HelperRequest};
use super::system::HelperStage;
use crate::environment;
use crate::limits::PROBE_TIME;
use crate::platform::pipe;
use crate::process::{ExitCause, Launch, ProcessTree, Sink, watch};
use crate::programs::Programs;

/// By its whole path: `PATH` may lead into a project, or nowhere.
fn find_true() -> OsString {
    Programs::of_machine().helper("true").map_or_else(|| "/bin/true".into(), PathBuf::into_os_string)
}

pub(super) fn trial(stage: HelperStage) -> HelperRequest {
    let (scratch, caches) = ("/tmp".into(), Vec::new());
    let line = ConfinedLine { words: vec![find_true()], ..ConfinedLine::default() };
    HelperRequest { stage, scratch, caches, writes: WriteGrant::Withheld, line }
}

struct DiscardedOutput;

impl Sink for DiscardedOutput {
    fn output(&mut self, _bytes: &[u8]) {}
    fn show(&mut self) {}
}

pub(super) fn run_true(line: &Launch) -> io::Result<()> {
    let (never, _open) = pipe()?;
    let tree = ProcessTree::start(line, Path::new("/"), environment::for_command(std::env::vars_os()))?;
    match watch(tree, &never, PROBE_TIME, &mut DiscardedOutput)?.how {
        ExitCause::Exited(0) => Ok(()),
        other => Err(io::Error::other(format!("`true` in it ended as {other:?}"))),
    }
}
