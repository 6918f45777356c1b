//! Which lines of a repository's configuration run nothing, and the configuration without the other lines.

use super::local_places::LocalPlace;
use crate::git_config::names_no_program;

/// Further keys that git itself writes into new repositories and modules, beside those of `git_config`.
const ALSO_HARMLESS: [(&str, &[&str]); 5] = [
    ("core", &["sparsecheckout", "sparsecheckoutcone", "untrackedcache", "commitgraph", "sharedrepository"]),
    ("submodule", &["url", "active", "branch"]),
    ("remote", &["promisor", "partialclonefilter", "skipdefaultupdate", "skipfetchall"]),
    ("extensions", &["partialclone"]),
    ("lfs", &["repositoryformatversion"]),
];

/// The text without everything that names a program; `None` if that changes nothing. `may_lead` decides where
/// its paths may lead.
pub(super) fn without_programs(text: &str, may_lead: impl Fn(&LocalPlace) -> bool) -> Option<String> {
    let mut kept = String::new();
    let mut section: Option<String> = None;
    let mut is_continued = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let continues = trimmed.ends_with('\\');
        let stays = match (is_continued || continues, trimmed.strip_prefix('[')) {
            (true, _) => {
                // We do not know which section this line would begin.
                section = section.filter(|_| !trimmed.starts_with('['));
                false
            }
            (false, Some(header)) => {
                let header = header.split_once(']').filter(|(_, rest)| rest.is_empty());
                section = header
                    .and_then(|(header, _)| header.split([' ', '"', '.']).next())
                    .map(str::to_lowercase);
                section.is_some()
            }
            (false, None) if trimmed.is_empty() || trimmed.starts_with(['#', ';']) => true,
            (false, None) => {
                section.as_deref().is_some_and(|section| is_harmless(section, trimmed, &may_lead))
            }
        };
        is_continued = continues;
        if stays {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    (kept.trim_end() != text.trim_end()).then_some(kept)
}

/// The work trees that the text sets, as it writes them: git uses the last one, but may have used any of them
/// before.
pub(super) fn work_trees(text: &str) -> Vec<String> {
    let is_tree =
        |setting: &Setting| setting.is_plain && (&*setting.section, &*setting.key) == ("core", "worktree");
    settings(text).into_iter().filter(is_tree).map(|setting| setting.value).collect()
}

/// One line of a configuration, as git reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// In lower case, without its subsection.
    pub(super) section: String,
    /// The section has no subsection.
    is_plain: bool,
    pub(super) key: String,
    pub(super) value: String,
}

/// All settings of a text. Skips a line that git would refuse, because the lines after it may count.
pub(super) fn settings(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let (mut section, mut is_plain) = (String::new(), true);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let header_end = rest.find([']', '\n']).unwrap_or(rest.len());
            // A quoted subsection may contain a bracket.
            let quoted = rest[..header_end].find('"').and_then(|open| {
                let inner = &rest[open + 1..];
                let close = inner.find(['"', '\n']).filter(|close| inner[*close..].starts_with('"'))?;
                Some(open + 1 + close + 1)
            });
            let end = quoted.unwrap_or(0);
            let end = end + rest[end..].find([']', '\n']).unwrap_or(rest.len() - end);
            let header = rest[1..end].trim();
            let name = header.split(['.', ' ', '\t', '"']).next().unwrap_or_default();
            (section, is_plain) = (name.to_lowercase(), name.len() == header.len());
            rest = rest[end..].trim_start_matches(']').trim_start();
            continue;
        }
        let line_end = rest.find('\n').unwrap_or(rest.len());
        if matches!(first, '#' | ';') {
            rest = rest[line_end..].trim_start();
            continue;
        }
        let (key, behind) = match rest[..line_end].split_once('=') {
            Some((key, _)) => (key, &rest[key.len() + 1..]),
            None => (&rest[..line_end], &rest[line_end..]),
        };
        let (value, behind) = value(behind);
        found.push(Setting { section: section.clone(), is_plain, key: key.trim().to_lowercase(), value });
        rest = behind.trim_start();
    }
    found
}

