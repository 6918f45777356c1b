//! Checks every block of code in the documents, and every command within a text, with the code that would read
//! it.

use clap::Parser;
use clap::error::ErrorKind;
use serde_json::Value;

use super::examples;
use super::shell_lines::commands;
use super::{CodeBlock, DocumentPage, pages};
use crate::args::Args;

/// Programs that a documented shell line may start, so that a misspelt name fails the test.
const PROGRAMS: [&str; 23] = [
    "apt",
    "apt-get",
    "attache",
    "brew",
    "cargo",
    "cd",
    "curl",
    "dpkg",
    "echo",
    "exit",
    "export",
    "git",
    "goose",
    "install",
    "jq",
    "npm",
    "npx",
    "ollama",
    "sh",
    "sha256sum",
    "sqlite3",
    "sudo",
    "tar",
];

/// Every language of the documents needs an arm here.
fn check(block: &CodeBlock<'_>) -> Result<(), String> {
    match block.language {
        "sh" => shell(&block.text),
        "toml" => examples::configuration(&block.text),
        "json" => json(&block.text),
        "jsonc" => messages(&block.text),
        "yaml" => {
            examples::agent(&format!("---\nmode: subagent\ndescription: x\n{}---\nDo it.\n", block.text))
        }
        "markdown" => examples::knowledge(&block.text),
        "text" if block.text.contains("\non ") || block.text.starts_with("on ") => {
            attache_models::Script::parse(&block.text).map(drop).map_err(|error| error.to_string())
        }
        // Text that a screen shows.
        "text" => Ok(()),
        "yml" => steps(&block.text),
        "lua" | "elisp" | "rust" | "js" | "nginx" | "caddy" => balanced(&block.text),
        other => Err(format!("nothing reads blocks in {other:?}")),
    }
}

fn shell(text: &str) -> Result<(), String> {
    for words in commands(text)? {
        if !PROGRAMS.contains(&words[0].as_str()) {
            return Err(format!("unknown program {:?}", words[0]));
        }
        command(&words)?;
    }
    Ok(())
}

/// Checks it with the real command line; help and version count as success.
fn command(words: &[String]) -> Result<(), String> {
    read(words).map_err(|error| format!("{}: {error}", words.join(" ")))
}

/// A command within a text need not be complete.
fn beginning(words: &[String]) -> Result<(), String> {
    match read(words) {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Ok(()),
            _ => Err(error.to_string()),
        },
    }
}

fn read(words: &[String]) -> Result<(), clap::Error> {
    // The program's name alone starts the chat, which needs a terminal.
    if words[0] != "attache" || words.len() == 1 {
        return Ok(());
    }
    match Args::try_parse_from(words) {
        Ok(_) => Ok(()),
        Err(answer) if !answer.use_stderr() => Ok(()),
        Err(error) => Err(error),
    }
}

/// One JSON document, or several.
fn json(text: &str) -> Result<(), String> {
    let mut seen = 0;
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        value.map_err(|error| error.to_string())?;
        seen += 1;
    }
    if seen == 0 { Err("no JSON at all".to_owned()) } else { Ok(()) }
}

/// Messages after arrows, with comment lines between them. Three dots stand for omitted text.
fn messages(text: &str) -> Result<(), String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n").replace("{…}", "{}").replace("[…]", "[]");
    for message in text.split(['→', '←']).map(str::trim).filter(|message| !message.is_empty()) {
        let message: Value = serde_json::from_str(message).map_err(|error| format!("{error}: {message}"))?;
        if let Some(method) = message["method"].as_str()
            && !attache_acp::from_wire::methods::REQUESTS.iter().any(|known| known.name == method)
        {
            return Err(format!("there is no method {method}"));
        }
    }
    Ok(())
}

/// The commands of a CI job.
fn steps(text: &str) -> Result<(), String> {
    let run =
        |line: &str| line.trim_start().trim_start_matches("- ").strip_prefix("run: ").map(str::to_owned);
    let lines: Vec<String> = text.lines().filter_map(run).collect();
    if lines.is_empty() { Err("no step runs anything".to_owned()) } else { shell(&lines.join("\n")) }
}

fn balanced(text: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for character in text.chars() {
        match character {
            '(' => open.push(')'),
            '{' => open.push('}'),
            '[' => open.push(']'),
            ')' | '}' | ']' if open.pop() != Some(character) => {
                return Err(format!("{character} closes nothing"));
            }
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are missing")) }
}

#[test]
fn every_block_is_read_by_what_would_read_it() {
    let pages = pages();
    let (mut problems, mut read) = (Vec::new(), 0);
    for block in pages.iter().flat_map(DocumentPage::blocks) {
        read += 1;
        if let Err(problem) = check(&block) {
            problems.push(format!("{} ({}): {problem}", block.place, block.language));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(read > 50, "{read} blocks");
}

#[test]
fn every_command_in_the_text_exists() {
    let mut problems = Vec::new();
    for page in pages() {
        for (line, span) in page.spans() {
            // A span with brackets or dots is not a complete command.
            if !span.starts_with("attache ") || span.contains(['[', '…']) {
                continue;
            }
            let checked =
                commands(span).and_then(|found| found.iter().try_for_each(|words| beginning(words)));
            problems
                .extend(checked.err().map(|problem| format!("{}:{line}: `{span}`: {problem}", page.name)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_nothing_would_read_is_found() {
    let check = |language: &str, text: &str| {
        let block = CodeBlock { language, text: text.to_owned(), place: String::new() };
        check(&block)
    };
    for (language, text) in [
        ("sh", "attache sesions list"),
        ("sh", "echo x | attache chat --no-such-option"),
        ("sh", "atache doctor"),
        ("toml", "modle = \"a/b\""),
        ("toml", "[web_search]\nprovider = 1"),
        ("json", "{\"a\": }"),
        ("json", ""),
        ("jsonc", "→ {\"method\": \"session/forkk\"}"),
        ("yaml", "permissions: 7\n"),
        ("markdown", "---\nmode: nothing\n---\nx\n"),
        ("text", "on *\n  say \"x\"\n"),
        ("lua", "f({)}"),
        ("yml", "- run: attache nonsense"),
        ("perl", "1"),
        ("", "x"),
    ] {
        assert!(check(language, text).is_err(), "{language}: {text}");
    }
}

/// People search the page for words from their screen, so it must use the program's exact words.
#[test]
fn the_messages_on_the_troubleshooting_page_are_ours() {
    let page = pages().into_iter().find(|page| page.name == "docs/troubleshooting.md").unwrap();
    let mut sources = String::new();
    read_sources(&super::repository().join("crates"), &mut sources);
    let headings = page.text.lines().filter(|line| line.starts_with("### "));
    let messages: Vec<&str> = headings.flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    assert!(messages.len() > 15, "{messages:?}");
    for message in messages {
        assert!(sources.contains(message), "nothing says `{message}`");
    }
}

/// Appends the text of every source file of the program; joins a message that spans two lines.
fn read_sources(directory: &std::path::Path, all: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "testkit", "documents"].contains(&name.as_str()) {
            read_sources(&path, all);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines = text.lines();
            while let Some(line) = lines.next() {
                match line.strip_suffix('\\') {
                    Some(begun) => {
                        *all += &format!("{begun}{}\n", lines.next().unwrap_or_default().trim_start())
                    }
                    None => *all += &format!("{line}\n"),
                }
            }
        }
    }
}
