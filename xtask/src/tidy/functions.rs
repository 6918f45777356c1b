//! Rules about functions of the product: how long they are, that no parameter is a bare `bool`, and that a
//! match over an enum of ours names its variants.

use std::collections::HashSet;

use super::code::depth_change;
use super::names::{defined, is_product};
use super::{Finding, SourceFile};
use crate::limits::MAX_FUNCTION_LINES;

/// Flat catalogues, by file and function: one arm or entry below the other, each of a few lines.
const LONG_FUNCTIONS: [(&str, &str); 9] = [
    // Each method of the protocol, each command to a session, each kind of chunk: the compiler finds what a new
    // one must join, and its few lines are found where the others are.
    ("crates/acp/src/serve/router.rs", "route"),
    ("crates/core/src/chunk/json.rs", "write_fields"),
    ("crates/core/src/chunk/json/fields.rs", "build"),
    ("crates/core/src/chunk/order.rs", "check"),
    ("crates/core/src/chunk/reduce.rs", "apply"),
    ("crates/core/src/session.rs", "obey"),
    // Each setting once, in the order in which they are printed.
    ("crates/cli/src/print_config.rs", "text"),
    // Each wrapper with its options.
    ("crates/shell/src/runners.rs", "skip_wrapper"),
    // Each reason with its sentence.
    ("crates/tools/src/tools/apply_patch/misfit.rs", "told"),
];

/// What may take a bare `bool`: a visitor of another's trait, and assertions, whose condition says at the call
/// what it is.
const BOOL_PARAMETERS: [(&str, &str); 4] = [
    ("crates/cli/src/demo/stage.rs", "check"),
    ("crates/core/src/chunk/order.rs", "demand"),
    ("crates/models/src/openai_chat/lenient.rs", "visit_bool"),
    ("crates/models/src/openai_responses/wire.rs", "visit_bool"),
];

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let product: Vec<&SourceFile> = files.iter().filter(|file| is_product(&file.path)).collect();
    let enums = enums(&product);
    let mut findings = Vec::new();
    for file in &product {
        let lines: Vec<(usize, &str)> = file.code().product().collect();
        for function in functions(&lines) {
            findings.extend(length(file, &function));
            findings.extend(bool_parameters(file, &function));
        }
        let foreign = foreign_names(&lines);
        let own = enums.difference(&foreign).copied().collect();
        findings.extend(wildcards(file, &lines, &own));
    }
    findings.extend(idle_excuses(&product));
    findings
}

/// A function with a body, from its `fn` to its closing bracket.
#[derive(Debug)]
struct FunctionLines<'a> {
    name: &'a str,
    lines: &'a [(usize, &'a str)],
}

fn functions<'a>(lines: &'a [(usize, &'a str)]) -> Vec<FunctionLines<'a>> {
    let mut found = Vec::new();
    for (start, (_, line)) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let mut depth = 0;
        for (length, (_, line)) in lines[start..].iter().enumerate() {
            depth += depth_change(line);
            if depth == 0 && line.trim_end().ends_with(['}', ';']) {
                found.push(FunctionLines { name, lines: &lines[start..=start + length] });
                break;
            }
        }
    }
    found
}

/// The function that a line begins to define.
fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let start = if line.starts_with("fn ") { 3 } else { line.find(" fn ")? + 4 };
    let is_qualified = line[..start].chars().all(|c| c.is_alphanumeric() || " _()\":".contains(c));
    let rest = &line[start..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_qualified && end > 0).then(|| &rest[..end])
}

fn length(file: &SourceFile, function: &FunctionLines<'_>) -> Option<Finding> {
    let lines = function.lines.len();
    let is_excused = LONG_FUNCTIONS.contains(&(file.path.as_str(), function.name));
    (lines > MAX_FUNCTION_LINES && !is_excused).then(|| {
        let message = format!(
            "`{}` has {lines} lines, above {MAX_FUNCTION_LINES}: split it, or list it as a flat catalogue",
            function.name
        );
        Finding::new(format!("{}:{}", file.path, function.lines[0].0), message)
    })
}

