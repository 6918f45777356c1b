//! `ps`: with `e` and `-E` it shows what other processes were given, keys among it.

use super::word::Word;

/// Letters behind a dash that take a value: the rest of the word, or the next one.
const VALUED: &str = "oOpCuUgGstqn";
/// The same in a word without a dash, which is a bundle of letters too.
const VALUED_BARE: &str = "oOpUktq";
const VALUED_LONG: [&str; 6] = ["--format", "--sort", "--pid", "--ppid", "--user", "--group"];

pub(super) fn may_show_environments(arguments: &[Word]) -> bool {
    let dashed = || {
        arguments.iter().map(Word::beginning).filter(|word| word.starts_with('-') && !word.starts_with("--"))
    };
    // What makes no sense with a dash is read again as if it had none.
    if dashed().any(is_read_again) && dashed().any(|word| word.contains('e')) {
        return true;
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else { return true };
        let takes_next = match text.strip_prefix('-') {
            Some(_) if text.starts_with("--") => VALUED_LONG.contains(&text),
            Some(letters) => match bundle(letters, "E", VALUED) {
                Some(takes_next) => takes_next,
                None => return true,
            },
            // Numbers of processes.
            None if text.starts_with(|first: char| first.is_ascii_digit()) => false,
            None => match bundle(text, "eE", VALUED_BARE) {
                Some(takes_next) => takes_next,
                None => return true,
            },
        };
        let names_them = |word: &Word| word.text().is_none_or(|text| text.contains("environ"));
        if names_them(word) || takes_next && words.next().is_some_and(names_them) {
            return true;
        }
    }
    false
}

fn is_read_again(word: &str) -> bool {
    let has_name = |letter| {
        word.split_once(letter)
            .is_some_and(|(_, rest)| rest.starts_with(|next: char| next.is_ascii_alphabetic()))
    };
    word.contains('x') || word.ends_with('t') || ['u', 'g', 't'].into_iter().any(has_name)
}

/// Whether the next word is a value; `None` where a letter that is sought is among them.
fn bundle(letters: &str, sought: &str, valued: &str) -> Option<bool> {
    for (at, letter) in letters.char_indices() {
        if sought.contains(letter) {
            return None;
        }
        if valued.contains(letter) {
            return Some(at + letter.len_utf8() == letters.len());
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_shown_by_a_letter_wherever_it_stands() {
        let shows =
            |line: &str| may_show_environments(&line.split_whitespace().map(Word::known).collect::<Vec<_>>());
        for line in [
            "e",
            "axe",
            "auxe",
            "aux e",
            "eopid,args",
            "axeocmd",
            "ep1",
            "-E",
            "-pu e",
            "-a e",
            "o environ",
            "-axe",
            "-x -e",
            "-et",
            "-e -t",
            "-ef -x",
            "axE",
        ] {
            assert!(shows(line), "{line}");
        }
        for line in [
            "",
            "aux",
            "-aux",
            "-ef",
            "-e -f -p 1",
            "-eo pid,user,etime",
            "-o user= -p 1",
            "axo pid,user",
            "--sort time",
            "1",
        ] {
            assert!(!shows(line), "{line}");
        }
    }
}
