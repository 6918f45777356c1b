//! Quotes a text as one word of a shell. Some clients join program and arguments to a line for the user's
//! shell, where a text that we pass for people to read must not run: it would be outside of any sandbox.

/// A word with this meaning in sh, bash, zsh and fish. Fish reads a backslash between single quotes as an
/// escape, so backslashes stand outside of the quotes.
pub(super) fn word(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=,@%+".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let inner = text.chars().fold(String::with_capacity(text.len() + 2), |mut quoted, character| {
        match character {
            '\'' => quoted.push_str("'\\''"),
            '\\' => quoted.push_str("'\\\\'"),
            other => quoted.push(other),
        }
        quoted
    });
    format!("'{inner}'")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// The words that `shell` reads from the quoted ones.
    fn read_by(shell: &str, texts: &[String]) -> Vec<String> {
        let words: Vec<String> = texts.iter().map(|text| word(text)).collect();
        let line = format!("printf '%s\\0' {}", words.join(" "));
        let output = Command::new(shell).args(["-c", &line]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        printed.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_is_shown_as_a_person_would_write_it() {
        for (text, expected) in [
            ("ls", "ls"),
            ("", "''"),
            ("ls -la; rm x", "'ls -la; rm x'"),
            ("grep 'a' b", r"'grep '\''a'\'' b'"),
            (r"a\'b", r"'a'\\''\''b'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn every_shell_reads_one_word_and_runs_nothing() {
        let nasty = r#"[a '"\\$`(){};&|<>*?!#~\n-]{1,12}"#;
        proptest!(ProptestConfig::with_cases(64), |(texts in prop::collection::vec(nasty, 1..20))| {
            for shell in ["sh", "bash"] {
                prop_assert_eq!(&read_by(shell, &texts), &texts, "{}", shell);
            }
        });
    }
}
