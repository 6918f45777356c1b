//! Places of keys and tokens below a home, from a table. Does not look at the disk.

use std::sync::LazyLock;

use super::ProtectedKind;

/// One line of `secret.txt`, which explains its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretAtHome {
    pub(super) name: &'static str,
    pub(super) kind: ProtectedKind,
    reason: &'static str,
}

static TABLE: LazyLock<Vec<SecretAtHome>> =
    LazyLock::new(|| include_str!("secret.txt").lines().filter_map(line).collect());

pub(super) fn table() -> &'static [SecretAtHome] {
    &TABLE
}

/// A test below finds lines that are no rows.
fn line(line: &'static str) -> Option<SecretAtHome> {
    let (name, rest) = line.trim().split_once(char::is_whitespace).filter(|(name, _)| *name != "#")?;
    let (kind, reason) = rest.trim_start().split_once(char::is_whitespace)?;
    let kind = match kind {
        "file" => ProtectedKind::File,
        "dir" => ProtectedKind::Directory,
        _ => return None,
    };
    Some(SecretAtHome { name, kind, reason: reason.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_row_with_a_reason_and_none_stands_twice() {
        let lines = include_str!("secret.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), table().len());
        for (index, row) in table().iter().enumerate() {
            assert!(!row.reason.is_empty() && !row.name.starts_with('/'), "{row:?}");
            assert!(table()[..index].iter().all(|other| other.name != row.name), "{row:?}");
        }
    }
}
