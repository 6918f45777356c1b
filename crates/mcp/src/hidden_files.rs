//! Whether a local server ended because the `/tmp` of its sandbox is its own. Starts nothing.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use attache_core::ports::tool::Site;
use attache_sandbox::Level;
use attache_sandbox::temporary::{TEMPORARY_IS_PRIVATE, hidden_in, misses_hidden};

use crate::program::ResolvedProgram;

/// What a server is given and does not see, although it is there.
#[derive(Debug)]
pub(crate) struct HiddenFiles {
    /// What it sees of the machine's `/tmp`; `None`: all of it.
    visible: Option<Vec<PathBuf>>,
    /// The program itself, or the directory where it runs.
    is_start_hidden: bool,
    is_argument_hidden: bool,
}

/// Whether they are why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HiddenCause {
    No,
    Maybe,
    /// Another try ends in the same way.
    Certainly,
}

impl HiddenFiles {
    /// Blocks: looks at the disk.
    pub(crate) fn of(program: &ResolvedProgram, site: &Site, level: Level) -> Self {
        let visible: Option<Vec<PathBuf>> = match level {
            Level::Full => Some(site.workspace.roots().chain(site.granted.iter()).cloned().collect()),
            Level::Reduced | Level::None => None,
        };
        let is_hidden = |word: &OsStr| {
            let word = word.to_string_lossy();
            visible.as_ref().is_some_and(|visible| hidden_in(&word, visible).any(Path::exists))
        };
        let mut arguments = program.words.iter();
        let command = arguments.next().map(OsString::as_os_str);
        let directory = program.directory.as_deref().map(Path::as_os_str);
        let is_start_hidden = command.into_iter().chain(directory).any(is_hidden);
        let is_argument_hidden = arguments.any(|word| is_hidden(word));
        Self { visible, is_start_hidden, is_argument_hidden }
    }

    /// `errors`: what it printed before it ended.
    pub(crate) fn cause(&self, errors: &str) -> HiddenCause {
        let Some(visible) = &self.visible else { return HiddenCause::No };
        let misses = misses_hidden(errors, visible);
        match (self.is_start_hidden, self.is_argument_hidden, misses) {
            (true, _, _) | (_, true, true) => HiddenCause::Certainly,
            (false, true, false) | (false, false, true) => HiddenCause::Maybe,
            (false, false, false) => HiddenCause::No,
        }
    }
}

/// Why it ended, with what to do.
pub(crate) fn explained(why: &str) -> String {
    format!("{why}; {TEMPORARY_IS_PRIVATE}. That goes for servers, too: keep what this one needs elsewhere")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use attache_core::ids::SessionId;
    use attache_core::ports::tool::Workspace;

    use super::*;

    fn found(words: &[&str], directory: Option<&Path>, root: &Path, level: Level) -> HiddenFiles {
        let workspace = Workspace {
            session_id: SessionId::new("a"),
            root: root.to_owned(),
            additional: Vec::new(),
            scratch: "/s/one".into(),
            guarded: Arc::default(),
            skills: Arc::default(),
        };
        let program = ResolvedProgram {
            words: words.iter().map(OsString::from).collect(),
            directory: directory.map(Path::to_owned),
            variables: BTreeMap::new(),
        };
        HiddenFiles::of(&program, &Site::of_roots(Arc::new(workspace)), level)
    }

    #[test]
    fn a_server_whose_files_lie_in_tmp_is_told_why_it_does_not_find_them() {
        let place = tempfile::tempdir_in("/tmp").unwrap();
        let script = place.path().join("server.py");
        std::fs::write(&script, "").unwrap();
        let script = script.to_str().unwrap();
        let said = format!("python3: can't open file '{script}': [Errno 2] No such file or directory");
        let elsewhere = Path::new("/w");
        let cause = |words: &[&str], errors: &str| found(words, None, elsewhere, Level::Full).cause(errors);
        assert_eq!(cause(&["python3", script], &said), HiddenCause::Certainly);
        assert_eq!(cause(&["python3", script], "no network"), HiddenCause::Maybe);
        assert_eq!(cause(&[script], "the sandbox could not be entered"), HiddenCause::Certainly);
        assert_eq!(cause(&["x"], "connect /tmp/.s.5432: No such file or directory"), HiddenCause::Maybe);
        assert_eq!(cause(&["python3", "/tmp/is/not/there.py"], ""), HiddenCause::No);
        let there = found(&["./server.py"], Some(place.path()), elsewhere, Level::Full);
        assert_eq!(there.cause(""), HiddenCause::Certainly);
        let of_workspace = found(&["python3", script], None, place.path(), Level::Full);
        assert_eq!(of_workspace.cause(&said), HiddenCause::No);
        for level in [Level::Reduced, Level::None] {
            assert_eq!(found(&["python3", script], None, elsewhere, level).cause(&said), HiddenCause::No);
        }
    }
}
