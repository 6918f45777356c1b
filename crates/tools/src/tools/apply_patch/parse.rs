//! Parses a unified diff into files, hunks and lines. Strict about structure, lenient about counts, which
//! models get wrong.

use crate::files::NewMode;

/// What a patch says about one file; a missing name is `/dev/null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    /// The mode of a new file.
    pub(super) new_mode: NewMode,
    pub(super) deletion: Deletion,
    pub(super) hunks: Vec<PatchHunk>,
}

/// What a deleted file has to contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Exactly the lines of its hunks.
    OfNamedLines,
    Whole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchHunk {
    /// The header as in the patch, for errors.
    pub(super) header: String,
    pub(super) spot: Spot,
    pub(super) lines: Vec<PatchLine>,
}

/// The place that a hunk states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// At this line of the old file, counted from 1; 0 in an empty file. Only a hint.
    Line(usize),
    /// After lines like these, in this order.
    Behind { anchors: Vec<String>, is_end: bool },
}

/// A line without its line ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchLine {
    pub(super) side: Side,
    pub(super) text: String,
    pub(super) end: LineEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Old,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    Newline,
    /// `\ No newline at end of file`
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchError {
    #[error("field `patch` has no file header (`--- a/path` and `+++ b/path`, or `*** Update File: path`)")]
    NoFile,
    #[error(
        "field `patch` has no file header (`*** Update File: path`, `*** Add File: ` or `*** Delete File: `)"
    )]
    EmptyEnvelope,
    #[error("line {line} of the patch is {found:?}, but {wanted} was expected")]
    Unexpected { line: usize, found: String, wanted: &'static str },
    #[error("line {line} of the patch: {what}; use a command for it")]
    Unsupported { line: usize, what: &'static str },
    #[error("line {line} of the patch: {name:?} is not a valid file name")]
    Name { line: usize, name: String },
}

impl PatchError {
    pub(super) fn unexpected(line: usize, found: Option<&str>, wanted: &'static str) -> Self {
        Self::Unexpected { line, found: found.unwrap_or("the end").chars().take(80).collect(), wanted }
    }
}

pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = DiffReader { lines: unfenced(patch), at: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with("diff --git ") {
            files.push(reader.git_file()?);
        } else if reader.is_file_header() {
            files.push(reader.plain_file()?);
        } else if line.starts_with("@@") && files.is_empty() {
            return Err(PatchError::NoFile);
        } else if line.starts_with("@@") {
            return Err(reader.unexpected("a file header (`--- a/path`)"));
        } else {
            // Skips text around a patch (a commit message, an index line).
            reader.at += 1;
        }
    }
    if files.is_empty() { Err(PatchError::NoFile) } else { Ok(files) }
}

/// The lines up to the end of a code fence, if the patch is in one. Text before the patch is skipped anyway.
fn unfenced(patch: &str) -> Vec<&str> {
    let lines: Vec<&str> = patch.lines().collect();
    let is_fence = |line: &&str| line.starts_with("```") || line.starts_with("~~~");
    let is_header = |line: &&str| ["--- ", "diff --git ", "@@"].iter().any(|start| line.starts_with(start));
    let opened = lines.iter().position(is_fence);
    let opened =
        opened.filter(|opened| lines.iter().position(is_header).is_some_and(|first| *opened < first));
    let closed =
        opened.and_then(|opened| Some(lines.iter().skip(opened + 1).position(is_fence)? + opened + 1));
    lines[..closed.unwrap_or(lines.len())].to_vec()
}

struct DiffReader<'patch> {
    lines: Vec<&'patch str>,
    at: usize,
}

/// The lines between `diff --git` and the hunks.
#[derive(Default)]
struct Extended {
    from: Option<String>,
    to: Option<String>,
    is_new: bool,
    is_deleted: bool,
    is_executable: bool,
}

