//! Rules about source files: how they open, how long they are, what they are called, what they must not say.

use super::{Finding, SourceFile};
use crate::limits::MAX_FILE_LINES;

/// Longer than the rest, each with its reason. Flat catalogues only.
const LONG_FILES: [(&str, &str); 0] = [];

/// The one file of the product that may hold the protocol's stdout.
const PROTOCOL_OUTPUT: &str = "crates/rpc/src/stdio.rs";
/// In a terminal of the client, where no protocol is spoken.
const RELAY: &str = "crates/sandbox/src/relay.rs";

/// Commands answer on stdout, too, but through one file, so that it is known what can reach it.
const COMMAND_LINE: &str = "crates/cli/src/";

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(names(file));
        findings.extend(words(file));
        if file.path.ends_with(".rs") {
            findings.extend(opening(file));
            findings.extend(length(file));
            findings.extend(output(file));
            findings.extend(dialects(file));
            findings.extend(leaks(file));
        }
    }
    findings.extend(command_line_output(files));
    findings
}

fn opening(file: &SourceFile) -> Option<Finding> {
    let first = file.text.lines().next().unwrap_or_default();
    let sentence = first.strip_prefix("//! ").is_some_and(|rest| !rest.trim().is_empty());
    (!sentence).then(|| Finding::new(&file.path, "does not open with a `//! ` sentence"))
}

fn length(file: &SourceFile) -> Option<Finding> {
    let lines = lines_without_tests(file);
    let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    (lines > MAX_FILE_LINES && !excused).then(|| {
        Finding::new(
            &file.path,
            format!("{lines} lines without tests, above {MAX_FILE_LINES}: split it by verb"),
        )
    })
}

/// Tests are items behind `#[cfg(test)]`, or files of their own.
fn lines_without_tests(file: &SourceFile) -> usize {
    if is_test_file(&file.path) { 0 } else { file.code().product().count() }
}

pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.split('/').any(|folder| matches!(folder, "tests" | "benches" | "examples"))
}

fn names(file: &SourceFile) -> Vec<Finding> {
    const EMPTY: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];
    let mut findings = Vec::new();
    for part in file.path.split('/') {
        let stem = part.split('.').next().unwrap_or_default();
        if EMPTY.contains(&stem) {
            findings
                .push(Finding::new(&file.path, format!("`{stem}` says nothing: name it by what it does")));
        }
    }
    if file.path.ends_with("/mod.rs") {
        findings.push(Finding::new(&file.path, "no mod.rs: a folder `x` has its file `x.rs` beside it"));
    }
    findings
}

/// Unfinished work does not land. The words are spelled apart so that this file does not find itself.
fn words(file: &SourceFile) -> Vec<Finding> {
    const WORDS: [&str; 5] = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("to", "do!"),
        concat!("unimple", "mented!"),
    ];
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for word in WORDS {
            if has_word(line, word) {
                findings.push(Finding::new(
                    format!("{}:{}", file.path, index + 1),
                    format!("`{word}`: finish it or open an issue"),
                ));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (line[..start].chars().next_back(), line[start + word.len()..].chars().next());
        !is_part(before) && (word.ends_with('!') || !is_part(after))
    })
}

/// stdout belongs to the protocol: no macro prints to it and no handle is taken outside the places above.
fn output(file: &SourceFile) -> Vec<Finding> {
    let excused = file.path == PROTOCOL_OUTPUT
        || file.path == RELAY
        || file.path.starts_with(COMMAND_LINE)
        || ["bench/", "xtask/"].iter().any(|room| file.path.starts_with(room))
        || is_test_file(&file.path);
    let mut findings = Vec::new();
    for (number, line) in product_lines(file).filter(|_| !is_build_script(&file.path)) {
        if prints(line) {
            findings.push(Finding::new(format!("{}:{number}", file.path), "prints to stdout"));
        } else if takes_stdout(line) && !excused {
            findings.push(Finding::new(
                format!("{}:{number}", file.path),
                "takes stdout, which is the protocol's",
            ));
        }
    }
    findings
}

