//! A name in back-ticks exists: what comments, ARCHITECTURE.md and docs/extending.md call a type or a function
//! occurs in the code. Paths are checked by `comments`.

use std::collections::{HashMap, HashSet};

use super::names::{defined, is_product};
use super::{Finding, SourceFile};

/// Documents that speak about code. The others name keys and programs of other systems.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/extending.md"];

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let known: HashSet<&str> = files.iter().flat_map(code_words).collect();
    let places = places(files);
    let mut findings = Vec::new();
    for file in files {
        let is_document = DOCUMENTS.contains(&file.path.as_str());
        let lines = file.text.lines().enumerate();
        for (index, line) in lines.filter(|(_, line)| is_document || is_comment(file, line)) {
            for name in names(line).filter(|name| !exists(name, &known) || is_lost(name, &places)) {
                let place = format!("{}:{}", file.path, index + 1);
                findings.push(Finding::new(place, format!("nothing in the code is called `{name}`")));
            }
        }
    }
    findings
}

fn is_comment(file: &SourceFile, line: &str) -> bool {
    file.path.ends_with(".rs") && line.trim_start().starts_with("//")
}

/// Every word of what is no comment and no document.
fn code_words(file: &SourceFile) -> impl Iterator<Item = &str> {
    let is_code = !file.path.ends_with(".md");
    let lines = file.text.lines().filter(move |line| is_code && !is_comment(file, line));
    lines.flat_map(|line| line.split(|c: char| !is_word(c))).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What is in back-ticks and looks like a type, a function or a path of them. `no` before it says that it is
/// left out on purpose.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    let parts = line.split('`').enumerate().filter_map(move |(index, part)| {
        let is_left_out = before.ends_with("no ");
        before = part;
        (index % 2 == 1 && !is_left_out).then_some(part)
    });
    parts.filter(|part| is_name(part))
}

fn is_name(text: &str) -> bool {
    let (text, is_called) = text.strip_suffix("()").map_or((text, false), |bare| (bare, true));
    let mut words = text.split("::");
    let last = text.rsplit("::").next().unwrap_or_default();
    let all_words = words.all(|word| !word.is_empty() && word.chars().all(is_word));
    let starts_right = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_type =
        last.starts_with(|c: char| c.is_ascii_uppercase()) && last.chars().any(|c| c.is_lowercase());
    let is_snake = last.contains('_') && !last.chars().any(|c| c.is_uppercase());
    all_words && starts_right && (is_called || is_type || is_snake || text.contains("::"))
}

fn exists(name: &str, known: &HashSet<&str>) -> bool {
    name.trim_end_matches("()").split("::").all(|word| known.contains(word))
}

/// For each module and each type of ours the words of the files that can hold what is below it.
fn places(files: &[SourceFile]) -> HashMap<&str, HashSet<&str>> {
    let mut places: HashMap<&str, HashSet<&str>> = HashMap::new();
    for file in files.iter().filter(|file| is_product(&file.path)) {
        let words: HashSet<&str> =
            file.code().product().flat_map(|(_, line)| line.split(|c: char| !is_word(c))).collect();
        let modules = file.path.trim_end_matches(".rs").split('/');
        let types = file.code().product().filter_map(|(_, line)| defined(line));
        for place in modules.chain(types) {
            places.entry(place).or_default().extend(&words);
        }
    }
    places
}

/// `module::Name` or `Type::name` of ours where nothing of that module or beside that type is called so. A type
/// may have methods in other files: what begins in lower case is looked for as a word only.
fn is_lost(name: &str, places: &HashMap<&str, HashSet<&str>>) -> bool {
    let Some((place, last)) = name.trim_end_matches("()").rsplit_once("::") else { return false };
    let place = place.rsplit("::").next().unwrap_or(place);
    let is_type = last.starts_with(|c: char| c.is_ascii_uppercase());
    is_type && places.get(place).is_some_and(|words| !words.contains(last))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    const CODE: &str = "//! A.\npub struct RunLog;\nimpl RunLog {\n    fn read_all(&self) {}\n}\n";

    fn messages(documents: &[SourceFile]) -> Vec<String> {
        let files: Vec<SourceFile> =
            std::iter::once(file("crates/a/src/x.rs", CODE)).chain(documents.iter().cloned()).collect();
        check(&files).into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    #[test]
    fn a_name_that_is_gone_is_found_in_comments_and_documents_about_code() {
        for name in ["RunJournal", "Journal", "read_none", "read()", "RunLog::read_none", "gone::RunLog"] {
            let text = format!("//! See `{name}`.\n");
            let found = messages(&[file("crates/a/src/y.rs", &text), file("ARCHITECTURE.md", &text)]);
            let expected = format!("nothing in the code is called `{name}`");
            assert_eq!(
                found,
                [format!("crates/a/src/y.rs:1: {expected}"), format!("ARCHITECTURE.md:1: {expected}")]
            );
        }
    }

    #[test]
    fn what_is_there_or_is_no_name_passes() {
        let text = "`RunLog`, `read_all`, `read_all()`, `RunLog::read_all`, `read`, `a b`, `MAX`, `src/x.rs`, `--all`\n";
        assert_eq!(messages(&[file("docs/extending.md", text)]), Vec::<String>::new());
        let others = "`SomebodyElse`\n";
        assert_eq!(messages(&[file("docs/acp.md", others)]), Vec::<String>::new());
        assert_eq!(messages(&[file("ARCHITECTURE.md", "no `other_crate`, because\n")]), Vec::<String>::new());
    }

    #[test]
    fn a_type_that_its_module_does_not_have_is_found() {
        let text =
            file("crates/a/src/z.rs", "//! Z.\nmod x;\nmod z;\nconst LOST: &str = \"Hold\";\nstruct Kept;\n");
        let found = messages(&[text, file("ARCHITECTURE.md", "`z::Kept` `z::Hold` `x::RunLog` `x::Kept`\n")]);
        let expected = ["z::Hold", "x::Kept"]
            .map(|name| format!("ARCHITECTURE.md:1: nothing in the code is called `{name}`"));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_comment_is_no_proof_that_a_name_exists() {
        let found = messages(&[file("crates/a/src/y.rs", "//! `OldName`\n// OldName\n")]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
