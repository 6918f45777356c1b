//! What the readable formats share: the title of a call, and the difference between two texts.

use crate::part::ToolPart;
use crate::ports::tool::Presentation;

/// One line that names a call.
pub(super) fn title<'a>(tool: &'a ToolPart, shown: &'a Presentation) -> &'a str {
    let title = if shown.title.is_empty() { tool.tool_name.as_str() } else { shown.title.as_str() };
    title.lines().next().unwrap_or_default()
}

/// The difference between two texts, with the equal lines at both ends as context. The texts are already cut to
/// hunks.
pub(super) fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let marked = |mark: char, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark}{line}")).collect()
    };
    let mut lines = marked(' ', &old[..start]);
    lines.extend(marked('-', &old[start..old.len() - end]));
    lines.extend(marked('+', &new[start..new.len() - end]));
    lines.extend(marked(' ', &old[old.len() - end..]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_stays_around_it() {
        assert_eq!(changed("a\nb\nc\n", "a\nX\nY\nc\n"), [" a", "-b", "+X", "+Y", " c"]);
        assert_eq!(changed("", "new\n"), ["+new"]);
        assert_eq!(changed("same\n", "same\n"), [" same"]);
        assert_eq!(changed("a\na\n", "a\n"), [" a", "-a"]);
    }
}
