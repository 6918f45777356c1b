//! docs/reference: pages generated from the code. `UPDATE_EXPECT=1` writes them anew.

use std::fmt::Write;

use attache_acp::from_wire::methods::{MethodEntry, NOTIFICATIONS, REQUESTS};
use attache_core::ports::tool::Effect;
use attache_core::scope::{Guarded, ProtectedKind, Where};
use attache_core::tool_names::BUILTIN_TOOLS;
use attache_core::watchdog::{Action, Approval, Rule};
use attache_tools::{Equipment, SearchEndpoint, SearchProvider};
use clap::{Arg, Command, CommandFactory};
use serde_json::Value;

use super::{examples, repository};
use crate::args::Args;
use crate::config;

const MADE: &str = "<!-- Made from the code; `UPDATE_EXPECT=1 cargo test --workspace --bin attache documents` writes it. -->\n";

#[test]
fn the_reference_says_what_the_code_says() {
    let pages = [
        ("commands", commands()),
        ("configuration", configuration()),
        ("acp", methods()),
        ("tools", tools()),
        ("permissions", permissions()),
    ];
    for (name, text) in pages {
        let path = repository().join(format!("docs/reference/{name}.md"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stored == text, "docs/reference/{name}.md is stale: run with UPDATE_EXPECT=1");
    }
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn commands() -> String {
    let mut page = format!("# Commands\n\n{MADE}\nEvery command also takes `-h`.\n");
    let mut root = Args::command();
    root.build();
    of_command(&root, "attache", &mut page);
    page
}

fn of_command(command: &Command, name: &str, page: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(page, "\n## {name}\n\n{}.", cell(about.trim_end_matches('.'))).unwrap();
    let is_told = |argument: &&Arg| {
        !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    // One page describes the options that all commands share.
    let is_own = |argument: &&Arg| name == "attache" || !argument.is_global_set();
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_told).filter(is_own).collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | what it does |\n|---|---|\n");
    }
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "| `{}` | {} |", cell(&written(argument)), cell(&help)).unwrap();
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples: Vec<&str> =
        after.lines().map(str::trim).filter(|line| line.starts_with("attache ")).collect();
    if !examples.is_empty() {
        writeln!(page, "\n```sh\n{}\n```", examples.join("\n")).unwrap();
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        of_command(below, &format!("{name} {}", below.get_name()), page);
    }
}

/// The argument as users type it.
fn written(argument: &Arg) -> String {
    let values = argument.get_possible_values();
    let names = argument.get_value_names().unwrap_or_default();
    let value = match argument.get_action().takes_values() {
        false => String::new(),
        true if !values.is_empty() => {
            values.iter().map(|value| value.get_name()).collect::<Vec<_>>().join(",")
        }
        true => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let name = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    [name, value].join(" ").trim().to_owned()
}

fn configuration() -> String {
    let mut page = format!(
        "# Configuration keys\n\n{MADE}\nEach key of `config.toml` with what it accepts and the variable that sets it, too. \
         [Configuration](../configuration.md) explains them.\n\n| key | accepts | variable |\n|---|---|---|\n"
    );
    for key in config::reference::keys() {
        writeln!(page, "| `{}` | {} | `{}` |", key.path, cell(key.expected), key.variable).unwrap();
    }
    page.push_str("\n## Tables with names or several entries\n\n| table | keys |\n|---|---|\n");
    for (table, keys) in config::reference::tables() {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        writeln!(page, "| `{table}` | {} |", keys.join(", ")).unwrap();
    }
    page.push_str("\n## Where nothing is configured\n\n```toml\n");
    let printed = examples::defaults();
    let settings = printed.lines().skip_while(|line| line.starts_with("# configuration file"));
    for line in settings.take_while(|line| !line.starts_with("[providers")) {
        writeln!(page, "{line}").unwrap();
    }
    while page.ends_with("\n\n") {
        page.pop();
    }
    page + "```\n"
}

fn methods() -> String {
    let mut page = format!(
        "# ACP methods\n\n{MADE}\nWhat an editor can ask of `attache acp`; [The protocol](../acp.md) explains those of attache's own, which \
         begin with `_attache/`.\n"
    );
    let mut table = |heading: &str, entries: &[MethodEntry]| {
        write!(page, "\n## {heading}\n\n| method | what it does |\n|---|---|\n").unwrap();
        for MethodEntry { name, what } in entries {
            writeln!(page, "| `{name}` | {what} |").unwrap();
        }
    };
    table("Requests", &REQUESTS);
    table("Notifications", &NOTIFICATIONS);
    page
}

fn tools() -> String {
    let mut page = format!(
        "# Tools\n\n{MADE}\nWhat a model can call. The descriptions are those that models read. Those that read only run without a \
         question within the session's directories; [Permissions](../permissions.md) says what asks. `task` gives work to \
         [subagents](../subagents.md), `tool_search` finds tools of [MCP servers](../mcp.md) where they are many.\n"
    );
    let search = SearchEndpoint::new(SearchProvider::Searxng, "https://search.example", None).unwrap();
    let equipment = Equipment { web_search: Some(search), ..Equipment::bare() };
    let tools = attache_tools::builtin(equipment);
    for tool in &tools {
        let spec = tool.spec();
        let effect = match spec.effect {
            Effect::ReadOnly => "reads only",
            Effect::SessionOnly => "changes only what the session keeps for itself",
            Effect::Mutates => "can change something",
        };
        writeln!(page, "\n## {}\n\n{} ({effect})", spec.id, cell(&spec.description)).unwrap();
        arguments(&spec.parameters, &mut page);
    }
    for known in BUILTIN_TOOLS {
        assert!(page.contains(&format!("\n## {known}\n")) || page.contains(&format!("`{known}`")), "{known}");
    }
    page
}

fn arguments(schema: &Value, page: &mut String) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty())
    else {
        return;
    };
    page.push_str("\n| argument | | what it is |\n|---|---|---|\n");
    for (name, property) in properties {
        let need = if required.contains(&name.as_str()) { "required" } else { "" };
        let what = property["description"].as_str().unwrap_or_default();
        writeln!(page, "| `{name}` | {need} | {} |", cell(what)).unwrap();
    }
}

fn permissions() -> String {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut page = format!(
        "# What rules can be about\n\n{MADE}\n[Permissions](../permissions.md) explains rules.\n\n| field | values |\n|---|---|\n"
    );
    let permissions: Vec<&str> = Rule::known_permissions().collect();
    let actions: Vec<&str> = Action::ALL.iter().map(|action| action.as_str()).collect();
    let levels: Vec<&str> = Approval::ALL.iter().map(|level| level.as_str()).collect();
    writeln!(page, "| `permission` | {}, `mcp:SERVER:TOOL` |", list(&permissions)).unwrap();
    writeln!(page, "| `action` | {} |", list(&actions)).unwrap();
    writeln!(page, "| `approval` of the configuration or a session | {} |", list(&levels)).unwrap();
    page.push_str("\n## What no agent changes\n\n| name | what it is | where | why |\n|---|---|---|---|\n");
    for name in Guarded::protected() {
        let kind = match name.kind {
            ProtectedKind::File => "file",
            ProtectedKind::Directory => "directory",
        };
        let place = match name.place {
            Where::Anywhere => "anywhere",
            Where::Home => "home",
        };
        writeln!(page, "| `{}` | {kind} | {place} | {} |", name.name(), cell(name.reason)).unwrap();
    }
    page.push_str("\n## What no agent reads\n\nBelow the home:\n\n");
    for name in Guarded::secret_names() {
        writeln!(page, "- `{name}`").unwrap();
    }
    page
}