fn bool_parameters(file: &SourceFile, function: &FunctionLines<'_>) -> Vec<Finding> {
    let is_excused = BOOL_PARAMETERS.contains(&(file.path.as_str(), function.name));
    let parameters = bool_names(&signature(function));
    let named = parameters.into_iter().filter(|_| !is_excused).map(|parameter| {
        let message =
            format!("`{}` takes `{parameter}: bool`: an enum says at the call what is meant", function.name);
        Finding::new(format!("{}:{}", file.path, function.lines[0].0), message)
    });
    named.collect()
}

/// The text between the brackets of the parameters.
fn signature(function: &FunctionLines<'_>) -> String {
    let text = function.lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join(" ");
    let Some(open) =
        text.find(&format!("fn {}", function.name)).and_then(|at| Some(at + text[at..].find('(')?))
    else {
        return String::new();
    };
    let mut depth = 0;
    let end = text[open..].char_indices().find_map(|(at, c)| {
        depth += depth_change(c.encode_utf8(&mut [0; 4]));
        (depth == 0).then_some(open + at)
    });
    text[open + 1..end.unwrap_or(text.len())].to_owned()
}

/// Names of parameters that are a `bool` and nothing else.
fn bool_names(signature: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parameters = vec![String::new()];
    for c in signature.chars() {
        depth += match c {
            '(' | '[' | '{' | '<' => 1,
            ')' | ']' | '}' | '>' => -1,
            _ => 0,
        };
        if c == ',' && depth == 0 {
            parameters.push(String::new());
        } else if let Some(last) = parameters.last_mut() {
            last.push(c);
        }
    }
    let typed = parameters.iter().filter_map(|parameter| parameter.rsplit_once(':'));
    let bools = typed.filter(|(_, kind)| kind.trim() == "bool");
    bools.map(|(name, _)| name.trim().trim_start_matches("mut ").to_owned()).collect()
}

/// Names of the product's enums.
fn enums<'a>(product: &[&'a SourceFile]) -> HashSet<&'a str> {
    let lines = product.iter().flat_map(|file| file.code().product());
    lines.filter(|(_, line)| line.contains("enum ")).filter_map(|(_, line)| defined(line)).collect()
}

/// Names that a file imports from crates of others.
fn foreign_names<'a>(lines: &[(usize, &'a str)]) -> HashSet<&'a str> {
    const OURS: [&str; 4] = ["crate", "super", "self", "attache"];
    let (mut names, mut is_foreign) = (HashSet::new(), false);
    for (_, line) in lines {
        let used = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("use ");
        if let Some(path) = used {
            is_foreign = !OURS.iter().any(|root| path.starts_with(root));
        }
        if is_foreign {
            names.extend(
                line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()),
            );
        }
        is_foreign = is_foreign && !line.trim_end().ends_with(';');
    }
    names
}

/// `_` in a match whose other arms name an enum of ours: a new variant would be swallowed without a word.
fn wildcards(file: &SourceFile, lines: &[(usize, &str)], enums: &HashSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (start, (_, line)) in lines.iter().enumerate() {
        if !line.trim_end().ends_with('{') || !has_match(line, &lines[..start]) {
            continue;
        }
        let arms = arms(&lines[start..]);
        let named = arms.iter().find_map(|(_, pattern)| enum_of(pattern, enums));
        let wildcard = arms.iter().find(|(_, pattern)| is_wildcard(pattern));
        if let (Some(name), Some((number, _))) = (named, wildcard) {
            let message = format!("`_ =>` over `{name}`: name its other variants, so that a new one is seen");
            findings.push(Finding::new(format!("{}:{number}", file.path), message));
        }
    }
    findings
}

