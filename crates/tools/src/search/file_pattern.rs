//! Which files a glob pattern means: by name at any depth, or by path below the searched directory.

use std::path::Path;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::paths::leading_variable;

/// A parsed pattern. As in `.gitignore`, one without a slash means names in any directory.
#[derive(Clone, Debug)]
pub(crate) struct FilePattern {
    /// Any of them may match: models write several in one, and write paths relative to the root instead of to
    /// `path`.
    any: Vec<OnePattern>,
    sense: Sense,
}

#[derive(Clone, Debug)]
struct OnePattern {
    /// A set with only one pattern, because sets have shortcuts for the common forms.
    set: GlobSet,
    subject: PatternSubject,
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
    /// `directory` is the searched one, absolute: models often repeat it before the pattern, also relative to
    /// `root`.
    pub(crate) fn parse(pattern: &str, directory: &Path, root: &Path) -> Result<Self, String> {
        let several = several(pattern);
        let is_other = |pattern: &String| pattern.starts_with('!');
        let sense = match several.iter().all(is_other) && !several.is_empty() {
            true => Sense::AllOthers,
            false if several.iter().any(is_other) => {
                return Err("has patterns with `!` beside others: give one or the other".to_owned());
            }
            false => Sense::Matching,
        };
        let from_root =
            directory.strip_prefix(root).ok().and_then(Path::to_str).filter(|path| !path.is_empty());
        let mut any = Vec::new();
        for pattern in &several {
            let pattern = below(pattern.strip_prefix('!').unwrap_or(pattern), directory)?;
            any.push(OnePattern::parse(pattern)?);
            let shorter = from_root.and_then(|path| pattern.strip_prefix(path)?.strip_prefix('/'));
            if let Some(shorter) = shorter.filter(|shorter| !shorter.is_empty()) {
                any.push(OnePattern::parse(shorter)?);
            }
        }
        if any.is_empty() {
            return Err("must not be empty".to_owned());
        }
        Ok(Self { any, sense })
    }

    /// `relative` is a file's path below the searched directory.
    pub(crate) fn means(&self, relative: &Path) -> bool {
        self.any.iter().any(|pattern| pattern.matches(relative)) == (self.sense == Sense::Matching)
    }
}

impl OnePattern {
    fn parse(pattern: &str) -> Result<Self, String> {
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
        Ok(Self { set, subject })
    }

    fn matches(&self, relative: &Path) -> bool {
        let candidate = match self.subject {
            PatternSubject::Path => Candidate::new(relative),
            PatternSubject::Name => Candidate::new(relative.file_name().unwrap_or_default()),
        };
        self.set.is_match_candidate(&candidate)
    }
}

/// The patterns of a list in any form: as JSON, or separated by blanks or commas if all patterns have a
/// wildcard. A name with a blank in it stays one pattern.
fn several(pattern: &str) -> Vec<String> {
    if let Ok(listed) = serde_json::from_str::<Vec<String>>(pattern) {
        return listed;
    }
    let mut depth = 0_usize;
    let outside_of_braces = |letter: char| {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (letter == ',' || letter.is_whitespace())
    };
    let pieces: Vec<&str> = pattern.split(outside_of_braces).filter(|piece| !piece.is_empty()).collect();
    match pieces.len() > 1 && pieces.iter().all(|piece| piece.contains('*')) {
        true => pieces.into_iter().map(str::to_owned).collect(),
        false => vec![pattern.to_owned()],
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
        FilePattern::parse(pattern, Path::new("/w/src"), Path::new("/w")).unwrap()
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
            ("*.rs *.md", "a/x.md", true),
            ("*.rs, *.md", "a/x.rs", true),
            ("*.rs *.md", "a/x.py", false),
            (r#"["*.rs","*.md"]"#, "a/x.md", true),
            (r#"["*.rs"]"#, "a/x.md", false),
            ("!*.rs !*.md", "a/x.md", false),
            ("!*.rs !*.md", "a/x.py", true),
            ("my file*", "a/my file.txt", true),
            ("my file*", "a/my", false),
            ("{a, b}*", "a.txt", true),
            ("src/a/*.rs", "a/x.rs", true),
            ("src/a/*.rs", "src/a/x.rs", true),
            ("src/**", "a/x.rs", true),
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
            "[]",
            "*.rs !*.md",
            "{a",
        ] {
            assert!(FilePattern::parse(pattern, Path::new("/w/src"), Path::new("/w")).is_err(), "{pattern}");
        }
    }
}