/// The compiler finds every `match` that a new dialect must join, and no other way to tell dialects apart.
fn dialects(file: &SourceFile) -> Vec<Finding> {
    let tells_apart = |line: &str| {
        let compares = ["== Dialect", "!= Dialect", "== ManifestDialect", "!= ManifestDialect"];
        let has_pattern = ["matches!(", "if let ", "while let ", "let Dialect"];
        let is_pattern = has_pattern.iter().any(|word| line.contains(word));
        line.contains(concat!("Dialect", "::")) && (is_pattern || compares.iter().any(|it| line.contains(it)))
    };
    // A pattern may be on a line of its own.
    let lines: Vec<(usize, &str)> = product_lines(file).collect();
    let opens = |line: &str| line.trim_end().ends_with("matches!(") || line.trim_end().ends_with("if let");
    let joined = lines.windows(2).map(|pair| match opens(pair[0].1) {
        true => (pair[0].0, format!("{} {}", pair[0].1.trim_end(), pair[1].1.trim_start())),
        false => (pair[0].0, pair[0].1.to_owned()),
    });
    let last = lines.last().map(|(number, line)| (*number, (*line).to_owned()));
    joined
        .chain(last)
        .filter(|(_, line)| tells_apart(line))
        .map(|(number, _)| {
            let place = format!("{}:{number}", file.path);
            Finding::new(place, "tells dialects apart: put what differs into the constant of each dialect")
        })
        .collect()
}

/// Memory that is never given back has to be asked for by no product code: `Cow` and `Arc` do the same.
fn leaks(file: &SourceFile) -> Vec<Finding> {
    let lines = product_lines(file).filter(|(_, line)| line.contains(concat!(".le", "ak()")));
    lines.map(|(number, _)| Finding::new(format!("{}:{number}", file.path), "leaks memory")).collect()
}

fn command_line_output(files: &[SourceFile]) -> Option<Finding> {
    let takers: Vec<&str> = files
        .iter()
        .filter(|file| file.path.starts_with(COMMAND_LINE) && file.path.ends_with(".rs"))
        .filter(|file| product_lines(file).any(|(_, line)| takes_stdout(line)))
        .map(|file| file.path.as_str())
        .collect();
    (takers.len() > 1).then(|| {
        Finding::new(COMMAND_LINE, format!("one file may write answers to stdout, not {}", takers.join(", ")))
    })
}

/// A build script talks to cargo on stdout.
fn is_build_script(path: &str) -> bool {
    path.ends_with("/build.rs") && !path.contains("/src/")
}

/// Numbered lines of code, without tests.
fn product_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let is_product = !is_test_file(&file.path);
    file.code().product().filter(move |_| is_product)
}

fn prints(line: &str) -> bool {
    has_word(line, concat!("print", "ln!")) || has_word(line, concat!("pri", "nt!"))
}