/// Whether the bracket at the end of this line opens the arms of a match.
fn has_match(line: &str, before: &[(usize, &str)]) -> bool {
    let is_match = |line: &str| line.trim_start().starts_with("match ") || line.contains(" match ");
    if is_match(line) {
        return true;
    }
    // A long scrutinee: its last line stands below the match, as far in.
    let margin = |line: &str| line.len() - line.trim_start().len();
    let opener = before.iter().rev().find(|(_, above)| margin(above) <= margin(line));
    line.trim() == "{" && opener.is_some_and(|(_, above)| is_match(above))
}

/// The patterns of a match without their conditions, each with the line it begins on; the match begins on the
/// first line. Patterns of lists are left out: no list of variants covers every length.
fn arms(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let inside = depth_change(lines[0].1);
    let (mut depth, mut pattern) = (inside, None::<(usize, String)>);
    for (number, line) in &lines[1..] {
        let begins = depth == inside && !line.trim_start().starts_with(['{', '}', '.']);
        if begins || pattern.is_some() {
            let (_, text) = pattern.get_or_insert_with(|| (*number, String::new()));
            text.push_str(line);
            text.push(' ');
        }
        if let Some((number, text)) = pattern.take_if(|(_, text)| text.contains("=>")) {
            let end = text.find("=>").unwrap_or(text.len());
            let (text, condition) = text[..end].split_once(" if ").unwrap_or((&text[..end], ""));
            // Where every value has a condition, the compiler wants an arm without one.
            if condition.is_empty() || !is_wildcard(text.trim()) {
                found.push((number, text.trim().trim_start_matches("| ").to_owned()));
            }
        }
        depth += depth_change(line);
        if depth < inside {
            break;
        }
    }
    found.retain(|(_, pattern)| !pattern.starts_with('['));
    found
}

/// `_`, or a tuple of nothing else.
fn is_wildcard(pattern: &str) -> bool {
    pattern.contains('_') && pattern.chars().all(|c| "_(), ".contains(c))
}

/// The enum of ours that a pattern names. One that is reached through a module of another crate is theirs.
fn enum_of<'a>(pattern: &str, enums: &HashSet<&'a str>) -> Option<&'a str> {
    const FOREIGN: [&str; 5] = ["acp", "io", "std", "serde_json", "toml_edit"];
    let words = pattern.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let paths = words.filter_map(|word| word.rsplit_once("::"));
    let own = paths.filter(|(path, _)| !FOREIGN.iter().any(|root| path.starts_with(&format!("{root}::"))));
    own.filter_map(|(path, _)| enums.get(path.rsplit("::").next()?).copied()).next()
}

