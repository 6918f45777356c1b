//! The files of the workspace, for `@`: found in the background, matched by the letters typed. Reads names
//! only, and none that git ignores.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::screen::limits::{COMPLETIONS, FILES_AT_ONCE, FILES_KNOWN};

/// Paths from the workspace's directory on.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    paths: Vec<Box<str>>,
    search: Option<FileSearch>,
}

/// What was found for some letters so far. It goes on where it was: whoever looks for a file types meanwhile.
#[derive(Debug)]
struct FileSearch {
    /// In small letters.
    wanted: Vec<u8>,
    /// How many paths it has looked at, from the first on.
    looked_at: usize,
    /// Scores and places of the best, best first.
    best: Vec<(i32, usize)>,
}

impl KnownFiles {
    pub(crate) fn add(&mut self, found: Vec<Box<str>>) {
        self.paths.extend(found);
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.paths.iter().any(|known| **known == *path)
    }

    /// The best matches so far, best first: looks at `FILES_AT_ONCE` more, until it has looked at all.
    /// Letters match in their order; those in the file's name, at the start of a word and next to each other
    /// count more.
    pub(crate) fn matching(&mut self, typed: &str, most: usize) -> Vec<&str> {
        let wanted: Vec<u8> = typed.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
        let same = self.search.take().filter(|search| search.wanted == wanted);
        let mut search = same.unwrap_or(FileSearch { wanted, looked_at: 0, best: Vec::new() });
        search.go_on(&self.paths);
        let best = search.best.iter().take(most).map(|(_, place)| &*self.paths[*place]).collect();
        self.search = Some(search);
        best
    }

    /// Whether the last search has not looked at all of them.
    pub(crate) fn is_searching(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.looked_at < self.paths.len())
    }

    /// Nobody looks for a file any more.
    pub(crate) fn end_search(&mut self) {
        self.search = None;
    }
}

impl FileSearch {
    fn go_on(&mut self, paths: &[Box<str>]) {
        let end = paths.len().min(self.looked_at + FILES_AT_ONCE);
        for (place, path) in paths.iter().enumerate().take(end).skip(self.looked_at) {
            let Some(score) = score(path.as_bytes(), &self.wanted) else { continue };
            let better =
                |one: &(i32, usize)| (one.0, Reverse(paths[one.1].len())) >= (score, Reverse(path.len()));
            let rank = self.best.partition_point(better);
            if rank < COMPLETIONS {
                self.best.insert(rank, (score, place));
                self.best.truncate(COMPLETIONS);
            }
        }
        self.looked_at = end;
    }
}

/// From the end on: what is typed is most often the name.
fn score(path: &[u8], wanted: &[u8]) -> Option<i32> {
    let mut rest = wanted.len();
    let (mut score, mut last) = (0, usize::MAX);
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    for index in (0..path.len()).rev() {
        if rest == 0 {
            break;
        }
        if path[index].to_ascii_lowercase() != wanted[rest - 1] {
            continue;
        }
        rest -= 1;
        score += 1;
        if index >= name {
            score += 2;
        }
        if index + 1 == last {
            score += 4;
        }
        if index == 0 || matches!(path[index - 1], b'/' | b'_' | b'-' | b'.') {
            score += 3;
        }
        last = index;
    }
    (rest == 0).then_some(score)
}

/// Walks the workspace in a thread of its own and hands out what it finds in pieces, until `found` refuses.
pub(crate) fn walk(directory: PathBuf, mut found: impl FnMut(Vec<Box<str>>) -> FileWalk + Send + 'static) {
    const PIECE: usize = 2_000;
    std::thread::spawn(move || {
        let mut piece = Vec::with_capacity(PIECE);
        let mut count = 0;
        let walk = WalkBuilder::new(&directory)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk.filter_map(Result::ok) {
            let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
            let Some(path) = relative(entry.path(), &directory).filter(|_| is_file) else { continue };
            piece.push(path);
            count += 1;
            if piece.len() == PIECE && found(std::mem::take(&mut piece)) == FileWalk::Stop {
                return;
            }
            if count == FILES_KNOWN {
                break;
            }
        }
        found(piece);
    });
}

/// Whether the result is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileWalk {
    GoOn,
    Stop,
}

fn relative(path: &Path, directory: &Path) -> Option<Box<str>> {
    path.strip_prefix(directory).ok()?.to_str().filter(|path| !path.is_empty()).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn known(paths: &[&str]) -> KnownFiles {
        KnownFiles { paths: paths.iter().map(|path| (*path).into()).collect(), search: None }
    }

    #[test]
    fn among_a_hundred_thousand_each_look_takes_in_some_and_in_the_end_all() {
        let mut files = KnownFiles::default();
        files.add(
            (0..100_000).map(|number| format!("part{}/file-{number}.rs", number % 100).into()).collect(),
        );
        let mut looks = 0;
        loop {
            let before = files.search.as_ref().map_or(0, |search| search.looked_at);
            let found = files.matching("file-99999", 3).first().map(|path| (*path).to_owned());
            let after = files.search.as_ref().unwrap().looked_at;
            assert!((1..=FILES_AT_ONCE).contains(&(after - before)), "{before} to {after}");
            looks += 1;
            if !files.is_searching() {
                assert_eq!(found.as_deref(), Some("part99/file-99999.rs"));
                break;
            }
        }
        assert_eq!(looks, 100_000_usize.div_ceil(FILES_AT_ONCE));
        // Another letter begins anew, and what is found meanwhile is looked at, too.
        files.matching("other", 3);
        assert_eq!(files.search.as_ref().unwrap().looked_at, FILES_AT_ONCE);
        files.add(vec!["other.rs".into()]);
        while files.is_searching() {
            files.matching("other", 3);
        }
        assert_eq!(files.matching("other", 3), ["other.rs"]);
        files.end_search();
        assert!(!files.is_searching());
    }

    #[test]
    fn names_count_more_than_folders() {
        let mut files = known(&["core/parse/tree.rs", "src/core.rs", "docs/score.md", "x/c/o/r/e"]);
        assert_eq!(files.matching("core", 2), ["src/core.rs", "docs/score.md"]);
        assert_eq!(files.matching("CPT", 5), ["core/parse/tree.rs"]);
        assert!(files.matching("zzz", 5).is_empty());
        assert_eq!(files.matching("", 2).len(), 2);
    }

    #[test]
    fn what_git_ignores_is_not_found() {
        let workspace = tempfile::tempdir().unwrap();
        for (path, text) in [("a/b.rs", ""), (".gitignore", "out/\n"), ("out/c.rs", ""), (".git/x", "")] {
            let path = workspace.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (sender, receiver) = mpsc::channel();
        walk(workspace.path().to_owned(), move |piece| {
            sender.send(piece).unwrap();
            FileWalk::GoOn
        });
        let mut found: Vec<_> = receiver.iter().flatten().collect();
        found.sort();
        assert_eq!(found, [".gitignore".into(), Box::<str>::from("a/b.rs")]);
    }
}
