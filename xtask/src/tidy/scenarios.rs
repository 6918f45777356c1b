//! Every tool has a scenario of its own and every chunk type occurs in one: what no transcript shows, no reader
//! has seen work. The README names every tool.

use super::{Finding, SourceFile};

/// The one list of built-in tools; those with a file in the tools' room exist. A tool is one file.
const TOOL_NAMES: &str = "crates/core/src/tool_names.rs";

const README: &str = "README.md";

const VOCABULARY: &str = "crates/core/src/chunk.rs";

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    // The first room to write scenarios starts the duty to have all of them.
    if !files.iter().any(|file| is_scenario(&file.path)) {
        return Vec::new();
    }
    let scenarios: Vec<&SourceFile> =
        files.iter().filter(|file| is_scenario(&file.path) || is_transcript(&file.path)).collect();
    let tools = existing_tools(files);
    let chunk_types = chunk_types(files);
    if chunk_types.is_empty() {
        return vec![Finding::new(VOCABULARY, "holds no `pub enum Chunk` that can be read")];
    }
    if tools.is_empty() {
        return vec![Finding::new(TOOL_NAMES, "names no tool that has a file")];
    }
    let unseen_tools =
        tools.iter().filter(|name| !scenarios.iter().any(|scenario| is_about(scenario, name))).map(|name| {
            Finding::new(
                "scenarios",
                format!("no scenario is about the tool `{name}`: none has its name, no heading names it"),
            )
        });
    let unseen_chunks = chunk_types
        .iter()
        .filter(|name| !scenarios.iter().any(|scenario| mentions(&scenario.text, name)))
        .map(|name| Finding::new("scenarios", format!("no scenario shows the chunk `{name}`")));
    let readme = files.iter().find(|file| file.path == README);
    let unlisted = tools
        .iter()
        .filter(|name| readme.is_some_and(|readme| !readme.text.contains(&format!("`{name}`"))))
        .map(|name| Finding::new(README, format!("does not name the tool `{name}`")));
    unseen_tools.chain(unseen_chunks).chain(unlisted).collect()
}

/// A file of the tool's name, or a heading with it; in passing a tool is called in many.
fn is_about(scenario: &SourceFile, tool: &str) -> bool {
    let has_heading = || scenario.text.lines().any(|line| line.starts_with('#') && mentions(line, tool));
    scenario.path.ends_with(&format!("/{tool}.md")) || has_heading()
}

fn is_scenario(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/scenarios/") && path.ends_with(".md")
}

/// Tests that are written as transcripts show a chunk as well as a scenario does.
fn is_transcript(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/tests/") && path.ends_with(".md")
}

fn existing_tools(files: &[SourceFile]) -> Vec<String> {
    let is_there = |name: &&str| {
        let file_name = format!("/{name}.rs");
        files
            .iter()
            .any(|file| file.path.starts_with("crates/tools/src/tools/") && file.path.ends_with(&file_name))
    };
    let lists = files.iter().filter(|file| file.path == TOOL_NAMES);
    let names = lists
        .flat_map(|file| file.text.lines())
        .filter_map(|line| line.strip_prefix("    \"")?.strip_suffix("\","));
    names.filter(is_there).map(str::to_owned).collect()
}

/// Read from the enum itself, so that a new variant asks for its scenario.
fn chunk_types(files: &[SourceFile]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == VOCABULARY) else { return Vec::new() };
    file.text
        .lines()
        .skip_while(|line| !line.starts_with("pub enum Chunk {"))
        .skip(1)
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .filter_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()).next())
        .map(wire_name)
        .collect()
}

/// `TextDelta` → `text-delta`; `Data` means every `data-…`.
fn wire_name(variant: &str) -> String {
    let mut name = String::new();
    for character in variant.chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    match name.as_str() {
        "data" => "data-".to_owned(),
        _ => name,
    }
}

fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    text.match_indices(name).any(|(start, _)| {
        let (before, after) = (text[..start].chars().next_back(), text[start + name.len()..].chars().next());
        !is_part(before) && (name.ends_with('-') || !is_part(after))
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    const CHUNKS: &str = "pub enum Other {\n    Nothing,\n}\npub enum Chunk {\n    /// Begins.\n    Start { rest: Rest },\n    \
                          TextDelta {\n        Wrapped: String,\n    },\n    Data { name: String },\n}\nimpl Chunk {\n    Foo\n}\n";

    fn house(scenario: Option<&str>) -> Vec<SourceFile> {
        let mut files = vec![
            file(VOCABULARY, CHUNKS),
            file(TOOL_NAMES, "pub const BUILTIN_TOOLS: [&str; 2] = [\n    \"read\",\n    \"task\",\n];\n"),
            file("crates/tools/src/tools/read.rs", ""),
        ];
        files.extend(scenario.map(|text| file("crates/cli/scenarios/a.md", text)));
        files
    }

    #[test]
    fn nothing_is_asked_before_the_first_scenario() {
        assert_eq!(check(&house(None)), []);
    }

    #[test]
    fn a_complete_set_passes() {
        assert_eq!(check(&house(Some("## To read\nstart, text-delta, data-plan"))), []);
        let mut files = house(Some("start, text-delta, data-plan"));
        files.push(file("crates/cli/scenarios/read.md", ""));
        assert_eq!(check(&files), [], "or a file of its own");
        files.push(file(README, "`write`"));
        assert_eq!(check(&files), [Finding::new(README, "does not name the tool `read`")]);
    }

    #[test]
    fn transcripts_count_but_start_no_duty() {
        let transcript = file("crates/acp/tests/updates.md", "data-plan");
        let mut files = house(None);
        files.push(transcript.clone());
        assert_eq!(check(&files), []);
        let mut files = house(Some("# read\nstart text-delta"));
        files.push(transcript);
        assert_eq!(check(&files), []);
    }

    #[test]
    fn what_no_scenario_shows_is_found() {
        let found = check(&house(Some("## Reads\ncall read {}, start-step, text-delta")));
        let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "no scenario is about the tool `read`: none has its name, no heading names it",
                "no scenario shows the chunk `start`",
                "no scenario shows the chunk `data-`"
            ]
        );
    }

    #[test]
    fn a_list_of_tools_that_cannot_be_read_is_found() {
        let mut files = house(Some("call read {}"));
        files.retain(|file| file.path != TOOL_NAMES);
        assert_eq!(check(&files), [Finding::new(TOOL_NAMES, "names no tool that has a file")]);
    }

    #[test]
    fn a_vocabulary_that_cannot_be_read_is_found() {
        let files = [file("crates/cli/scenarios/a.md", ""), file(VOCABULARY, "")];
        assert_eq!(check(&files).len(), 1);
    }
}