impl<'patch> DiffReader<'patch> {
    fn peek(&self) -> Option<&'patch str> {
        self.lines.get(self.at).copied()
    }

    fn starts(&self, ahead: usize, prefix: &str) -> bool {
        self.lines.get(self.at + ahead).is_some_and(|line| line.starts_with(prefix))
    }

    /// Checks three lines at once, because a removed line may begin with two dashes.
    fn is_file_header(&self) -> bool {
        self.starts(0, "--- ")
            && self.starts(1, "+++ ")
            && (self.starts(2, "@@") || self.at + 2 >= self.lines.len())
    }

    fn unexpected(&self, wanted: &'static str) -> PatchError {
        PatchError::unexpected(self.at + 1, self.peek(), wanted)
    }

    fn plain_file(&mut self) -> Result<FilePatch, PatchError> {
        let (old, new) = self.names()?;
        let hunks = self.hunks()?;
        if hunks.is_empty() {
            return Err(self.unexpected("a hunk (`@@ -1,2 +1,2 @@`)"));
        }
        Ok(FilePatch { old, new, new_mode: NewMode::Usual, deletion: Deletion::OfNamedLines, hunks })
    }

    fn git_file(&mut self) -> Result<FilePatch, PatchError> {
        let header = self.peek().unwrap_or_default();
        let header_line = self.at + 1;
        self.at += 1;
        let extended = self.extended()?;
        let new_mode = if extended.is_executable { NewMode::Executable } else { NewMode::Usual };
        if self.starts(0, "--- ") && self.starts(1, "+++ ") {
            let before = self.at;
            let (old, new) = self.names()?;
            let is_this_file = same_name(header).is_none_or(|name| [&old, &new].contains(&&Some(name)));
            if is_this_file {
                let (deletion, hunks) = (Deletion::OfNamedLines, self.hunks()?);
                return Ok(FilePatch { old, new, new_mode, deletion, hunks });
            }
            // The header of the next file, which has no `diff --git` line.
            self.at = before;
        }
        // Only a rename, or an empty file that is created or deleted: only the header has the names.
        let (old, new) = match (extended.from, extended.to) {
            (Some(from), Some(to)) => (Some(from), Some(to)),
            _ => {
                let name = same_name(header)
                    .ok_or_else(|| PatchError::Name { line: header_line, name: header.to_owned() })?;
                ((!extended.is_new).then(|| name.clone()), (!extended.is_deleted).then_some(name))
            }
        };
        if old == new {
            return Err(self.unexpected("`---` and `+++` lines with hunks"));
        }
        Ok(FilePatch { old, new, new_mode, deletion: Deletion::OfNamedLines, hunks: Vec::new() })
    }

    fn extended(&mut self) -> Result<Extended, PatchError> {
        let mut extended = Extended::default();
        while let Some(line) = self.peek() {
            let unsupported = |what| Err(PatchError::Unsupported { line: self.at + 1, what });
            if let Some(name) = line.strip_prefix("rename from ") {
                extended.from = Some(unquoted(name).ok_or_else(|| self.bad_name(name))?);
            } else if let Some(name) = line.strip_prefix("rename to ") {
                extended.to = Some(unquoted(name).ok_or_else(|| self.bad_name(name))?);
            } else if let Some(mode) = line.strip_prefix("new file mode ") {
                extended.is_new = true;
                match mode.trim() {
                    "100644" => {}
                    "100755" => extended.is_executable = true,
                    _ => return unsupported("links and modules can't be made by a patch"),
                }
            } else if line.starts_with("deleted file mode ") {
                extended.is_deleted = true;
            } else if line.starts_with("old mode ") || line.starts_with("new mode ") {
                return unsupported("modes are not changed by a patch");
            } else if line.starts_with("copy from ") {
                return unsupported("files are not copied by a patch");
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return unsupported("binary files can't be patched");
            } else if !(line.starts_with("index ")
                || line.starts_with("similarity index ")
                || line.starts_with("dissimilarity index "))
            {
                break;
            }
            self.at += 1;
        }
        Ok(extended)
    }

    fn bad_name(&self, name: &str) -> PatchError {
        PatchError::Name { line: self.at + 1, name: name.to_owned() }
    }

    /// The two names of a file header, without the `a/` and `b/` that tools put before them.
    fn names(&mut self) -> Result<(Option<String>, Option<String>), PatchError> {
        let mut names = [None, None];
        for (name, marker) in names.iter_mut().zip(["--- ", "+++ "]) {
            let Some(text) = self.peek().and_then(|line| line.strip_prefix(marker)) else {
                return Err(self.unexpected("a file header"));
            };
            let text = unquoted(text).ok_or_else(|| self.bad_name(text))?;
            *name = (text != "/dev/null").then_some(text);
            self.at += 1;
        }
        let [old, new] = names;
        let prefixed = old.as_deref().is_none_or(|old| old.starts_with("a/"))
            && new.as_deref().is_none_or(|new| new.starts_with("b/"));
        let bare = |name: Option<String>| name.map(|name| if prefixed { name[2..].to_owned() } else { name });
        Ok((bare(old), bare(new)))
    }

    fn hunks(&mut self) -> Result<Vec<PatchHunk>, PatchError> {
        let mut hunks = Vec::new();
        while let Some(header) = self.peek().filter(|line| line.starts_with("@@")) {
            let spot = match ranges(header) {
                Some((start, ..)) => Spot::Line(start),
                None => {
                    unnumbered(header).ok_or_else(|| self.unexpected("`@@ -start,count +start,count @@`"))?
                }
            };
            self.at += 1;
            let lines = match ranges(header) {
                Some((_, old, new)) => self.body(old, new)?,
                None => self.uncounted_body()?,
            };
            hunks.push(PatchHunk { header: header.to_owned(), spot, lines });
        }
        Ok(hunks)
    }

    /// Drops empty lines at the end.
    fn uncounted_body(&mut self) -> Result<Vec<PatchLine>, PatchError> {
        let begin = self.at;
        let mut lines = self.body(usize::MAX, usize::MAX)?;
        let empty = self.lines[begin..self.at].iter().rev().take_while(|line| line.is_empty()).count();
        lines.truncate(lines.len() - empty.min(lines.len()));
        if lines.is_empty() { Err(self.unexpected("a line of a hunk")) } else { Ok(lines) }
    }

    /// Lines up to the next header. The counts only decide ambiguous cases: an empty line, and two dashes.
    fn body(&mut self, old_count: usize, new_count: usize) -> Result<Vec<PatchLine>, PatchError> {
        let mut lines: Vec<PatchLine> = Vec::new();
        let (mut old, mut new) = (0, 0);
        while let Some(line) = self.peek() {
            let is_complete = old >= old_count && new >= new_count;
            let side = match line.as_bytes().first() {
                _ if self.is_file_header() => break,
                Some(b' ') => Side::Both,
                Some(b'-') if is_complete && self.starts(0, "-- ") => break,
                Some(b'-') => Side::Old,
                Some(b'+') => Side::New,
                // An empty context line without its leading blank.
                None if !is_complete => Side::Both,
                Some(b'\\') => {
                    if let Some(last) = lines.last_mut() {
                        last.end = LineEnd::Nothing;
                    }
                    self.at += 1;
                    continue;
                }
                _ if is_complete || line.starts_with("@@") || line.starts_with("diff --git ") => break,
                Some(_) | None => return Err(self.unexpected("a line of a hunk (` `, `-` or `+` first)")),
            };
            old += usize::from(side != Side::New);
            new += usize::from(side != Side::Old);
            let text = line.get(1..).unwrap_or_default().to_owned();
            lines.push(PatchLine { side, text, end: LineEnd::Newline });
            self.at += 1;
        }
        if lines.is_empty() { Err(self.unexpected("a line of a hunk")) } else { Ok(lines) }
    }
}

