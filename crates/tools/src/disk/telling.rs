//! Which files of git's configuration contain passwords or tokens: printing them asks. Runs nothing.

use std::path::{Path, PathBuf};

use attache_sandbox::git_guard::configurations;
use attache_sandbox::limits::GIT_CONFIG_BYTES;
use attache_sandbox::regular_file;

/// Parts of keys whose values are secrets, in lower case.
const KEYS: [&str; 7] = ["extraheader", "password", "passwd", "token", "secret", "apikey", "smtppass"];

pub(super) fn telling_configuration(directory: &Path) -> Vec<PathBuf> {
    let Ok(directory) = directory.canonicalize() else { return Vec::new() };
    let tells = |file: &PathBuf| match regular_file::read_if_there(file, GIT_CONFIG_BYTES) {
        Ok(None) => false,
        // A file that is too large to read may contain anything.
        Ok(Some(text)) => {
            text.len() as u64 > GIT_CONFIG_BYTES || holds_secrets(&String::from_utf8_lossy(&text))
        }
        // So may a file that can't be read now: its owner can change that.
        Err(_) => true,
    };
    configurations(&directory).into_iter().filter(tells).collect()
}

fn holds_secrets(text: &str) -> bool {
    let is_secret = |line: &str| {
        let line = line.trim_start().to_lowercase();
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default();
        !line.starts_with(['#', ';']) && (has_user(&line) || KEYS.iter().any(|secret| key.contains(secret)))
    };
    // A continued line belongs to the previous one.
    text.replace("\\\n", "").lines().any(is_secret)
}

/// `https://TOKEN@host`, in a value or in the name of a section. The user name after `ssh://` is no secret,
/// unless a password follows it.
fn has_user(line: &str) -> bool {
    line.match_indices("://").any(|(at, found)| {
        let scheme = line[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '+').next().unwrap_or("");
        let authority = line[at + found.len()..].split(['/', '"', '\'', ' ', '\t']).next().unwrap_or("");
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| !scheme.ends_with("ssh") || user.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_user_and_keys_of_secrets_are_found() {
        for text in [
            "[remote \"o\"]\n\turl = https://u:token@h/x\n",
            "[remote \"o\"]\n\turl = \"https://ghp_x@github.com/a/b\"",
            "[remote \"o\"]\n\turl = https://u:to\\\nken@h/x",
            "[remote \"o\"]\n\tpushurl=HTTP://u:p@h",
            "[url \"https://u:t@h/\"]\n\tinsteadOf = gh:",
            "[http \"https://h/\"]\n\textraHeader = AUTHORIZATION: basic eA==",
            "[github]\n\toauth-token = x",
            "[sendemail]\nsmtpPass = x",
            "[remote \"o\"]\n\turl = ssh://u:p@h/x",
            "[http]\n\tproxy = http://u:p@proxy:1",
        ] {
            assert!(holds_secrets(text), "{text}");
        }
        for text in [
            "",
            "[core]\n\tbare = false\n[user]\n\temail = a@b\n",
            "[remote \"o\"]\n\turl = https://github.com/a/b@v1\n",
            "[remote \"o\"]\n\turl = git@github.com:a/b\n\tpushurl = ssh://git@h/x\n",
            "# url = https://u:t@h/x",
        ] {
            assert!(!holds_secrets(text), "{text}");
        }
    }

    #[test]
    fn the_configuration_of_the_repository_around_counts() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join(".git")).unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        let config = base.join(".git/config");
        std::fs::write(&config, "[remote \"o\"]\n\turl = https://h/x\n").unwrap();
        assert!(!telling_configuration(&base.join("a/b")).contains(&config));
        std::fs::write(&config, "[remote \"o\"]\n\turl = https://u:t@h/x\n").unwrap();
        assert!(telling_configuration(&base.join("a/b")).contains(&config));
    }
}
