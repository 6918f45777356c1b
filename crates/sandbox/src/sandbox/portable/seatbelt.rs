//! The profile for `sandbox-exec` of macOS, made from the same plan as mounts are. Pure; starts nothing.
//!
//! Of several rules that fit, the last one counts, as the last mount does. Written from the published
//! descriptions of the language and compared with its published profiles; our tests can only look at the text.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::NetworkGrant;

use super::super::plan::{Mount, MountKind};
use super::super::protection::Protection;

/// What a profile is made of.
#[derive(Debug)]
pub(super) struct ProfilePlan<'a> {
    pub(super) mounts: &'a [Mount],
    pub(super) protection: &'a Protection,
    /// What is ours in it whatever it is called: the scratch and the user's package caches.
    pub(super) unprotected: &'a [PathBuf],
    pub(super) network: NetworkGrant,
}

/// Whatever is read, few things are written.
const BASE: &[&str] = &[
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    r#"(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/ptmx") (regex "^/dev/tty"))"#,
];

/// What acts for the user from outside: other programs of theirs, and what starts programs.
const OTHERS: &[&str] = &[
    "(deny signal)",
    "(allow signal (target same-sandbox))",
    "(deny process-info*)",
    "(allow process-info* (target same-sandbox))",
    "(deny appleevent-send)",
    "(deny lsopen)",
    "(deny job-creation)",
];

/// An error where a path is no text: a rule for another one would hold nothing.
pub(super) fn profile(plan: &ProfilePlan<'_>) -> io::Result<String> {
    let Protection { pinned, missing, links, .. } = plan.protection;
    let missing: BTreeSet<&Path> = missing.iter().map(|name| name.path.as_path()).collect();
    let mut lines: Vec<String> = BASE.iter().map(|&line| line.to_owned()).collect();
    for Mount { at, what } in plan.mounts {
        lines.push(match what {
            MountKind::Writable => format!("(allow file-read* file-write* (subpath {}))", quoted(at)?),
            MountKind::ReadOnly => format!("(deny file-write* (subpath {}))", quoted(at)?),
            // It is looked for by programs: that must not fail in another way than before.
            MountKind::EmptyFile | MountKind::EmptyDirectory if missing.contains(at.as_path()) => {
                format!("(deny file-write* (regex {}))", in_any_case(at)?)
            }
            MountKind::EmptyFile | MountKind::EmptyDirectory => {
                format!("(deny file-read* file-write* (subpath {}))", quoted(at)?)
            }
        });
    }
    for link in links {
        lines.push(format!("(deny file-write* (literal {}))", quoted(link)?));
    }
    for directory in pinned {
        lines.push(format!("(deny file-write-unlink (literal {}))", quoted(directory)?));
    }
    for own in plan.unprotected {
        lines.push(format!("(allow file-read* file-write* (subpath {}))", quoted(own)?));
    }
    if plan.network == NetworkGrant::Withheld {
        lines.push("(deny network*)".to_owned());
    }
    lines.extend(OTHERS.iter().map(|&line| line.to_owned()));
    Ok(lines.join("\n") + "\n")
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| {
        let text = format!("{} is no text, so no rule of Seatbelt can name it", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

fn quoted(path: &Path) -> io::Result<String> {
    Ok(in_quotes(text(path)?))
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A pattern for the path and all below, however it is written: most disks of macOS take `.VSCode` for
/// `.vscode`.
fn in_any_case(path: &Path) -> io::Result<String> {
    let mut pattern = String::from("^");
    for letter in text(path)?.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' => {
                pattern.extend(['[', letter.to_ascii_lowercase(), letter.to_ascii_uppercase(), ']']);
            }
            '.' | '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '\\' => {
                pattern.extend(['\\', letter]);
            }
            other => pattern.push(other),
        }
    }
    Ok(in_quotes(&(pattern + "(/|$)")))
}

#[cfg(test)]
mod tests {
    use super::super::super::protection::{ForbiddenName, HolderForm};
    use super::*;

    fn lines(network: NetworkGrant) -> Vec<String> {
        let mount = |at: &str, what| Mount { at: at.into(), what };
        let mounts = [
            mount("/w/a \"b\"", MountKind::Writable),
            mount("/w/a \"b\"/.git/hooks", MountKind::ReadOnly),
            mount("/Users/u/.ssh", MountKind::EmptyDirectory),
            mount("/w/a \"b\"/.mcp.json", MountKind::EmptyFile),
            mount("/s", MountKind::Writable),
        ];
        let protection = Protection {
            pinned: [PathBuf::from("/w/a \"b\"/.git")].into(),
            missing: [ForbiddenName { path: "/w/a \"b\"/.mcp.json".into(), form: HolderForm::File }].into(),
            links: [PathBuf::from("/w/a \"b\"/.zed")].into(),
            ..Protection::default()
        };
        let unprotected = [PathBuf::from("/s")];
        let plan =
            ProfilePlan { mounts: &mounts, protection: &protection, unprotected: &unprotected, network };
        profile(&plan).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_profile_lets_write_what_the_plan_does_and_nothing_else() {
        let lines = lines(NetworkGrant::Withheld);
        assert_eq!(lines[..3], ["(version 1)", "(allow default)", "(deny file-write*)"]);
        let expected = [
            r#"(allow file-read* file-write* (subpath "/w/a \"b\""))"#,
            r#"(deny file-write* (subpath "/w/a \"b\"/.git/hooks"))"#,
            r#"(deny file-read* file-write* (subpath "/Users/u/.ssh"))"#,
            r#"(deny file-write* (regex "^/[wW]/[aA] \"[bB]\"/\\.[mM][cC][pP]\\.[jJ][sS][oO][nN](/|$)"))"#,
            r#"(deny file-write* (literal "/w/a \"b\"/.zed"))"#,
            r#"(deny file-write-unlink (literal "/w/a \"b\"/.git"))"#,
            r#"(allow file-read* file-write* (subpath "/s"))"#,
            "(deny network*)",
            "(deny signal)",
        ];
        // The last word counts: each comes behind the one before.
        let places: Vec<usize> = expected
            .iter()
            .map(|line| lines.iter().rposition(|other| other == line).unwrap_or_else(|| panic!("{line}")))
            .collect();
        assert!(places.is_sorted(), "{lines:#?}");
    }

    #[test]
    fn every_rule_is_closed_and_the_network_is_left_where_it_is_granted() {
        for network in [NetworkGrant::Withheld, NetworkGrant::Granted, NetworkGrant::GrantedByName] {
            let lines = lines(network);
            assert_eq!(lines.contains(&"(deny network*)".to_owned()), network == NetworkGrant::Withheld);
            for line in lines {
                let outside: String = line.split('"').step_by(2).collect();
                let count = |letter| outside.matches(letter).count();
                let escaped = line.contains("\\\"");
                assert!(escaped || count('(') == count(')'), "{line}");
            }
        }
    }

    #[test]
    fn a_path_that_is_no_text_is_no_rule() {
        use std::os::unix::ffi::OsStrExt;
        let strange = PathBuf::from(std::ffi::OsStr::from_bytes(b"/w/\xff"));
        let mounts = [Mount { at: strange, what: MountKind::ReadOnly }];
        let plan = ProfilePlan {
            mounts: &mounts,
            protection: &Protection::default(),
            unprotected: &[],
            network: NetworkGrant::Withheld,
        };
        assert!(profile(&plan).unwrap_err().to_string().contains("no rule of Seatbelt"));
    }
}
