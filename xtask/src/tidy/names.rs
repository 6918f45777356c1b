//! One name means one thing: a type is defined once in the product, and the words of the glossary first of all.

use std::collections::BTreeMap;

use super::sources::is_test_file;
use super::{Finding, SourceFile};
use crate::limits::MAX_GLOSSARY_WORDS;

/// Names that are still defined more than once, and how often. Rows may only go or shrink: rename a type, and
/// take its row away with the last double. One that is meant to stay double says why behind a `#`.
const DOUBLES: &str = include_str!("doubles.txt");

const GLOSSARY: &str = "docs/GLOSSARY.md";

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let glossary = files.iter().find(|file| file.path == GLOSSARY).map(|file| file.text.as_str());
    let mut findings = glossary_rows(glossary.unwrap_or_default());
    findings.extend(definitions_once(files, glossary.unwrap_or_default(), DOUBLES));
    findings
}

fn definitions_once(files: &[SourceFile], glossary: &str, doubles: &str) -> Vec<Finding> {
    let definitions = definitions(files);
    let allowed = allowed(doubles);
    let mut findings = Vec::new();
    for (name, places) in &definitions {
        let limit = allowed.get(name).copied().unwrap_or(1);
        if places.len() > limit {
            let word = if is_glossary_word(glossary, name) { ", a word of the glossary," } else { "" };
            let others = places[..places.len() - 1].join(", ");
            let message = format!("`{name}`{word} is defined in {others}, too: choose another name");
            findings.push(Finding::new(places[places.len() - 1].clone(), message));
        }
    }
    for (name, reason) in rows(doubles).filter(|(name, _)| is_glossary_word(glossary, name)) {
        if reason.is_empty() {
            let message = format!("`{name}` is a word of the glossary: rename the others, or say why not");
            findings.push(Finding::new("xtask/src/tidy/doubles.txt", message));
        }
    }
    for name in allowed.keys().filter(|name| definitions.get(**name).is_none_or(|places| places.len() < 2)) {
        let message = format!("`{name}` is not double any more: take its row away");
        findings.push(Finding::new("xtask/src/tidy/doubles.txt", message));
    }
    findings
}

/// Where each type of the product is defined, types inside of functions among them: who reads one of them
/// expects what the name means elsewhere. What a system has of its own and what the others have instead is one
/// thing: only one of the two is compiled.
fn definitions(files: &[SourceFile]) -> BTreeMap<&str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product(&file.path)) {
        for (number, line) in file.code().product() {
            if let Some(name) = defined(line) {
                found.entry(name).or_default().push(format!("{}:{number}", file.path));
            }
        }
    }
    for places in found.values_mut() {
        let of_linux: Vec<String> = places.iter().filter_map(|place| beside(place, "/linux")).collect();
        places.retain(|place| beside(place, "/portable").is_none_or(|beside| !of_linux.contains(&beside)));
    }
    found
}

/// The directory beside a module of that name, for what lies in the module.
fn beside(place: &str, module: &str) -> Option<String> {
    let (directory, rest) = place.split_once(module)?;
    rest.starts_with(['/', '.']).then(|| directory.to_owned())
}

pub(super) fn is_product(path: &str) -> bool {
    let is_source = path.starts_with("crates/") && path.ends_with(".rs");
    is_source && !path.starts_with("crates/testkit/") && !is_test_file(path)
}

