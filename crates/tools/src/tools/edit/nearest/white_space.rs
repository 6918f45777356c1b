//! Describes how two lines differ that are equal but for white space. Compares nothing else.

/// Whether both have the same words in the same order.
pub(super) fn is_all_that_differs(line: &str, wanted: &str) -> bool {
    // Most compared lines are equal.
    line == wanted || line.split_whitespace().eq(wanted.split_whitespace())
}

/// The place of the first difference, and what each line has there; `None` for equal lines.
pub(super) fn difference(line: &str, wanted: &str) -> Option<String> {
    let same: usize = line
        .chars()
        .zip(wanted.chars())
        .take_while(|(one, other)| one == other)
        .map(|(c, _)| c.len_utf8())
        .sum();
    if same == line.len() && same == wanted.len() {
        return None;
    }
    // All the white space around the difference.
    let start = line[..same].trim_end().len();
    let blanks = |text: &str| {
        let rest = &text[start..];
        named(&rest[..rest.len() - rest.trim_start().len()])
    };
    let (file, given) = (blanks(line), blanks(wanted));
    Some(match (start, line[start..].trim().is_empty()) {
        (0, _) => format!("the line begins with {file} and `old_string` with {given}"),
        (_, true) => format!("the line ends with {file} and `old_string` with {given}"),
        (_, false) => {
            let word = line[..start].trim_start();
            let word = &word[word.ceil_char_boundary(word.len().saturating_sub(WORD_BYTES))..];
            format!("after `{word}` the file has {file}, but `old_string` has {given}")
        }
    })
}

/// How much of a line identifies a place in it.
const WORD_BYTES: usize = 24;

/// `1 tab and 2 spaces`.
fn named(blanks: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for blank in blanks.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == blank => *count += 1,
            Some(_) | None => runs.push((blank, 1)),
        }
    }
    let run = |(blank, count): &(char, usize)| {
        let s = if *count == 1 { "" } else { "s" };
        match blank {
            ' ' => format!("{count} space{s}"),
            '\t' => format!("{count} tab{s}"),
            '\r' => format!("{count} carriage return{s}"),
            other => format!("{count} U+{:04X}", *other as u32),
        }
    };
    match runs.is_empty() {
        true => "none".to_owned(),
        false => runs.iter().map(run).collect::<Vec<_>>().join(" and "),
    }
}
