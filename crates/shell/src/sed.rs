//! `sed`: its scripts can write files and run commands, so only scripts made of known harmless commands count
//! as read-only.

use crate::Nature;

use super::effects::CommandEffects;
use super::word::Word;

pub(super) fn effects_of(shown: Vec<String>, arguments: &[Word]) -> CommandEffects {
    let SedArguments { mut scripts, mut files, edits, given, is_strange, .. } = SedArguments::of(arguments);
    let mut effects = CommandEffects::new(shown, Nature::ReadOnly, 1);
    if is_strange {
        effects.acts();
    }
    if !given && !files.is_empty() {
        scripts.push(files.remove(0));
    }
    let places = files.iter().filter(|word| word.text() != Some("-")).map(Word::place);
    if edits {
        effects.acts();
        effects.writes = places.collect();
    } else {
        effects.reads = places.collect();
    }
    if !scripts.iter().all(|script| script.text().is_some_and(only_prints)) {
        effects.acts();
        effects.prefix = 0;
    }
    effects
}

#[derive(Default)]
struct SedArguments {
    scripts: Vec<Word>,
    files: Vec<Word>,
    /// It changes files in place.
    edits: bool,
    /// An option gave the script.
    given: bool,
    operands_only: bool,
    /// It has an option that we do not know.
    is_strange: bool,
}

impl SedArguments {
    fn of(arguments: &[Word]) -> Self {
        let mut sorted = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let beginning = word.beginning();
            match word.text() {
                _ if sorted.operands_only => sorted.files.push(word.clone()),
                Some("--") => sorted.operands_only = true,
                Some("-e" | "--expression") => {
                    sorted.given = true;
                    sorted.scripts.extend(words.next().cloned());
                }
                Some(
                    "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
                    | "--silent" | "--regexp-extended" | "--separate" | "--unbuffered" | "--null-data"
                    | "--posix" | "--debug",
                ) => {}
                Some("-ne" | "-Ee" | "-re" | "-nEe" | "-nre") => {
                    sorted.given = true;
                    sorted.scripts.extend(words.next().cloned());
                }
                _ if beginning.starts_with("--expression=") => {
                    sorted.given = true;
                    sorted.scripts.extend(word.after("--expression="));
                }
                _ if beginning.starts_with("-i")
                    || beginning.starts_with("--in-place")
                    || (beginning.starts_with('-')
                        && !beginning.starts_with("--")
                        && beginning.contains('i')
                        && word.text().is_some_and(|text| text.len() < 6)) =>
                {
                    sorted.edits = true;
                    sorted.given |= beginning.ends_with('e') && beginning.len() > 2;
                    if beginning.ends_with('e') && beginning.len() > 2 {
                        sorted.scripts.extend(words.next().cloned());
                    }
                }
                _ if word.may_be_option() || beginning.starts_with('-') && beginning.len() > 1 => {
                    sorted.is_strange = true;
                    sorted.files.push(word.clone());
                }
                _ => sorted.files.push(word.clone()),
            }
        }
        sorted
    }
}

/// Accepts addresses and the commands `p d q Q = s y n N g G h H x D P l { } ! b t T : a i c`; nothing that
/// names a file.
fn only_prints(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}', '!']);
        let Some(character) = rest.chars().next() else { return true };
        let tail = &rest[character.len_utf8()..];
        rest = match character {
            '0'..='9'
            | '$'
            | ','
            | '+'
            | '~'
            | 'p'
            | 'd'
            | '='
            | 'n'
            | 'N'
            | 'g'
            | 'G'
            | 'h'
            | 'H'
            | 'x'
            | 'D'
            | 'P'
            | 'l'
            | 'z'
            | 'q'
            | 'Q'
            | 'F' => tail,
            '/' => match delimited(tail, '/') {
                Some(rest) => rest.trim_start_matches(['I', 'M']),
                None => return false,
            },
            's' | 'y' => match substitution(tail, character) {
                Some(rest) => rest,
                None => return false,
            },
            'b' | 't' | 'T' | ':' => match label(tail) {
                Some(rest) => rest,
                None => return false,
            },
            // These texts extend to the end of the line, or of the next script.
            'a' | 'i' | 'c' if !tail.is_empty() && !tail.ends_with('\\') && !tail.contains('\n') => "",
            _ => return false,
        };
    }
}

