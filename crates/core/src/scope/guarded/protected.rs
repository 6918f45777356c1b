//! The names that no agent may change, from a table. Compares names; does not look at the disk.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use super::lower;

/// One line of `protected.txt`, which explains its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedName {
    name: Cow<'static, str>,
    /// In lower case, for comparisons.
    folded: String,
    /// Where the name is protected.
    pub place: Where,
    /// Whether the name is that of a file or a directory.
    pub kind: ProtectedKind,
    /// What prevents a command from creating it.
    pub missing: WhenMissing,
    /// The reason, in words for the user.
    pub reason: &'static str,
}

/// Where a name is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In every directory.
    Anywhere,
    /// Only in the home, where shells, desktops and editors read it: elsewhere commands may create it.
    Home,
}

/// The type of a protected entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectedKind {
    /// A file.
    File,
    /// A directory with everything in it.
    Directory,
}

/// What prevents a command from creating a protected name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// A place-holder in its place while the command runs.
    Held,
    /// A check after the command, which removes it.
    Undone,
}

impl ProtectedName {
    /// The spelling that programs use, with `/` between its parts; the last part may hold `*`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it stands for several names.
    pub fn has_wildcard(&self) -> bool {
        self.name.contains('*')
    }

    /// Whether the name of a single entry matches.
    pub fn fits_entry(&self, name: &OsStr) -> bool {
        fits(&self.folded, &lower(name))
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.folded.split('/')
    }
}

static TABLE: LazyLock<Vec<ProtectedName>> =
    LazyLock::new(|| include_str!("protected.txt").lines().filter_map(line).collect());

pub(super) fn table() -> &'static [ProtectedName] {
    &TABLE
}

/// A test below finds lines that are no rows.
fn line(line: &'static str) -> Option<ProtectedName> {
    let mut rest = line.trim();
    if rest.is_empty() || rest.starts_with('#') {
        return None;
    }
    let mut column = || {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        rest = behind.trim_start();
        Some(word)
    };
    let (name, place, kind, missing) = (column()?, column()?, column()?, column()?);
    let name = spelled(name);
    Some(ProtectedName {
        folded: name.to_lowercase(),
        name,
        place: match place {
            "any" => Where::Anywhere,
            "home" => Where::Home,
            _ => return None,
        },
        kind: match kind {
            "file" => ProtectedKind::File,
            "dir" => ProtectedKind::Directory,
            _ => return None,
        },
        missing: match missing {
            "held" => WhenMissing::Held,
            "undone" => WhenMissing::Undone,
            _ => return None,
        },
        reason: rest,
    })
}

/// Restores blanks, which separate columns in the table.
fn spelled(name: &'static str) -> Cow<'static, str> {
    if name.contains("\\s") { name.replace("\\s", " ").into() } else { name.into() }
}

/// Whether an entry of this name is protected as a whole in any directory. Called for every entry of a search.
pub(super) fn is_entry(name: &OsStr) -> bool {
    static WHOLE: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| single().filter(|row| !row.has_wildcard()).map(|row| &*row.folded).collect());
    static FITTING: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| single().filter(|row| row.has_wildcard()).map(|row| &*row.folded).collect());
    let name = lower(name);
    WHOLE.contains(name.as_str()) || FITTING.iter().any(|pattern| fits(pattern, &name))
}

fn single() -> impl Iterator<Item = &'static ProtectedName> {
    table().iter().filter(|row| row.place == Where::Anywhere && !row.name.contains('/'))
}

/// The row that protects a path, wherever it lies: through itself or a directory above it.
pub(super) fn row_of(path: &Path) -> Option<&'static ProtectedName> {
    let names: Vec<String> = path.components().map(|name| lower(name.as_os_str())).collect();
    let found = |row: &&ProtectedName| (0..names.len()).any(|start| leads(row, &names[start..]));
    table().iter().find(found)
}

fn leads(row: &ProtectedName, names: &[String]) -> bool {
    let parts = row.parts();
    parts.clone().count() <= names.len() && parts.zip(names).all(|(part, name)| fits(part, name))
}

/// A single `*` matches any run of characters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(first) = pieces.next() else { return false };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_row_with_a_reason_and_none_stands_twice() {
        let lines = include_str!("protected.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), table().len());
        for (index, row) in table().iter().enumerate() {
            assert!(row.reason.split(' ').count() >= 3, "{row:?}");
            assert!(!row.name.contains('\\') && row.folded == row.name.to_lowercase(), "{row:?}");
            assert!(table()[..index].iter().all(|other| other.folded != row.folded), "{row:?}");
            assert!(
                !row.has_wildcard() || row.missing == WhenMissing::Undone,
                "nothing can stand for {row:?}"
            );
        }
    }

    #[test]
    fn what_editors_shells_and_agents_run_is_protected() {
        for path in [
            "/w/.helix/languages.toml",
            "/w/.nvim.lua",
            "/w/.exrc",
            "/w/a/.dir-locals.el",
            "/w/.devcontainer/devcontainer.json",
            "/w/.devcontainer.json",
            "/w/my.code-workspace",
            "/w/a/MY.Code-Workspace",
            "/w/opencode.json",
            "/w/.windsurf/hooks.json",
            "/w/.kiro/hooks/x",
            "/w/.roo/mcp.json",
            "/w/.husky/pre-commit",
            "/w/.envrc",
            "/w/mise.toml",
            "/w/.pre-commit-config.yaml",
            "/w/.clinerules/hooks/x",
            "/w/.github/hooks/x.json",
            "/home/ada/.config/fish/config.fish",
            "/w/.zshrc",
            "/w/lefthook-local.json",
            "/w/.config/lefthook.toml",
            "/w/prek.toml",
            "/w/.huskyrc.json",
            "/w/.Rprofile",
            "/w/.RData",
            "/w/.ghci",
            "/w/rust-project.json",
            "/w/.externalToolBuilders/x.launch",
            "/w/.openhands/setup.sh",
            "/w/codebuff.json",
            "/w/.rovodev/mcp.json",
            "/w/.auggie/settings.json",
            "/w/_darcs/prefs/defaults",
            "/home/ada/.cargo/bin/cargo",
            "/home/ada/.config/Code/User/tasks.json",
            "/home/ada/.config/code/user/tasks.json",
            "/home/ada/.config/Code - Insiders/User/tasks.json",
            "/home/ada/.config/VSCodium/User/tasks.json",
            "/home/ada/.config/tig/config",
            "/home/ada/.curlrc",
        ] {
            assert!(row_of(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/w/AGENTS.md",
            "/w/.cursorrules",
            "/w/.clinerules/style.md",
            "/w/.github/workflows/ci.yml",
            "/w/package.json",
            "/w/code-workspace",
            "/w/.config/x",
            "/w/bin/run",
            "/w/data.RData",
            "/w/.yarnrc",
            "/w/rust-toolchain.toml",
            "/w/.jj/repo/store/x",
        ] {
            assert!(row_of(Path::new(path)).is_none(), "{path}");
        }
    }

    /// These exact names are looked up on disk.
    #[test]
    fn names_are_spelled_as_programs_look_for_them() {
        for name in [
            ".config/Code/User",
            ".config/Code - Insiders/User",
            ".Rprofile",
            ".RData",
            ".externalToolBuilders",
        ] {
            assert!(table().iter().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        for (pattern, name) in
            [("*.pem", "a.pem"), ("*.pem", ".pem"), (".env*", ".env"), ("*a*b.json", "xaybb.json")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.pem", "pem"), (".env*", "x.env"), ("*a*b.json", "b.json"), ("a", "ab"), ("a*a", "a")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
