//! Parses the `*** Begin Patch` format into the same files, hunks and lines as a unified diff. Strict about
//! structure.

use super::parse::{Deletion, FilePatch, LineEnd, PatchError, PatchHunk, PatchLine, Side, Spot, ranges};
use crate::files::NewMode;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";

const FILES: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];

/// Recognised by a line with which no unified diff begins; text and fences around the patch do not matter.
pub(super) fn is_envelope(patch: &str) -> bool {
    patch.lines().any(begins)
}

/// Some models omit the first line.
fn begins(line: &str) -> bool {
    line.trim_end() == BEGIN || FILES.iter().any(|header| line.starts_with(header))
}

pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = EnvelopeReader { lines: patch.lines().collect(), at: 0 };
    while reader.peek().is_some_and(|line| !begins(line)) {
        reader.at += 1;
    }
    reader.at += usize::from(reader.peek().is_some_and(|line| line.trim_end() == BEGIN));
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.peek() else {
            // Some models omit the last line; the call itself was complete.
            match files.is_empty() {
                true => return Err(reader.unexpected("`*** End Patch`")),
                false => break,
            }
        };
        if line.trim_end() == END {
            break;
        } else if let Some(name) = line.strip_prefix("*** Add File: ") {
            files.push(reader.added(name)?);
        } else if let Some(name) = line.strip_prefix("*** Delete File: ") {
            let name = reader.name(name)?;
            reader.at += 1;
            files.push(FilePatch { deletion: Deletion::Whole, ..file(Some(name), None, Vec::new()) });
        } else if let Some(name) = line.strip_prefix("*** Update File: ") {
            files.push(reader.updated(name)?);
        } else if line.trim().is_empty() {
            reader.at += 1;
        } else {
            return Err(reader.unexpected(
                "`*** Add File: `, `*** Update File: `, `*** Delete File: ` or `*** End Patch`",
            ));
        }
    }
    if files.is_empty() { Err(PatchError::EmptyEnvelope) } else { Ok(files) }
}

fn file(old: Option<String>, new: Option<String>, hunks: Vec<PatchHunk>) -> FilePatch {
    FilePatch { old, new, new_mode: NewMode::Usual, deletion: Deletion::OfNamedLines, hunks }
}

struct EnvelopeReader<'patch> {
    lines: Vec<&'patch str>,
    at: usize,
}

