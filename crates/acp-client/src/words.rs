//! The words of a command line, as a shell would cut them; nothing of it is run or replaced by a shell.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    #[error("the command of the agent is empty")]
    Empty,
    #[error("the command of the agent has a {0} that is not closed")]
    Open(&'static str),
}

/// Blanks part words; single and double quotes and backslashes keep what they keep in a shell.
pub fn words_of(line: &str) -> Result<Vec<String>, BadCommand> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            blank if blank.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(BadCommand::Open("single quote"))? {
                        '\'' => break,
                        inside => word.push(inside),
                    }
                }
            }
            '"' => quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => {
                let next = rest.next().ok_or(BadCommand::Open("backslash"))?;
                word.get_or_insert_default().push(next);
            }
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        Some(_) | None => Err(BadCommand::Empty),
    }
}

/// Up to the closing double quote.
fn quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), BadCommand> {
    loop {
        match rest.next().ok_or(BadCommand::Open("double quote"))? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or(BadCommand::Open("double quote"))? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            inside => word.push(inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_cut_as_a_shell_cuts_them() {
        for (line, words) in [
            ("goose acp", vec!["goose", "acp"]),
            ("  npx\t@x/agent@1.2  --acp ", vec!["npx", "@x/agent@1.2", "--acp"]),
            (
                r#"'/opt/my agent/run' --name "a \"b\" \n" c\ d"#,
                vec!["/opt/my agent/run", "--name", r#"a "b" \n"#, "c d"],
            ),
            (r#"a"b"'c'd ''"#, vec!["abcd", ""]),
            ("sh -c 'echo $HOME; ls'", vec!["sh", "-c", "echo $HOME; ls"]),
        ] {
            assert_eq!(words_of(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_no_command_is_refused() {
        for line in ["", "  ", "''", "'' acp"] {
            assert_eq!(words_of(line), Err(BadCommand::Empty), "{line}");
        }
        assert_eq!(words_of("goose 'acp"), Err(BadCommand::Open("single quote")));
        assert_eq!(words_of("goose \"acp\\"), Err(BadCommand::Open("double quote")));
        assert_eq!(words_of("goose \\"), Err(BadCommand::Open("backslash")));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back_as_they_were(words in prop::collection::vec("\\PC{1,12}", 1..6)) {
            let line: Vec<String> =
                words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
            prop_assert_eq!(words_of(&line.join(" ")).unwrap(), words);
        }

        #[test]
        fn no_line_is_too_odd(line in any::<String>()) {
            drop(words_of(&line));
        }
    }
}