/// Excuses that are not needed any more.
fn idle_excuses(product: &[&SourceFile]) -> Vec<Finding> {
    let is_needed = |path: &str, name: &str, is_broken: fn(&FunctionLines<'_>) -> bool| {
        let Some(file) = product.iter().find(|file| file.path == path) else { return false };
        let lines: Vec<(usize, &str)> = file.code().product().collect();
        functions(&lines).iter().any(|function| function.name == name && is_broken(function))
    };
    let long = |function: &FunctionLines<'_>| function.lines.len() > MAX_FUNCTION_LINES;
    let with_bool = |function: &FunctionLines<'_>| !bool_names(&signature(function)).is_empty();
    let idle_long = LONG_FUNCTIONS.iter().filter(|(path, name)| !is_needed(path, name, long));
    let idle_bool = BOOL_PARAMETERS.iter().filter(|(path, name)| !is_needed(path, name, with_bool));
    let idle = idle_long.chain(idle_bool);
    idle.map(|(path, name)| Finding::new(*path, format!("`{name}` needs no excuse: take its row away")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        let found = check(&[file("crates/a/src/x.rs", text)]).into_iter();
        found
            .filter(|finding| finding.place.starts_with("crates/a/"))
            .map(|finding| format!("{}: {}", finding.place, finding.message))
            .collect()
    }

    #[test]
    fn a_long_function_is_found() {
        let body = "    f();\n".repeat(MAX_FUNCTION_LINES - 2);
        assert_eq!(messages(&format!("fn go() {{\n{body}}}\n")), Vec::<String>::new());
        let found = messages(&format!("pub(super) async fn go(\n    a: u8,\n) {{\n{body}}}\n"));
        assert!(found.len() == 1 && found[0].contains("x.rs:1: `go` has"), "{found:?}");
        let test = format!("#[cfg(test)]\nfn go() {{\n{body}{body}}}\n");
        assert_eq!(messages(&test), Vec::<String>::new());
    }

    #[test]
    fn a_bool_parameter_is_found() {
        for one in [
            "fn go(is_x: bool) {}",
            "fn go(\n    &self,\n    mut is_x: bool,\n) {\n}",
            "fn go<T>(a: T, is_x: bool);",
        ] {
            let found = messages(one);
            assert!(found.len() == 1 && found[0].contains("`is_x: bool`"), "{one}: {found:?}");
        }
        for none in ["fn go(a: &[bool], b: Option<bool>) {}", "fn go(f: impl Fn(bool) -> u8) -> bool {}"] {
            assert_eq!(messages(none), Vec::<String>::new(), "{none}");
        }
    }

    const KIND: &str = "enum Kind { A, B }\n";

    #[test]
    fn a_wildcard_over_an_enum_of_ours_is_found() {
        for arms in [
            "match x {\n    Kind::A => 1,\n    _ => 2,\n}",
            "let y = match x {\n    Some(super::Kind::A) => {\n        f()\n    }\n    _ => 2,\n};",
            "match x\n    .long()\n{\n    Kind::A => 1,\n    _ => 2,\n}",
            "match (x, y) {\n    (Kind::A, 1) => 1,\n    (_, _) => 2,\n}",
            "match x {\n    Kind::A if y => 1,\n    _ => 2,\n}",
            "match x {\n    Kind::A\n    | Kind::B => 1,\n    _ => 2,\n}",
        ] {
            let found = messages(&format!("{KIND}fn f() {{\n{arms}\n}}\n"));
            assert!(found.len() == 1 && found[0].contains("`_ =>` over `Kind`"), "{arms}: {found:?}");
        }
    }

    #[test]
    fn other_wildcards_are_free() {
        for arms in [
            "match x {\n    ErrorKind::NotFound => 1,\n    _ => 2,\n}",
            "match x {\n    1 => Kind::A,\n    _ => Kind::B,\n}",
            "match x {\n    Kind::A => match y {\n        1 => 1,\n        _ => 2,\n    },\n    Kind::B => 3,\n}",
            "match x {\n    1 if y == Kind::A => 1,\n    _ => 2,\n}",
            "match x {\n    Kind::A => 1,\n    _ if y => 2,\n    Kind::B => 3,\n}",
            "match x {\n    [Kind::A] => 1,\n    _ => 2,\n}",
            "match x {\n    Other::A if y =>\n    {\n        Kind::A\n    }\n    _ => 2,\n}",
            "match x {\n    io::Kind::A => 1,\n    _ => 2,\n}",
            "match x {\n    (Kind::A, _) => 1,\n    (Kind::B, _) => 2,\n}",
        ] {
            assert_eq!(messages(&format!("{KIND}fn f() {{\n{arms}\n}}\n")), Vec::<String>::new(), "{arms}");
        }
        let kind = file("crates/a/src/y.rs", KIND);
        let imported =
            "use other::{\n    Kind,\n};\nfn f() {\nmatch x {\n    Kind::A => 1,\n    _ => 2,\n}\n}\n";
        let found = check(&[kind, file("crates/a/src/x.rs", imported)]);
        assert!(!found.iter().any(|finding| finding.place.starts_with("crates/a/")), "{found:?}");
    }
}