impl<'patch> EnvelopeReader<'patch> {
    fn peek(&self) -> Option<&'patch str> {
        self.lines.get(self.at).copied()
    }

    fn unexpected(&self, wanted: &'static str) -> PatchError {
        PatchError::unexpected(self.at + 1, self.peek(), wanted)
    }

    fn name(&self, name: &str) -> Result<String, PatchError> {
        match name.trim() {
            "" => Err(PatchError::Name { line: self.at + 1, name: name.to_owned() }),
            name => Ok(name.to_owned()),
        }
    }

    fn added(&mut self, name: &str) -> Result<FilePatch, PatchError> {
        let (name, header) = (self.name(name)?, self.peek().unwrap_or_default().to_owned());
        self.at += 1;
        let mut lines = Vec::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("*** ")) {
            let Some(text) = line.strip_prefix('+') else {
                return Err(self.unexpected("a line of the new file (`+` first)"));
            };
            lines.push(PatchLine { side: Side::New, text: text.to_owned(), end: LineEnd::Newline });
            self.at += 1;
        }
        let hunks = if lines.is_empty() {
            Vec::new()
        } else {
            vec![PatchHunk { header, spot: Spot::Line(0), lines }]
        };
        Ok(file(None, Some(name), hunks))
    }

    fn updated(&mut self, name: &str) -> Result<FilePatch, PatchError> {
        let old = self.name(name)?;
        self.at += 1;
        let moved = self.peek().and_then(|line| line.strip_prefix("*** Move to: "));
        let new = match moved {
            Some(name) => {
                let name = self.name(name)?;
                self.at += 1;
                name
            }
            None => old.clone(),
        };
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| !line.starts_with("*** ")) {
            hunks.push(self.hunk()?);
        }
        if hunks.is_empty() && moved.is_none() {
            return Err(self.unexpected("a hunk (`@@`, then lines with ` `, `-` or `+` first)"));
        }
        Ok(file(Some(old), Some(new), hunks))
    }

    /// Anchors, lines, and whether these are the file's last lines. The first hunk of a file needs no anchors.
    fn hunk(&mut self) -> Result<PatchHunk, PatchError> {
        let (mut anchors, mut line) = (Vec::new(), None);
        let mut header = String::from("@@");
        while let Some(text) = self.peek().and_then(|line| line.strip_prefix("@@")) {
            header = format!("@@{text}");
            match (ranges(&header), text.trim()) {
                // In the form of a unified diff.
                (Some((start, ..)), _) => line = Some(start),
                (None, "") => {}
                (None, anchor) => anchors.push(anchor.to_owned()),
            }
            self.at += 1;
        }
        let lines = self.body()?;
        let is_end = self.peek().is_some_and(|line| line.trim_end() == END_OF_FILE);
        self.at += usize::from(is_end);
        let spot = match line.filter(|_| anchors.is_empty() && !is_end) {
            Some(line) => Spot::Line(line),
            None => Spot::Behind { anchors, is_end },
        };
        Ok(PatchHunk { header, spot, lines })
    }

    fn body(&mut self) -> Result<Vec<PatchLine>, PatchError> {
        let mut lines: Vec<PatchLine> = Vec::new();
        while let Some(line) = self.peek().filter(|line| !line.starts_with("*** ") && !line.starts_with("@@"))
        {
            let side = match line.as_bytes().first() {
                // An empty context line without its leading blank.
                Some(b' ') | None => Side::Both,
                Some(b'-') => Side::Old,
                Some(b'+') => Side::New,
                Some(b'\\') => {
                    if let Some(last) = lines.last_mut() {
                        last.end = LineEnd::Nothing;
                    }
                    self.at += 1;
                    continue;
                }
                Some(_) => return Err(self.unexpected("a line of a hunk (` `, `-` or `+` first)")),
            };
            let text = line.get(1..).unwrap_or_default().to_owned();
            lines.push(PatchLine { side, text, end: LineEnd::Newline });
            self.at += 1;
        }
        if lines.is_empty() {
            Err(self.unexpected("a line of a hunk (` `, `-` or `+` first)"))
        } else {
            Ok(lines)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn problem(patch: &str) -> String {
        parse(patch).unwrap_err().to_string()
    }

    #[test]
    fn files_are_added_changed_moved_and_deleted() {
        let patch = "\n*** Begin Patch\n*** Add File: new.txt\n+one\n+\n*** Update File: a.txt\n*** Move to: b.txt\n\
                     @@ class A\n@@ def b\n x\n-y\n+z\n\n*** End of File\n*** Delete File: gone.txt\n*** End Patch\n";
        assert!(is_envelope(patch));
        let files = parse(patch).unwrap();
        let names = |file: &FilePatch| (file.old.clone(), file.new.clone());
        assert_eq!(names(&files[0]), (None, Some("new.txt".into())));
        assert_eq!(names(&files[1]), (Some("a.txt".into()), Some("b.txt".into())));
        assert_eq!(names(&files[2]), (Some("gone.txt".into()), None));
        assert_eq!(files[2].deletion, Deletion::Whole);
        let hunk = &files[1].hunks[0];
        let anchors = vec!["class A".to_owned(), "def b".to_owned()];
        assert_eq!(hunk.spot, Spot::Behind { anchors, is_end: true });
        assert_eq!(hunk.lines.len(), 4);
        assert!(!is_envelope("--- a/x\n+++ b/x\n"));
        let bare = "*** Delete File: gone.txt\n*** End Patch";
        for around in ["```\n{}\n```\n", "apply_patch <<'EOF'\n*** Begin Patch\n{}\nEOF\n", "Here:\n\n{}"] {
            let patch = around.replace("{}", bare);
            assert!(is_envelope(&patch), "{patch}");
            assert_eq!(names(&parse(&patch).unwrap()[0]), (Some("gone.txt".into()), None), "{patch}");
        }
    }

    #[test]
    fn a_patch_without_its_last_line_is_taken_as_it_stands() {
        assert_eq!(parse("*** Begin Patch\n*** Add File: a\n+x\n").unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        assert!(problem("*** Begin Patch\n").contains("line 2"), "no file, no end");
        assert!(problem("*** Begin Patch\n*** End Patch").contains("no file"));
        assert!(problem("*** Begin Patch\n*** Add File: a\nx\n*** End Patch").contains("line 3"));
        assert!(problem("*** Begin Patch\n*** Update File: a\n*** End Patch").contains("a hunk"));
        assert!(problem("*** Begin Patch\n*** Update File: a\n@@\n@@\n*** End Patch").contains("line 5"));
        assert!(problem("*** Begin Patch\n*** Update File: \n*** End Patch").contains("file name"));
        assert!(problem("*** Begin Patch\nwords\n*** End Patch").contains("words"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(lines in proptest::collection::vec(
            prop_oneof![
                Just("*** Begin Patch"), Just("*** End Patch"), Just("*** Add File: a"), Just("*** Update File: b"),
                Just("*** Move to: c"), Just("*** Delete File: d"), Just("@@"), Just("@@ x"), Just("@@ -1 +1 @@"),
                Just("*** End of File"), Just(" x"), Just("-x"), Just("+é"), Just(""), Just("\\ No newline"), Just("é"),
            ], 0..12)) {
            drop(parse(&lines.join("\n")));
        }
    }
}
