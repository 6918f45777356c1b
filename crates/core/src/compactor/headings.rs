//! The headings of a note: recognises the forms that models write, and writes one form. Pure.

/// The headings of a note, as in the agent's prompt.
pub(super) const HEADINGS: [&str; 7] = [
    "## Goal",
    "## State",
    "## Files",
    "## Decisions",
    "## Facts from the user",
    "## Open questions",
    "## Next step",
];

/// The note with its headings as we write them, if it has any.
pub(super) fn headed(note: &str) -> Option<String> {
    let mut written = String::with_capacity(note.len());
    let (mut found, mut is_code) = (false, false);
    for line in note.lines() {
        is_code ^= line.trim_start().starts_with("```");
        match heading(line).filter(|_| !is_code) {
            Some((heading, rest)) => {
                found = true;
                written.push_str(heading);
                if !rest.is_empty() {
                    written.push('\n');
                    written.push_str(rest);
                }
            }
            None => written.push_str(line),
        }
        written.push('\n');
    }
    written.truncate(written.trim_end().len());
    found.then_some(written)
}

/// The heading in a line, and the text behind it in the same line.
fn heading(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim();
    let is_decoration = |letter: char| "#*_:. ".contains(letter) || letter.is_ascii_digit();
    let bare = line.trim_start_matches(is_decoration);
    let is_marked = line.starts_with('#') || line.starts_with("**") || line.starts_with("__");
    HEADINGS.into_iter().find_map(|heading| {
        let name = heading.trim_start_matches(is_decoration);
        let start = bare.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name))?;
        let behind = &bare[start.len()..];
        let rest = behind.trim_start_matches(['*', '_', ':', '#', ' ']).trim_end();
        // Text may follow a heading in its line; but a sentence that begins with the same word is no heading.
        let says_so =
            behind[..behind.len() - behind.trim_start_matches(['*', '_', ':', ' ']).len()].contains(':');
        (rest.is_empty() || is_marked && says_so).then_some((heading, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_known_however_it_is_written() {
        for (line, rest) in [
            ("## Goal", ""),
            ("# Goal", ""),
            ("### goal ###", ""),
            ("## Goal:", ""),
            ("**Goal**", ""),
            ("**Goal:**", ""),
            ("__Goal__", ""),
            ("1. **Goal**", ""),
            ("## 1. Goal", ""),
            ("Goal:", ""),
            ("GOAL", ""),
            ("**Goal:** mend the parser", "mend the parser"),
            ("## Goal: mend the parser", "mend the parser"),
        ] {
            assert_eq!(heading(line), Some(("## Goal", rest)), "{line}");
        }
        assert_eq!(heading("**Facts from the User**"), Some(("## Facts from the user", "")));
        for line in
            ["", "-", "Goals", "## Goals", "State is kept in a file: x", "- Goal: mend", "Goal: mend", "é"]
        {
            assert_eq!(heading(line), None, "{line}");
        }
    }

    #[test]
    fn a_note_keeps_its_text_and_its_code() {
        let note = "# Goal\nmend\n\n**State:** half done\n```\n# Goal\n```\nend\n";
        let written = headed(note).unwrap();
        assert_eq!(written, "## Goal\nmend\n\n## State\nhalf done\n```\n# Goal\n```\nend");
        assert_eq!(headed(&written).as_deref(), Some(&*written));
        assert_eq!(headed("all is well\n"), None);
    }
}
