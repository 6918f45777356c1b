//! The lines of the reviewed corpus. What rules say of each is tested with the tools, which know the rules:
//! `crates/tools/tests/shell/corpus.rs`.

pub(crate) struct Line {
    pub(crate) class: String,
    pub(crate) verdict: String,
    pub(crate) command: String,
}

pub(crate) fn lines() -> Vec<Line> {
    let text = include_str!("corpus.tsv");
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

fn line(line: &str) -> Line {
    let mut columns = line.splitn(3, '\t');
    let mut next = || columns.next().unwrap_or_else(|| panic!("three columns: {line}")).to_owned();
    Line { class: next(), verdict: next(), command: unescaped(&next()) }
}

pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some('{') => {
                    let count: String =
                        characters.by_ref().take_while(|character| *character != '}').collect();
                    let count: usize = count.split(' ').next().unwrap().parse().unwrap();
                    plain.push_str(&" ".repeat(count));
                }
                Some(other) => plain.push(other),
                None => panic!("an escape at the end of {text}"),
            },
            (character, false) => plain.push(character),
        }
    }
    plain
}
