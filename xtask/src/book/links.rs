//! Links and headings of a page of Markdown, as far as our pages use them. Blocks and spans of code have none.

use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub target: String,
    /// From 1 on.
    pub line: usize,
}

pub(super) fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let plain = without_code(line);
        for (place, _) in plain.match_indices("](") {
            let rest = &plain[place + 2..];
            if let Some(end) = rest.find(')') {
                found.push(Link { target: rest[..end].to_owned(), line: number });
            }
        }
    }
    found
}

/// What the headings of a page are called in addresses: as sites and forges make it.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        // A place that is named where there is no heading.
        found.extend(
            line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned),
        );
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String =
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|count| format!("{name}-{count}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// The page with the words of such a link in its place.
pub(super) fn without(text: &str, target: &str) -> String {
    let mut text = text.to_owned();
    let ending = format!("]({target})");
    while let Some(end) = text.find(&ending) {
        let Some(start) = text[..end].rfind('[') else { break };
        let words = text[start + 1..end].to_owned();
        text.replace_range(start..end + ending.len(), &words);
    }
    text
}

/// Numbered lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            return None;
        }
        (!in_block).then_some((index + 1, line))
    })
}

/// Spans of code keep their place, so that a link around one stays a link.
fn without_code(line: &str) -> String {
    line.split('`')
        .enumerate()
        .map(|(index, part)| if index % 2 == 0 { part.to_owned() } else { "x".repeat(part.len()) })
        .collect::<Vec<_>>()
        .join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md) `[c](d)` ![e](f.svg)\n```sh\n[g](h)\n```\n[`i`](j.md#k)\n";
        let found: Vec<(String, usize)> =
            links(text).into_iter().map(|link| (link.target, link.line)).collect();
        assert_eq!(found, [("b.md".into(), 1), ("f.svg".into(), 1), ("j.md#k".into(), 5)]);
    }

    #[test]
    fn headings_are_named_as_sites_name_them() {
        let text = "# One prompt: `attache chat -p`\n## Twice\n## Twice\n#no\n- <a id=\"own-name\"></a>x\n```\n# not\n```\n";
        let expected = ["one-prompt-attache-chat--p", "own-name", "twice", "twice-1"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }
}
