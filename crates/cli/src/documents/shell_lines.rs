//! Splits the commands of a documented shell line: words, quotes, pipes. Runs nothing and expands nothing.

/// The simple commands of a block, each as its words. A backslash continues a line.
pub(super) fn commands(block: &str) -> Result<Vec<Vec<String>>, String> {
    let joined = block.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        found.extend(commands_of_line(line)?);
    }
    Ok(found)
}

fn commands_of_line(line: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut characters = line.chars().peekable();
    while let Some(&next) = characters.peek() {
        match next {
            ' ' | '\t' => drop(characters.next()),
            '#' => break,
            '|' | ';' | '&' => {
                characters.next();
                all.push(std::mem::take(&mut words));
            }
            '>' | '<' => {
                characters.next();
                while characters.next_if(|c| matches!(c, '>' | '&' | ' ')).is_some() {}
                word(&mut characters, line)?;
            }
            _ => words.push(word(&mut characters, line)?),
        }
    }
    all.push(words);
    // Assignments before the program set its environment.
    let is_assignment = |word: &String| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    let programs = all.into_iter().map(|words| words.into_iter().skip_while(is_assignment).collect());
    Ok(programs.filter(|words: &Vec<String>| !words.is_empty()).collect())
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn word(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, line: &str) -> Result<String, String> {
    let mut word = String::new();
    while let Some(&next) = characters.peek() {
        match next {
            ' ' | '\t' | '|' | ';' | '&' | '>' | '<' => break,
            '\'' | '"' => {
                characters.next();
                loop {
                    match characters.next() {
                        Some(end) if end == next => break,
                        Some('\\') if next == '"' => word.extend(characters.next()),
                        Some(other) => word.push(other),
                        None => return Err(format!("a quote that does not end: {line}")),
                    }
                }
            }
            '\\' => {
                characters.next();
                word.extend(characters.next());
            }
            other => {
                characters.next();
                word.push(other);
            }
        }
    }
    Ok(word)
}

#[test]
fn lines_are_taken_apart_as_a_shell_would() {
    let read = |line: &str| commands(line).unwrap().iter().map(|words| words.join("·")).collect::<Vec<_>>();
    assert_eq!(
        read("attache mcp add --env A='${A}' a \"b c\" # why"),
        ["attache·mcp·add·--env·A=${A}·a·b c"]
    );
    assert_eq!(read("git diff | attache chat -p x >out"), ["git·diff", "attache·chat·-p·x"]);
    assert_eq!(read("KEY=… attache doctor && echo ok"), ["attache·doctor", "echo·ok"]);
    assert_eq!(read("a \\\n  b\nc"), ["a·b", "c"]);
    assert!(read("# nothing").is_empty());
    assert!(commands("echo 'open").is_err());
}