fn takes_stdout(line: &str) -> bool {
    has_word(line, "stdout()") || has_word(line, "Stdout")
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn messages(files: &[SourceFile]) -> Vec<String> {
        check(files).into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    fn broken(path: &str, text: &str, expected: &str) {
        let found = messages(&[file(path, text)]);
        assert!(found.len() == 1 && found[0].contains(expected), "{path}: {found:?}");
    }

    #[test]
    fn a_tidy_file_passes() {
        let text = "//! Does one thing.\n\npub fn f() { eprintln!(\"x\"); child.stdout(Stdio::piped()); }\n";
        assert_eq!(messages(&[file("crates/core/src/queue.rs", text)]), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_its_sentence_is_found() {
        broken("crates/core/src/a.rs", "pub fn f() {}\n", "//!");
        broken("crates/core/src/a.rs", "//!\npub fn f() {}\n", "//!");
        broken("crates/core/src/a.rs", "", "//!");
    }

    #[test]
    fn a_long_file_is_found_but_its_tests_do_not_count() {
        let code = format!("//! Long.\n{}", "fn f() {}\n".repeat(MAX_FILE_LINES));
        broken("crates/core/src/a.rs", &code, "lines without tests");
        let tests =
            format!("//! Short.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(MAX_FILE_LINES));
        assert_eq!(messages(&[file("crates/core/src/a.rs", &tests)]), Vec::<String>::new());
        let guarded_import = code.replacen('\n', "\n#[cfg(test)]\nuse a::b;\n", 1);
        broken("crates/core/src/a.rs", &guarded_import, "lines without tests");
        assert_eq!(messages(&[file("crates/core/src/a/tests.rs", &code)]), Vec::<String>::new());
    }

    #[test]
    fn empty_names_are_found() {
        broken("crates/core/src/utils.rs", "//! x\n", "says nothing");
        broken("crates/core/src/helpers/a.rs", "//! x\n", "says nothing");
        broken("crates/core/src/chunk/mod.rs", "//! x\n", "mod.rs");
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("to", "do!()")] {
            broken("crates/core/src/a.rs", &format!("//! x\n// {word} later\n"), "finish it");
            broken("docs/a.md", &format!("{word}\n"), "finish it");
        }
        assert_eq!(
            messages(&[file("docs/a.md", "the todo tool, XXXL and TODOS are words\n")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn stdout_is_guarded() {
        let print = concat!("//! x\nfn f() { print", "ln!(\"x\"); }\n");
        broken("crates/core/src/a.rs", print, "prints");
        broken("crates/cli/src/a.rs", print, "prints");
        assert_eq!(messages(&[file("crates/cli/build.rs", print)]), Vec::<String>::new());
        let handle = "//! x\nfn f() { let out = std::io::stdout(); }\n";
        broken("crates/acp/src/a.rs", handle, "takes stdout");
        assert_eq!(messages(&[file(PROTOCOL_OUTPUT, handle)]), Vec::<String>::new());
        let comment = "//! x\n// stdout() is not for us\n";
        assert_eq!(messages(&[file("crates/acp/src/a.rs", comment)]), Vec::<String>::new());
    }

    #[test]
    fn a_leak_is_found() {
        let leak = concat!("//! x\nlet name = name.le", "ak();\n");
        broken("crates/core/src/a.rs", leak, "leaks");
        assert_eq!(messages(&[file("crates/core/src/a/tests.rs", leak)]), Vec::<String>::new());
    }

    #[test]
    fn a_dialect_is_not_told_apart_where_the_compiler_can_not_see_it() {
        let dialect = concat!("Dialect", "::Gemini");
        broken(
            "crates/cli/src/a.rs",
            &format!("//! x\nlet is = matches!(dialect, {dialect});\n"),
            "dialects",
        );
        broken("crates/cli/src/a.rs", &format!("//! x\nif let {dialect} = dialect {{}}\n"), "dialects");
        broken("crates/cli/src/a.rs", &format!("//! x\nlet is = dialect == {dialect};\n"), "dialects");
        let apart = format!("//! x\nlet is = matches!(\n    {dialect} | dialect\n);\n");
        broken("crates/cli/src/a.rs", &apart, "dialects");
        let whole = format!("//! x\nmatch dialect {{ {dialect} => 1 }}\nlet chosen = {dialect};\n");
        assert_eq!(messages(&[file("crates/cli/src/a.rs", &whole)]), Vec::<String>::new());
    }

    #[test]
    fn commands_answer_through_one_file() {
        let handle = "//! x\nfn f() { let out = std::io::stdout(); }\n";
        let one = file("crates/cli/src/answer.rs", handle);
        assert_eq!(messages(std::slice::from_ref(&one)), Vec::<String>::new());
        assert_eq!(messages(&[one, file("crates/cli/src/demo.rs", handle)]).len(), 1);
    }
}
