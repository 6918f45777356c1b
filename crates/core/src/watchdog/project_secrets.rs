//! The built-in rules: reading files that usually hold a project's secrets asks. Reads their table; does not
//! look at files.

use std::sync::LazyLock;

use super::rule::{Action, READ, Rule};
use crate::scope::name_fits as fits;

/// One line of `project_secrets.txt`, which explains its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    name: &'static str,
    what: SecretKind,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecretKind {
    Secret,
    Example,
}

static TABLE: LazyLock<Vec<Row>> =
    LazyLock::new(|| include_str!("project_secrets.txt").lines().filter_map(row).collect());

/// A test below finds lines that are no rows.
fn row(line: &'static str) -> Option<Row> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let (what, reason) = rest.trim_start().split_once(char::is_whitespace)?;
    let what = match what {
        "secret" => SecretKind::Secret,
        "example" => SecretKind::Example,
        _ => return None,
    };
    Some(Row { name, what, reason: reason.trim_start() })
}

/// The rules, one for each kind of file.
pub(super) fn rules() -> impl Iterator<Item = Rule> {
    secrets().map(|row| Rule::new(READ, row.name, Action::Ask))
}

/// The rule that matches a file, as its number in the order of `rules`.
pub(super) fn rule_of(path: &str) -> Option<usize> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lowered;
    // Called for every file of a search: most names have no capitals to convert.
    let name = match name.chars().any(char::is_uppercase) {
        true => {
            lowered = name.to_lowercase();
            lowered.as_str()
        }
        false => name,
    };
    let found = secrets().position(|row| match row.name.split_once('/') {
        None => fits(row.name, name),
        Some((directory, file)) => fits(file, name) && lies_below(path, directory),
    })?;
    let is_example = TABLE.iter().any(|row| row.what == SecretKind::Example && fits(row.name, name));
    (!is_example).then_some(found)
}

fn lies_below(path: &str, directory: &str) -> bool {
    path.rsplit('/').skip(1).any(|name| fits(directory, &name.to_lowercase()))
}

fn secrets() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(|row| row.what == SecretKind::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_row_with_a_reason() {
        let lines = include_str!("project_secrets.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), TABLE.len());
        for row in TABLE.iter() {
            assert!(row.name == row.name.to_lowercase() && row.reason.split(' ').count() >= 3, "{row:?}");
        }
    }

    #[test]
    fn what_usually_holds_secrets_is_known_by_its_name() {
        for path in [
            "/w/.env",
            "/w/.env.local",
            "/w/a/.ENV.Production",
            "/w/prod.env",
            "/w/server.key",
            "/w/cert.pem",
            "/w/.npmrc",
            "/w/.pypirc",
            "/w/prod.tfvars",
            "/w/my-service-account-7.json",
            "/w/aws_credentials.json",
            "/w/.env.test",
            "/w/.git/config",
            "/w/.GIT/Config",
            "/w/.git/modules/a/config",
            "/w/.git/worktrees/a/config.worktree",
            "/srv/mirror.git/config",
        ] {
            assert!(rule_of(path).is_some(), "{path}");
        }
        for path in [
            "/w/.env.example",
            "/w/.env.sample",
            "/w/prod.tfvars.example",
            "/w/env",
            "/w/.environment/x",
            "/w/environment.ts",
            "/w/key.rs",
            "/w/credentials.rs",
            "/w/secrets/x",
            "/w/id.pub",
            "/w/config",
            "/w/.github/config",
            "/w/.git/info/exclude",
        ] {
            assert!(rule_of(path).is_none(), "{path}");
        }
    }
}
