//! The environment of child processes: an allow-list, so that no key or token of ours reaches a command.

use std::ffi::{OsStr, OsString};

/// Where things are and how to speak; nothing here is a secret or reaches one by itself (no agent sockets, no proxies,
/// whose addresses may carry passwords).
const PASSED: [&str; 27] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NIX_PATH",
];

/// Told to every command: there is no terminal and nobody to answer.
const SET: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// What a command gets of `ours`.
pub(crate) fn for_command(
    ours: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    ours.filter(|(name, _)| passes(name)).chain(SET.map(|(name, value)| (name.into(), value.into())))
}

fn passes(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_passes() {
        let ours =
            ["PATH", "LC_ALL", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "BASH_ENV", "TERM"];
        let ours = ours.into_iter().map(|name| (name.into(), "ours".into()));
        let names: Vec<_> = for_command(ours).map(|(name, value)| format!("{name:?}={value:?}")).collect();
        let (passed, set) = names.split_at(2);
        assert_eq!(passed, [r#""PATH"="ours""#, r#""LC_ALL"="ours""#]);
        assert_eq!(set[0], r#""TERM"="dumb""#);
        assert_eq!(set.len(), SET.len());
    }
}