/// A value without its quotes, escapes and comment, over all its lines, and the text after it.
fn value(text: &str) -> (String, &str) {
    let (mut value, mut end) = (String::new(), text.len());
    let (mut is_quoted, mut is_comment) = (false, false);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\n' => {
                end = at;
                break;
            }
            _ if is_comment => {}
            '"' => is_quoted = !is_quoted,
            '\\' => match characters.next() {
                Some((_, '\n')) => {}
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                other => value.extend(other.map(|(_, escaped)| escaped)),
            },
            '#' | ';' if !is_quoted => is_comment = true,
            other => value.push(other),
        }
    }
    (value.trim().to_owned(), &text[end..])
}

/// Whether a key never concerns programs or files, whatever its value.
pub(super) fn is_harmless_key(section: &str, key: &str) -> bool {
    names_no_program(section, key)
        || ALSO_HARMLESS.iter().any(|(known, keys)| *known == section && keys.contains(&key))
}

fn is_harmless(section: &str, line: &str, may_lead: impl Fn(&LocalPlace) -> bool) -> bool {
    let (key, text) = line.split_once('=').unwrap_or((line, ""));
    let key = key.split([' ', '\t']).next().unwrap_or_default().to_lowercase();
    let is_tree = (section, key.as_str()) == ("core", "worktree");
    if is_tree && text.contains(['"', '\\', '#', ';']) {
        return false;
    }
    let leads = || LocalPlace::of(section, &key, &value(text).0);
    (is_tree || is_harmless_key(section, &key)) && leads().is_none_or(|place| may_lead(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_trees_are_found_as_git_finds_them() {
        for (text, expected) in [
            ("[core]\n\tworktree = ../in\n", "../in"),
            ("[Core]\n WorkTree=\"../a b\" # x\n", "../a b"),
            ("[core] worktree = ../in ; y\n", "../in"),
            ("[core]\n\tworktree = ../\\\"in\n", "../\"in"),
        ] {
            assert_eq!(work_trees(text), [expected], "{text}");
        }
        assert_eq!(work_trees("[other]\n\tworktree = x\n[core \"y\"]\n\tworktree = x\n"), [""; 0]);
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "# x\n[core] hooksPath = a b ; c\n\tpager\n[include]\n path=\"x;y\" # z\n[filter \"a]b\"]\n\tclean = \\\n run %f\n[Alias.x]\nst = !a\\\"b\n";
        let found: Vec<_> =
            settings(text).iter().map(|one| format!("{}.{}={}", one.section, one.key, one.value)).collect();
        assert_eq!(
            found,
            [
                "core.hookspath=a b",
                "core.pager=",
                "include.path=x;y",
                "filter.clean=run %f",
                "alias.st=!a\"b"
            ]
        );
    }

    #[test]
    fn only_lines_that_name_no_program_stay() {
        let harmless = "[core]\n\tbare = false\n\tworktree = ../in\n[remote \"origin\"]\n\turl = https://example.org\n# x\n";
        let inside = |place: &LocalPlace| *place == LocalPlace::WorkTree("../in".into());
        assert_eq!(without_programs(harmless, inside), None);
        for bad in [
            "[core]\n\tfsmonitor = ./run\n",
            "[core]\n\thooksPath = x\n",
            "[core]\n\tsshCommand = x\n",
            "[core]\n\tworktree = /home/ada\n",
            "[core]\n\tworktree = \"../in\"\n",
            "[alias]\n\tst = !run\n",
            "[filter \"x\"]\n\tsmudge = run\n",
            "[include]\n\tpath = x\n",
            "[user]\n\tname = a\\\n[core]\n\tfsmonitor = ./run\n",
            "[core] fsmonitor = ./run\n",
            "\u{feff}[core]\n\tfsmonitor = ./run\n",
            "fsmonitor = x\n",
            "[submodule \"x\"]\n\tupdate = !run\n",
            "[remote \"x\"]\n\turl = /home/ada\n",
            "[remote \"x\"]\n\tpushurl = \"file:///home/ada\" # x\n",
            "[branch \"x\"]\n\tremote = ../run\n",
            "[remote \"x\"]\n\treceivepack = run\n",
            "[url \"/x\"]\n\tinsteadOf = run\n",
        ] {
            let kept = without_programs(&format!("{harmless}{bad}"), inside).expect(bad);
            assert!(kept.starts_with(harmless.trim_end()), "{bad}: {kept}");
            assert!(!kept.contains("run") && !kept.contains("ada"), "{bad}: {kept}");
            assert_eq!(without_programs(&kept, inside), None, "{bad}: {kept}");
        }
    }
}
