//! Which lines of a repository's configuration run nothing, and the configuration without the others.

use crate::shell::names_no_program;

/// What git writes by itself into new repositories and modules beyond what a look at a repository takes for granted.
const ALSO_HARMLESS: [(&str, &[&str]); 5] = [
    ("core", &["sparsecheckout", "sparsecheckoutcone", "untrackedcache", "commitgraph", "sharedrepository"]),
    ("submodule", &["url", "active", "branch"]),
    ("remote", &["promisor", "partialclonefilter", "skipdefaultupdate", "skipfetchall"]),
    ("extensions", &["partialclone"]),
    ("lfs", &["repositoryformatversion"]),
];

/// The text with nothing in it that names a program, where that is not the text itself. `has_tree` judges `core.worktree`.
pub(super) fn without_programs(text: &str, has_tree: impl Fn(&str) -> bool) -> Option<String> {
    let mut kept = String::new();
    let mut section: Option<String> = None;
    let mut is_continued = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let continues = trimmed.ends_with('\\');
        let stays = match (is_continued || continues, trimmed.strip_prefix('[')) {
            (true, _) => {
                // What it would begin is not known.
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
                section.as_deref().is_some_and(|section| is_harmless(section, trimmed, &has_tree))
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

fn is_harmless(section: &str, line: &str, has_tree: impl Fn(&str) -> bool) -> bool {
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let key = key.split([' ', '\t']).next().unwrap_or_default().to_lowercase();
    if (section, key.as_str()) == ("core", "worktree") {
        let value = value.trim();
        return !value.contains(['"', '\\', '#', ';']) && has_tree(value);
    }
    names_no_program(section, &key)
        || ALSO_HARMLESS.iter().any(|(known, keys)| *known == section && keys.contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_name_no_program_stay() {
        let harmless = "[core]\n\tbare = false\n\tworktree = ../in\n[remote \"origin\"]\n\turl = https://example.org\n# x\n";
        let inside = |value: &str| value == "../in";
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
        ] {
            let kept = without_programs(&format!("{harmless}{bad}"), inside).expect(bad);
            assert!(kept.starts_with(harmless.trim_end()), "{bad}: {kept}");
            assert!(!kept.contains("run") && !kept.contains("ada"), "{bad}: {kept}");
            assert_eq!(without_programs(&kept, inside), None, "{bad}: {kept}");
        }
    }
}
