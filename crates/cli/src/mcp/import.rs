//! `attache mcp import`: adds the servers of other agents and editors to the user's file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::mcp::{ServerEntry, ServerOrigin, ServerTransport};
use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use super::add::plain_values;
use super::{edit, json};
use crate::answer;
use crate::config::{open_document, read_text, store_document};
use crate::limits::MAX_CONFIG_FILE_BYTES;
use crate::setup::Sources;

/// Below the home.
const PLACES: [&str; 13] = [
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".config/zed/settings.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".codex/config.toml",
];

/// Whether to ask the user before adding servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportConsent {
    Asked,
    /// With `--yes`.
    Given,
}

pub(super) fn run(sources: &Sources, file: Option<&Path>, consent: ImportConsent) -> Result<ExitCode> {
    let found = match file {
        Some(file) => vec![read(file)?.with_context(|| format!("there is no file {}", file.display()))?],
        None => in_usual_places(sources)?,
    };
    let config = &sources.config.file;
    let mut document = open_document(config)?;
    let mut known = edit::names(&document);
    let mut new: Vec<(PathBuf, ServerEntry)> = Vec::new();
    for (file, entries) in found {
        for entry in entries {
            let name = legible_line(&entry.name);
            if let ServerTransport::Unusable(problem) = &entry.transport {
                answer::note(&format!("attache: skipped {name}: {}", legible_line(problem)));
            } else if known.contains(&entry.name) {
                answer::note(&format!("attache: skipped {name} of {}: you have one", file.display()));
            } else {
                known.push(entry.name.clone());
                new.push((file.clone(), entry));
            }
        }
    }
    if new.is_empty() {
        answer::write("There is nothing new to import.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    for (file, entry) in &new {
        answer::write(&format!("{} ({}, of {})\n", legible_line(&entry.name), what(entry), file.display()))?;
    }
    for (_, entry) in &new {
        for name in plain_values(entry) {
            answer::note(&format!(
                "attache: the value of {name} of {} is copied into your configuration as it is; write ${{{name}}} there \
                 to have it read from the environment",
                legible_line(&entry.name)
            ));
        }
    }
    if consent == ImportConsent::Asked && !answer::is_agreed(&format!("Add {}?", counted(new.len())))? {
        bail!("nothing was imported; to import it: attache mcp import --yes");
    }
    new.iter().for_each(|(_, entry)| edit::put(&mut document, entry));
    store_document(config, &document)?;
    answer::write(&format!("Added {} to {}.\n", counted(new.len()), config.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn what(entry: &ServerEntry) -> String {
    match &entry.transport {
        ServerTransport::Stdio { command, .. } => format!("runs {}", legible_line(command)),
        ServerTransport::Http { .. } | ServerTransport::Sse { .. } | ServerTransport::Unusable(_) => {
            entry.transport.as_str().to_owned()
        }
    }
}

fn in_usual_places(sources: &Sources) -> Result<Vec<(PathBuf, Vec<ServerEntry>)>> {
    let home = sources.dirs.home.clone().context("your home directory is not known")?;
    let mut found = Vec::new();
    for place in PLACES {
        match read(&home.join(place)) {
            Ok(read) => found.extend(read),
            // Settings of other programs may contain no servers.
            Err(problem) => tracing::debug!(%problem, "nothing to import"),
        }
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Option<(PathBuf, Vec<ServerEntry>)>> {
    let Some(text) = read_text(file, MAX_CONFIG_FILE_BYTES).map_err(anyhow::Error::msg)? else {
        return Ok(None);
    };
    let shown = file.display().to_string();
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    let text = if is_toml { from_toml(&text, &shown)? } else { text };
    let entries = json::servers(&text, &shown, ServerOrigin::User).map_err(anyhow::Error::msg)?;
    Ok(Some((file.to_owned(), entries)))
}

/// The TOML as JSON; from a larger file only the servers.
fn from_toml(text: &str, shown: &str) -> Result<String> {
    const TABLE: &str = "mcp_servers";
    let document: DocumentMut = text.parse().with_context(|| format!("{shown} is not valid TOML"))?;
    let servers = document.get(TABLE).with_context(|| format!("{shown}: there is no table {TABLE} in it"))?;
    Ok(json!({ TABLE: as_json(servers) }).to_string())
}

/// Dates become texts; no server has one.
fn as_json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(name, item)| (name.to_owned(), as_json(item))).collect();
    }
    if let Some(array) = item.as_array() {
        return array.iter().map(|value| as_json(&Item::Value(value.clone()))).collect();
    }
    let number = item.as_integer().map(Value::from).or_else(|| item.as_float().map(Value::from));
    let plain = number.or_else(|| item.as_bool().map(Value::from));
    plain.unwrap_or_else(|| item.as_str().map_or_else(|| item.to_string(), str::to_owned).into())
}

fn counted(count: usize) -> String {
    if count == 1 { "1 server".to_owned() } else { format!("{count} servers") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_in_toml_are_read_and_nothing_else() {
        let text = "model = \"x\"\n[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\nstartup_timeout_sec = 5\n\
                    [mcp_servers.git.env]\nTOKEN = \"t\"\n[mcp_servers.far]\nurl = \"https://x.test\"\nenabled = true\n";
        let found: Value = serde_json::from_str(&from_toml(text, "config.toml").unwrap()).unwrap();
        assert_eq!(
            found,
            json!({ "mcp_servers": {
            "git": { "command": "uvx", "args": ["mcp-server-git"], "startup_timeout_sec": 5, "env": { "TOKEN": "t" } },
            "far": { "url": "https://x.test", "enabled": true },
        } })
        );
        for (bad, why) in [("model = 1", "no table mcp_servers"), ("[", "not valid TOML")] {
            assert!(format!("{:#}", from_toml(bad, "config.toml").unwrap_err()).contains(why), "{bad}");
        }
    }
}
