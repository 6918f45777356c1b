//! What differs from the last commit: runs `git status`, but only in a repository whose configuration names no
//! program, and only in the full sandbox. Otherwise the answer is unknown.

use std::ffi::OsString;
use std::sync::Arc;

use attache_core::ports::tool::{NetworkGrant, Site, Workspace, WriteGrant};
use attache_sandbox::environment;
use attache_sandbox::platform::pipe;
use attache_sandbox::process::{CommandEnd, ExitCause, ProcessTree, Sink, watch};
use attache_sandbox::programs::Programs;
use attache_sandbox::{Level, Sandbox};
use attache_shell::Repository;

use crate::disk::repository::repository;
use crate::limits::{GIT_STATUS_BYTES, GIT_STATUS_TIME};

/// In addition to the checks above: no monitor, no hook, no writing of the index, no configuration of the
/// machine.
const OPTIONS: [&str; 12] = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "status",
    "--porcelain",
    "-z",
    "--no-renames",
    "--untracked-files=normal",
    "--ignore-submodules=all",
    "--no-column",
];

const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")];

/// `2 files changed, 1 untracked`, or `nothing`. Blocks its thread for `GIT_STATUS_TIME` and the search for a
/// sandbox.
pub(crate) fn in_words(workspace: Arc<Workspace>, sandbox: &Sandbox) -> Option<String> {
    if repository(&workspace.root) != Repository::Plain || sandbox.level() != Level::Full {
        return None;
    }
    let root = workspace.root.clone();
    let site = Site::of_roots(workspace);
    let mut line: Vec<OsString> = vec![Programs::of(&site).helper("git")?.into()];
    line.extend(OPTIONS.map(OsString::from));
    let confined = sandbox.confine(&site, NetworkGrant::Withheld, WriteGrant::Withheld, line).ok()?;
    let own = ENVIRONMENT.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let tree =
        ProcessTree::start(&confined.line(), &root, environment::for_command(std::env::vars_os()).chain(own))
            .ok()?;
    // It is not cancelled: its time is short.
    let (cancelled, _alive) = pipe().ok()?;
    let mut printed = Printed::default();
    match watch(tree, &cancelled, GIT_STATUS_TIME, &mut printed) {
        Ok(CommandEnd { how: ExitCause::Exited(0), .. }) => printed.in_words(),
        Ok(_) | Err(_) => None,
    }
}

/// Entries that end with NUL: two letters, a blank, a path.
#[derive(Debug, Default)]
struct Printed(Vec<u8>);

impl Sink for Printed {
    fn output(&mut self, bytes: &[u8]) {
        // Reads one byte more than allowed, to see that there was more.
        let room = GIT_STATUS_BYTES + 1 - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn show(&mut self) {}
}

impl Printed {
    fn in_words(&self) -> Option<String> {
        if self.0.len() > GIT_STATUS_BYTES {
            return Some("very many files".to_owned());
        }
        let (mut changed, mut untracked) = (0_usize, 0_usize);
        for entry in self.0.split_inclusive(|byte| *byte == 0) {
            match entry {
                [b'?', b'?', b' ', _, .., 0] => untracked += 1,
                [_, _, b' ', _, .., 0] => changed += 1,
                // Not an entry of `git status`; errors are in the same output.
                _ => return None,
            }
        }
        let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        Some(match (changed, untracked) {
            (0, 0) => "nothing".to_owned(),
            (changed, 0) => format!("{} changed", files(changed)),
            (0, untracked) => format!("{} untracked", files(untracked)),
            (changed, untracked) => format!("{} changed, {untracked} untracked", files(changed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_and_anything_else_is_not_believed() {
        let words = |text: &str| Printed(text.as_bytes().to_vec()).in_words();
        assert_eq!(words("").as_deref(), Some("nothing"));
        assert_eq!(words(" M a\0").as_deref(), Some("1 file changed"));
        assert_eq!(words("?? a b\0?? c\n\0").as_deref(), Some("2 files untracked"));
        assert_eq!(words("MM a\0D  b\0?? c\0").as_deref(), Some("2 files changed, 1 untracked"));
        for other in ["fatal: not a git repository", " M a", "\0", "?? \0"] {
            assert_eq!(words(other), None, "{other:?}");
        }
        let many = " M a\0".repeat(GIT_STATUS_BYTES);
        let mut printed = Printed::default();
        printed.output(many.as_bytes());
        printed.output(many.as_bytes());
        assert_eq!(printed.in_words().as_deref(), Some("very many files"));
    }
}