/// The type that a line defines. An associated type is none: it is a `type` below the first column.
pub(super) fn defined(line: &str) -> Option<&str> {
    let is_inner = line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let kind = kinds.iter().find(|kind| line.starts_with(**kind) && !(is_inner && **kind == "type "))?;
    let rest = &line[kind.len()..];
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

fn allowed(doubles: &str) -> BTreeMap<&str, usize> {
    let rows = doubles.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    rows.filter_map(|row| row.split_once(' '))
        .filter_map(|(name, count)| Some((name, count.trim().parse().ok()?)))
        .collect()
}

/// Each name of the list with its reason, which may be empty.
fn rows(doubles: &str) -> impl Iterator<Item = (&str, &str)> {
    doubles.lines().filter_map(|line| {
        let (row, reason) = line.split_once('#').unwrap_or((line, ""));
        Some((row.trim().split_once(' ')?.0, reason.trim()))
    })
}

/// `run log` names `RunLog`.
fn is_glossary_word(glossary: &str, name: &str) -> bool {
    words(glossary).any(|(_, word)| {
        let parts = word.split([' ', '-']).map(|part| {
            let mut letters = part.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
        });
        parts.flatten().collect::<String>() == name
    })
}

fn glossary_rows(glossary: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rows: Vec<(usize, &str)> = words(glossary).collect();
    if rows.len() > MAX_GLOSSARY_WORDS {
        let message = format!("{} words, above {MAX_GLOSSARY_WORDS}: use words that need no row", rows.len());
        findings.push(Finding::new(GLOSSARY, message));
    }
    for pair in rows.windows(2) {
        let ((_, before), (line, word)) = (pair[0], pair[1]);
        let place = format!("{GLOSSARY}:{line}");
        if word == before {
            findings.push(Finding::new(place, format!("`{word}` is explained twice")));
        } else if word < before {
            findings.push(Finding::new(place, format!("`{word}` belongs before `{before}`")));
        }
    }
    findings
}

/// The words of the table, with their lines.
fn words(glossary: &str) -> impl Iterator<Item = (usize, &str)> {
    let rows = glossary.lines().enumerate().filter_map(|(index, line)| {
        let word = line.strip_prefix("| ")?.split('|').next()?.trim();
        Some((index + 1, word))
    });
    rows.filter(|(_, word)| *word != "word")
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    const GLOSSARY_TEXT: &str =
        "| word | means | avoid |\n|---|---|---|\n| agent | x | y |\n| run log | x | y |\n";

    fn messages(files: &[SourceFile], doubles: &str) -> Vec<String> {
        let found = definitions_once(files, GLOSSARY_TEXT, doubles);
        found.into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    fn two(first: &str, second: &str) -> Vec<SourceFile> {
        vec![file("crates/a/src/x.rs", first), file("crates/b/src/y.rs", second)]
    }

    #[test]
    fn a_second_definition_is_found_whatever_its_kind() {
        for second in
            ["enum Place {", "pub trait Place: Send {", "pub(super) type Place<T> =", "struct Place;"]
        {
            let found = messages(&two("pub struct Place {\n", second), "");
            assert_eq!(found.len(), 1, "{second}");
            assert!(found[0].starts_with("crates/b/src/y.rs:1: `Place` is defined in crates/a/src/x.rs:1"));
        }
    }

    #[test]
    fn what_two_systems_have_in_two_ways_is_one_thing() {
        let two =
            |first: &str, second: &str| vec![file(first, "struct Place;\n"), file(second, "struct Place;\n")];
        let twins = two("crates/a/src/x/linux/y.rs", "crates/a/src/x/portable.rs");
        assert_eq!(messages(&twins, ""), Vec::<String>::new());
        for second in ["crates/a/src/z/portable.rs", "crates/a/src/x/portables.rs", "crates/a/src/x/linux.rs"]
        {
            assert_eq!(messages(&two("crates/a/src/x/linux/y.rs", second), "").len(), 1, "{second}");
        }
    }

    #[test]
    fn a_word_of_the_glossary_is_called_one() {
        let found = messages(&two("struct Agent;", "struct Agent;"), "");
        assert!(found[0].contains("a word of the glossary"), "{found:?}");
        let found = messages(&two("struct RunLog;", "struct RunLog;"), "");
        assert!(found[0].contains("a word of the glossary"), "{found:?}");
    }

    #[test]
    fn a_type_inside_of_a_function_counts() {
        let inner = "fn f() {\n    struct Place;\n}\n";
        assert_eq!(messages(&two("struct Place;\n", inner), "").len(), 1);
    }

    #[test]
    fn associated_types_and_tests_are_free() {
        let inner = "struct A;\nimpl X for A {\n    type Place = u8;\n}\n";
        assert_eq!(messages(&two("struct Place;\n", inner), ""), Vec::<String>::new());
        let test = "struct A;\n#[cfg(test)]\nmod tests {\nstruct Place;\n}\n";
        assert_eq!(messages(&two("struct Place;\n", test), ""), Vec::<String>::new());
        let below_a_test_import = "#[cfg(test)]\nuse a::b;\nstruct Place;\n";
        assert_eq!(messages(&two("struct Place;\n", below_a_test_import), "").len(), 1);
        let tests =
            [file("crates/a/src/x.rs", "struct Place;\n"), file("crates/a/tests/y.rs", "struct Place;\n")];
        assert_eq!(messages(&tests, ""), Vec::<String>::new());
    }

    #[test]
    fn the_list_of_doubles_only_shrinks() {
        let files = two("struct Place;\n", "struct Place;\n");
        assert_eq!(messages(&files, "# why\nPlace 2\n"), Vec::<String>::new());
        assert_eq!(messages(&files, "Place 3 # a reason\n"), Vec::<String>::new());
        assert_eq!(messages(&files, "").len(), 1);
        let agents = two("struct Agent;\n", "struct Agent;\n");
        assert_eq!(messages(&agents, "Agent 2 # another's word\n"), Vec::<String>::new());
        let found = messages(&agents, "Agent 2\n");
        assert!(found.len() == 1 && found[0].contains("say why not"), "{found:?}");
        let found = messages(&files[..1], "Place 2\n");
        assert!(found.len() == 1 && found[0].contains("take its row away"), "{found:?}");
    }

    #[test]
    fn rows_of_the_glossary_are_in_order_and_single() {
        assert_eq!(glossary_rows(GLOSSARY_TEXT), []);
        assert_eq!(glossary_rows("| b | x |\n| a | x |\n").len(), 1);
        assert_eq!(glossary_rows("| a | x |\n| a | x |\n").len(), 1);
        let many: Vec<String> = (100..=100 + MAX_GLOSSARY_WORDS).map(|at| format!("| w{at} | x |")).collect();
        assert_eq!(glossary_rows(&many.join("\n")).len(), 1);
    }
}
