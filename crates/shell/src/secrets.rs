//! What a read may come across that no path names: a pattern that matches a private key or a link out of the
//! root, a search through a directory with secrets. Finding one only leads to a question; the host refuses what
//! is named plainly.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::word::{ANY_DEPTH, PathWord};
use super::{CommandReader, tree_walk};
use crate::limits::{SHELL_CLOSED, SHELL_LOOK};
use crate::{Disk, EntryKind};

/// Whether a directory contains files with one of these names, near enough to its top for us to see.
fn holds_one_of(disk: &dyn Disk, names: &[&str], directory: &Path) -> bool {
    let mut found = false;
    tree_walk::look(disk, directory, |path, _| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if !names.contains(&name.as_str()) {
            return ControlFlow::Continue(());
        }
        found = true;
        ControlFlow::Break(())
    });
    found
}

impl CommandReader<'_> {
    /// Whether a read at `place` may show a secret that it does not name.
    pub(super) fn may_meet_secret(&self, place: &PathWord, directory: &Path) -> bool {
        match place {
            PathWord::Below { directory: below, pattern } => {
                let below = self.located(directory, below);
                self.key_may_match(pattern, &below)
                    || self.hidden_may_match(pattern, &below)
                    || self.may_follow_link(place, directory)
            }
            PathWord::Through(path) => {
                let path = self.located(directory, path);
                self.hidden_names(&path).next().is_some()
                    || self.holds_keys(&path)
                    || self.may_follow_link(place, directory)
            }
            PathWord::At(_) | PathWord::Unknown => false,
        }
    }

    fn holds_keys(&self, directory: &Path) -> bool {
        holds_one_of(self.context.disk, self.context.restrictions.secret_names(), directory)
    }

    /// The files that a read at `place` would come across and that rules keep from being read.
    pub(super) fn closed_at(&self, place: &PathWord, directory: &Path) -> Vec<PathBuf> {
        let (below, pattern) = match place {
            PathWord::Below { directory: below, pattern } => (below, pattern.as_str()),
            PathWord::Through(below) => (below, "**"),
            PathWord::At(_) | PathWord::Unknown => return Vec::new(),
        };
        let restrictions = self.context.restrictions;
        if !restrictions.has_rules() {
            return Vec::new();
        }
        // A program that searches a directory itself and follows links also has a pattern.
        let follows = matches!(place, PathWord::Below { .. });
        let below = self.located(directory, below);
        let (mut found, mut links) = (Vec::new(), Vec::new());
        tree_walk::look(self.context.disk, &below, |path, kind| {
            let at = path.strip_prefix(&below).unwrap_or(path);
            if kind != EntryKind::Directory && leads_to(pattern, at) {
                if restrictions.keeps(path, &below) {
                    found.push(path.to_path_buf());
                }
                if kind == EntryKind::Link && follows {
                    links.push(path.to_path_buf());
                }
            }
            ControlFlow::Continue(())
        });
        found.extend(links.iter().flat_map(|link| self.closed_behind(link, &below)));
        self.denied_first(found)
    }

    /// As many as a question can name: those that a rule denies must be among them.
    pub(super) fn denied_first(&self, mut found: Vec<PathBuf>) -> Vec<PathBuf> {
        found.sort_by_key(|path| !self.context.restrictions.denies(path));
        found.truncate(SHELL_CLOSED);
        found
    }

    /// The existing entries that match the pattern of a write, as deep as the pattern goes; otherwise why we
    /// cannot name them.
    pub(super) fn matched_by(
        &self,
        place: &PathWord,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, &'static str> {
        let PathWord::Below { directory: below, pattern } = place else { return Ok(Vec::new()) };
        let below = self.located(directory, below);
        let (mut found, mut seen) = (Vec::new(), 0);
        tree_walk::look_down(self.context.disk, &below, depth_of(pattern), |path, _| {
            seen += 1;
            if leads_to(pattern, path.strip_prefix(&below).unwrap_or(path)) {
                found.push(path.to_path_buf());
            }
            if found.len() <= SHELL_CLOSED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        match (found.len() > SHELL_CLOSED, seen >= SHELL_LOOK) {
            (true, _) => Err("a pattern fits too many files to name them"),
            (false, true) => Err("there are too many files to find those that a pattern fits"),
            (false, false) => Ok(found),
        }
    }

    /// If a pattern says something about the name, the pattern decides; if it says nothing, the disk decides.
    fn key_may_match(&self, pattern: &str, directory: &Path) -> bool {
        let name = pattern.rsplit('/').next().unwrap_or(pattern).to_lowercase();
        let fits = self.context.restrictions.secret_names().iter().any(|secret| matches(&name, secret));
        let says_something = name.contains(|character| !"*?".contains(character));
        fits && (says_something || self.holds_keys(directory))
    }

    /// For what is hidden by its place: whether the pattern leads there.
    fn hidden_may_match(&self, pattern: &str, directory: &Path) -> bool {
        let first = pattern.split('/').next().unwrap_or(pattern);
        self.hidden_names(directory).any(|name| {
            pattern.contains(ANY_DEPTH)
                || (!name.starts_with('.') || first.starts_with('.')) && matches(first, &name)
        })
    }

    /// The entries of `directory` that are hidden or lead to what is.
    fn hidden_names<'s>(&'s self, directory: &'s Path) -> impl Iterator<Item = String> + 's {
        self.context.restrictions.hidden_paths().filter_map(move |hidden| {
            let below = hidden.strip_prefix(directory).ok()?;
            below.iter().next().map(|name| name.to_string_lossy().into_owned())
        })
    }
}

/// How many names below its directory a pattern can reach.
fn depth_of(pattern: &str) -> usize {
    let parts = pattern.split('/').filter(|part| !part.is_empty()).count();
    if pattern.contains(ANY_DEPTH) { usize::MAX } else { parts }
}

/// Whether the pattern matches the file or a directory above it, which the command may then search.
fn leads_to(pattern: &str, at: &Path) -> bool {
    pattern.contains("**")
        || pattern.split('/').filter(|part| !part.is_empty()).zip(at).all(|(part, name)| {
            let name = name.to_string_lossy();
            (!name.starts_with('.') || part.starts_with('.')) && matches(part, &name)
        })
}

/// Whether bash or git may match `name` with this pattern: `*` and `?` by their rules; from the first bracket
/// or backslash on, anything matches. Their rules for those differ, and a mistake would show a secret.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (simplified(pattern), name.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // The position of the last `*`, and how much it has matched.
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, seen));
                at += 1;
            }
            (Some(wanted), _) if *wanted == '?' || *wanted == name[seen] => {
                at += 1;
                seen += 1;
            }
            (_, Some((place, taken))) => {
                star = Some((place, taken + 1));
                at = place + 1;
                seen = taken + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

fn simplified(pattern: &str) -> Vec<char> {
    match pattern.find(['[', '\\']) {
        Some(at) => pattern[..at].chars().chain(['*']).collect(),
        None => pattern.chars().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_disk::TestDisk;

    fn has_keys(directory: &Path) -> bool {
        holds_one_of(&TestDisk, &["id_rsa", "id_ed25519"], directory)
    }

    #[test]
    fn patterns_fit_as_they_do_in_bash() {
        for pattern in ["*", "id_*", "id_rsa", "*rsa", "i?_rsa", "id_[er]*", "[a-z]d_rsa", "id*_*a", "??????"]
        {
            assert!(matches(pattern, "id_rsa"), "{pattern}");
        }
        for pattern in ["", "*.txt", "id_", "?", "id_rsa?", "a*", "*rsa.pub", "x[a]*"] {
            assert!(!matches(pattern, "id_rsa"), "{pattern}");
        }
    }

    /// What bash answers for each pair, one digit each.
    fn fits_in_bash(pairs: &[(String, String)]) -> Vec<bool> {
        let script = "while [ $# -gt 0 ]; do case $2 in $1) printf 1;; *) printf 0;; esac; shift 2; done";
        let words = pairs.iter().flat_map(|(pattern, name)| [pattern, name]);
        let output = std::process::Command::new("bash").args(["-c", script, "bash"]).args(words).output();
        output.unwrap().stdout.iter().map(|digit| *digit == b'1').collect()
    }

    #[test]
    fn whatever_fits_in_bash_fits_here() {
        use proptest::prelude::*;
        let pattern = r"[.e*?!^:a\-\]\[\\nv]{0,9}|\.[\[\]!^:.=alphenv*?-]{0,12}v?";
        let pair = (pattern, r"\.env|\.e|[.env\]\[!a:-]{0,5}");
        proptest!(ProptestConfig::with_cases(64), |(pairs in prop::collection::vec(pair, 1..100))| {
            for ((pattern, name), fits) in pairs.iter().zip(fits_in_bash(&pairs)) {
                prop_assert!(!fits || matches(pattern, name), "{pattern:?} {name:?}");
            }
        });
        for pattern in [".[[:alpha:]]nv", ".[]e]nv", ".[!]a]nv", ".e[[.n.]]v", r"\.env", r".\env"] {
            assert!(matches(pattern, ".env"), "{pattern}");
        }
    }

    #[test]
    fn keys_are_seen_below_a_directory_and_not_behind_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (inner, other) = (place.path().join("a/b"), place.path().join("other"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("ID_ed25519"), "x").unwrap();
        std::os::unix::fs::symlink(&other, inner.join("link")).unwrap();
        assert!(!has_keys(&place.path().join("a")));
        assert!(has_keys(place.path()));
        assert!(!has_keys(&place.path().join("missing")));
    }

    #[test]
    fn a_look_comes_to_an_end() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("z");
        std::fs::create_dir(&deep).unwrap();
        for number in 0..=SHELL_LOOK {
            std::fs::write(place.path().join(number.to_string()), "").unwrap();
        }
        std::fs::write(deep.join("id_rsa"), "x").unwrap();
        assert!(!has_keys(place.path()));
        assert!(has_keys(&deep));
    }

    /// Does not search a large tree below that does not matter.
    #[test]
    fn a_look_for_a_shallow_pattern_goes_no_deeper_than_the_pattern() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(place.path().join("x.o"), "").unwrap();
        (0..50).for_each(|number| std::fs::write(deep.join(number.to_string()), "").unwrap());
        let seen = |pattern: &str| {
            let mut seen = 0;
            tree_walk::look_down(&TestDisk, place.path(), depth_of(pattern), |_, _| {
                seen += 1;
                ControlFlow::Continue(())
            });
            seen
        };
        assert_eq!((seen("*.o"), seen("*/*.o"), seen("a/*/*.o"), seen("**/*.o")), (2, 3, 53, 53));
    }

    #[test]
    fn a_pattern_leads_to_what_it_fits_and_to_what_lies_below() {
        for pattern in ["*", "secrets/*", "s*/a.txt", "secrets/?.txt", "secrets", "**/*.txt", "[rs]*"] {
            assert!(leads_to(pattern, Path::new("secrets/a.txt")), "{pattern}");
        }
        for pattern in ["*.txt", "secrets/*.md", "open/*", "?"] {
            assert!(!leads_to(pattern, Path::new("secrets/a.txt")), "{pattern}");
        }
        assert!(!leads_to("*", Path::new(".env")) && leads_to(".*", Path::new(".env")));
    }
}