/// The place of a hunk without line numbers: `@@`, or `@@ fn main` for after such a line. `None` if it has
/// numbers that are no ranges.
fn unnumbered(header: &str) -> Option<Spot> {
    let anchor = header.trim_start_matches('@').trim_end_matches('@').trim();
    let is_of_numbers = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | ',' | ' ');
    let is_anchor = anchor.chars().any(char::is_alphanumeric);
    if is_anchor && anchor.chars().all(is_of_numbers) {
        return None;
    }
    let anchors = is_anchor.then(|| anchor.to_owned()).into_iter().collect();
    Some(Spot::Behind { anchors, is_end: false })
}

/// `@@ -3,4 +3,5 @@` gives 3, 4 and 5.
pub(super) fn ranges(header: &str) -> Option<(usize, usize, usize)> {
    let mut words = header.strip_prefix("@@ ")?.split(' ');
    let range = |word: &str| {
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let (old_start, old_count) = range(words.next()?.strip_prefix('-')?)?;
    let (_, new_count) = range(words.next()?.strip_prefix('+')?)?;
    (words.next()? == "@@").then_some((old_start, old_count, new_count))
}

/// The name in `diff --git a/NAME b/NAME`.
fn same_name(header: &str) -> Option<String> {
    let names = header.strip_prefix("diff --git ")?;
    if names.starts_with('"') {
        let (quoted, _) = names.split_once(" \"")?;
        return unquoted(quoted)?.strip_prefix("a/").map(str::to_owned);
    }
    let half = names.len().checked_sub(1)? / 2;
    let (old, new) = (names.get(..half)?.strip_prefix("a/")?, names.get(half + 1..)?.strip_prefix("b/")?);
    (old == new && !old.is_empty()).then(|| old.to_owned())
}

/// A name in the form of git and diff: quoted if it has unusual characters, else followed by a tab and a time.
fn unquoted(name: &str) -> Option<String> {
    let Some(inner) = name.strip_prefix('"') else {
        let name = name.split('\t').next().unwrap_or_default().trim_end_matches('\r');
        return (!name.is_empty()).then(|| name.to_owned());
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    loop {
        match rest.next()? {
            b'"' => return String::from_utf8(bytes).ok().filter(|name| !name.is_empty()),
            b'\\' => bytes.push(match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                first @ b'0'..=b'3' => {
                    let digits = [first, rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                }
                other @ (b'"' | b'\\') => other,
                _ => return None,
            }),
            byte => bytes.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
