//! Which files a glob pattern means: by name at any depth, or by path below the directory that is searched.

use std::path::Path;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::paths::leading_variable;

/// A parsed pattern. As in `.gitignore`, one without a slash means names wherever they stand.
#[derive(Clone, Debug)]
pub(crate) struct FilePattern {
    /// One pattern only; a set knows shortcuts for the common forms.
    set: GlobSet,
    subject: PatternSubject,
    sense: Sense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternSubject {
    Name,
    Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Matching,
    AllOthers,
}

impl FilePattern {
    /// `directory` is what is searched, absolute: models often write it in front of the pattern.
    pub(crate) fn parse(pattern: &str, directory: &Path) -> Result<Self, String> {
        let (sense, pattern) = match pattern.strip_prefix('!') {
            Some(rest) => (Sense::AllOthers, rest),
            None => (Sense::Matching, pattern),
        };
        let pattern = below(pattern, directory)?;
        if pattern.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let whole = match pattern.strip_suffix('/') {
            Some(directory) => format!("{directory}/**"),
            None => pattern.to_owned(),
        };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("is not a valid glob pattern: {}", error.kind()))?;
        let set = GlobSetBuilder::new().add(glob).build();
        let set = set.map_err(|error| format!("is not a valid glob pattern: {}", error.kind()))?;
        let subject = if whole.contains('/') { PatternSubject::Path } else { PatternSubject::Name };
        Ok(Self { set, subject, sense })
    }

    /// `relative` is a file's path below the directory that is searched.
    pub(crate) fn means(&self, relative: &Path) -> bool {
        let candidate = match self.subject {
            PatternSubject::Path => Candidate::new(relative),
            PatternSubject::Name => Candidate::new(relative.file_name().unwrap_or_default()),
        };
        self.set.is_match_candidate(&candidate) == (self.sense == Sense::Matching)
    }
}

fn below<'a>(pattern: &'a str, directory: &Path) -> Result<&'a str, String> {
    let mut pattern = pattern;
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest;
    }
    let inside =
        if pattern.starts_with("~/") || pattern.starts_with("file:") || leading_variable(pattern).is_some() {
            None
        } else if pattern.starts_with('/') {
            let directory = directory.to_str().map(|directory| directory.trim_end_matches('/'));
            directory.and_then(|directory| pattern.strip_prefix(directory)?.strip_prefix('/'))
        } else {
            Some(pattern)
        };
    inside.filter(|pattern| !pattern.split('/').any(|name| name == "..")).ok_or_else(|| {
        "reaches outside of `path`: name the directory there and keep the pattern relative".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pattern: &str) -> FilePattern {
        FilePattern::parse(pattern, Path::new("/w/src")).unwrap()
    }

    #[test]
    fn a_name_counts_at_any_depth_and_a_path_from_the_directory_on() {
        for (pattern, path, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "a/b/main.rs", true),
            ("*/main.rs", "a/main.rs", true),
            ("*/main.rs", "a/b/main.rs", false),
            ("**/main.rs", "main.rs", true),
            ("a/**", "a/b/c", true),
            ("a/", "a/b/c", true),
            ("a/", "b/a/c", false),
            ("./a/*.rs", "a/x.rs", true),
            ("{a,b}/*.rs", "b/x.rs", true),
            ("/w/src/a/*.rs", "a/x.rs", true),
            ("!*.md", "a/x.md", false),
            ("!*.md", "a/x.rs", true),
            ("*", "a/.hidden", true),
        ] {
            assert_eq!(wanted(pattern).means(Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        for pattern in [
            "../x/*.rs",
            "a/../../b",
            "/etc/*",
            "/w/srcs/*",
            "/w/src",
            "~/x",
            "$TMPDIR/*.txt",
            "${HOME}/*",
            "file:///w/src/*",
            "",
            "./",
            "[a",
            "{a",
        ] {
            assert!(FilePattern::parse(pattern, Path::new("/w/src")).is_err(), "{pattern}");
        }
    }
}
