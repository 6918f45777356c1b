//! Rules about documents: ARCHITECTURE.md names every room and every module of the core, CHANGELOG.md is open.

use super::{Finding, SourceFile};

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = architecture(files);
    findings.extend(changelog(files));
    findings
}

fn architecture(files: &[SourceFile]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec![Finding::new("ARCHITECTURE.md", "is missing")];
    };
    let mut findings = Vec::new();
    for room in rooms(files) {
        if !names(&document.text, &format!("crates/{room}")) && !names(&document.text, &format!("`{room}`")) {
            findings.push(Finding::new("ARCHITECTURE.md", format!("does not name crates/{room}")));
        }
    }
    for module in core_modules(files) {
        if !names(&document.text, &format!("`{module}`")) {
            findings.push(Finding::new("ARCHITECTURE.md", format!("does not name the core's `{module}`")));
        }
    }
    findings
}

fn changelog(files: &[SourceFile]) -> Option<Finding> {
    let Some(document) = files.iter().find(|file| file.path == "CHANGELOG.md") else {
        return Some(Finding::new("CHANGELOG.md", "is missing"));
    };
    let open = document.text.lines().any(|line| matches!(line.trim(), "## Unreleased" | "## [Unreleased]"));
    (!open).then(|| Finding::new("CHANGELOG.md", "has no section `## Unreleased`"))
}

/// A following letter would make it another name.
fn names(text: &str, wanted: &str) -> bool {
    text.match_indices(wanted).any(|(start, _)| {
        let after = text[start + wanted.len()..].chars().next();
        wanted.ends_with('`') || !after.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

fn rooms(files: &[SourceFile]) -> Vec<&str> {
    let manifests = files.iter().filter_map(|file| file.path.strip_prefix("crates/"));
    manifests.filter_map(|path| path.strip_suffix("/Cargo.toml")).filter(|room| !room.contains('/')).collect()
}

fn core_modules(files: &[SourceFile]) -> Vec<&str> {
    let sources = files.iter().filter_map(|file| file.path.strip_prefix("crates/core/src/"));
    sources
        .filter_map(|path| path.strip_suffix(".rs"))
        .filter(|module| !module.contains('/') && *module != "lib")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn house(architecture: &str, changelog: &str) -> Vec<SourceFile> {
        vec![
            file("ARCHITECTURE.md", architecture),
            file("CHANGELOG.md", changelog),
            file("crates/acp/Cargo.toml", ""),
            file("crates/core/Cargo.toml", ""),
            file("crates/core/src/lib.rs", ""),
            file("crates/core/src/queue.rs", ""),
            file("crates/core/src/queue/drain.rs", ""),
        ]
    }

    #[test]
    fn a_complete_description_passes() {
        assert_eq!(check(&house("`core` has `queue`; crates/acp.", "## [Unreleased]\n")), []);
    }

    #[test]
    fn what_is_not_described_is_found() {
        let found = check(&house("`core`, crates/acpx", "## Unreleased"));
        let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, ["does not name crates/acp", "does not name the core's `queue`"]);
    }

    #[test]
    fn a_closed_changelog_is_found() {
        assert_eq!(check(&house("`core` `queue` `acp`", "## 0.1.0\n")).len(), 1);
    }

    #[test]
    fn missing_documents_are_found() {
        assert_eq!(check(&[]).len(), 2);
    }
}