/// The text after a label. Where a label ends depends on the sed, so we follow it only where all of them agree.
fn label(text: &str) -> Option<&str> {
    let rest = text
        .trim_start_matches([' ', '\t'])
        .trim_start_matches(|character: char| character.is_ascii_alphanumeric() || character == '_');
    (rest.is_empty() || rest.starts_with([';', '\n'])).then_some(rest)
}

/// The text after the closing delimiter of a pattern.
fn delimited(mut text: &str, delimiter: char) -> Option<&str> {
    loop {
        let character = text.chars().next()?;
        let rest = &text[character.len_utf8()..];
        text = match character {
            _ if character == delimiter => return Some(rest),
            '\n' => return None,
            '\\' => rest.strip_prefix(|escaped: char| escaped != '\n')?,
            '[' => bracket(rest, delimiter)?,
            _ => rest,
        };
    }
}

/// The text after a set of characters. Whether a delimiter in it counts, and what a backslash means there,
/// depends on the sed; we do not follow such scripts.
fn bracket(text: &str, delimiter: char) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    let mut rest = text.strip_prefix(']').unwrap_or(text);
    loop {
        let character = rest.chars().next().filter(|character| *character != delimiter)?;
        let tail = &rest[character.len_utf8()..];
        rest = match character {
            ']' => return Some(tail),
            '[' => match tail.chars().next()? {
                kind @ (':' | '.' | '=') => class(tail, kind, delimiter)?,
                _ => tail,
            },
            '\\' => tail.strip_prefix(|escape: char| escape.is_ascii_alphabetic() || escape == '.')?,
            '\n' => return None,
            _ => tail,
        };
    }
}

/// The text after `[:alpha:]`, `[.x.]` or `[=x=]`, without its first bracket.
fn class(text: &str, kind: char, delimiter: char) -> Option<&str> {
    let (name, rest) = text[kind.len_utf8()..].split_once(&format!("{kind}]"))?;
    let plain = name.chars().all(|character| character.is_ascii_alphanumeric() && character != delimiter);
    plain.then_some(rest)
}

fn substitution(text: &str, command: char) -> Option<&str> {
    let delimiter = text
        .chars()
        .next()
        .filter(|delimiter| !delimiter.is_alphanumeric() && !"\\\n[] ;".contains(*delimiter))?;
    let rest = delimited(&text[delimiter.len_utf8()..], delimiter)?;
    let rest = replacement(rest, delimiter)?;
    if command == 'y' {
        return Some(rest);
    }
    let after = rest.trim_start_matches(|flag: char| "gpiIM0123456789".contains(flag));
    // `e` runs the result, `w` writes it.
    let ended = after.is_empty() || after.starts_with([';', '}', '\n', ' ']);
    let word = after.trim_start_matches(' ');
    (ended
        && (word.is_empty()
            || word.starts_with([';', '}', '\n', '#'])
            || after.starts_with([';', '}', '\n'])))
    .then_some(after)
}

fn replacement(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == delimiter => return Some(&text[at + character.len_utf8()..]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn scripts_that_name_no_file_and_run_nothing_only_print() {
        for script in [
            "1,5p",
            "$d",
            "/a/,/b/p",
            "s/a/b/g",
            "s|a/b|c|",
            "s/a/b/;s/c/d/p",
            "10q",
            "/x/!d",
            "s/\\/w/e/",
            "y/abc/xyz/",
            "/^$/d",
            "2{p;q}",
            ":a;N;$!ba;s/\\n/ /g",
            "s/[[:space:]]*$//",
            "s/[]x]/y/",
            "s/[^\\t ]//",
        ] {
            assert!(only_prints(script), "{script}");
        }
        for script in [
            "w out",
            "1e id",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gw out",
            "r /etc/passwd",
            "R x",
            "W x",
            "p;w x",
            "/a/w x",
            "1{w x",
            "s/a[/]b/c/w x",
            "s/a/b/ w x",
            "v 4.2\nw x",
            "a x\nw y",
            ":x e touch y",
            ":a;ta e touch x",
            ":a;ta w out",
            "ba w x",
            "ba}a t e",
            "s/[[:alpha:]/A/;/]/p/w src/p",
            "s/[]/A/;/]/p/w src/p",
            "s/[^]/A/;/]/p/w src/p",
            "s/[\\]/A/;/]/p/w src/p",
            "s/[[.a/.]b]/c/",
            "a x\\",
            "i",
            "s=a=b\ne touch y\n=",
        ] {
            assert!(!only_prints(script), "{script}");
        }
    }
}
