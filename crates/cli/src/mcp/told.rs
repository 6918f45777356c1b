//! Describes a project's MCP servers without any key, and how they differ from those its user consented to.
//! Starts nothing.

use std::collections::BTreeMap;
use std::path::Path;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{HiddenText, OAuthSettings, PrivateAddresses, ServerEntry, ServerTransport};
use toml_edit::{Document, Item, TableLike};

use super::of_project::servers_of_files;
use crate::project_files::{PROJECT_CONFIG, ProjectFiles};
use crate::projects::shell_word;

/// Descriptions of servers by name.
pub(crate) type ToldServers = BTreeMap<String, String>;

/// The servers of all files of a project. For an entry with a mistake, the mistake.
pub(crate) fn servers_of(found: &ProjectFiles) -> ToldServers {
    let of_files =
        servers_of_files(found, &mut Vec::new()).into_iter().map(|entry| (entry.name.clone(), told(&entry)));
    let bytes = found.text_of(Path::new(PROJECT_CONFIG)).unwrap_or_default();
    let document = Document::parse(String::from_utf8_lossy(bytes).into_owned()).ok();
    let table = document.as_ref().and_then(|document| document.get("mcp")?.as_table_like());
    let own = table.into_iter().flat_map(TableLike::iter);
    let own = own.filter_map(|(name, item)| Some((name.to_owned(), told_table(item.as_table_like()?))));
    // The project's own file comes first, as in a session.
    of_files.chain(own).collect()
}

/// A line for each server that has changed; nothing if we do not know the earlier state.
pub(crate) fn changes(before: &ToldServers, now: &ToldServers) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, what) in now {
        let shown = legible_line(name);
        match before.get(name) {
            Some(known) if known == what => {}
            Some(known) => {
                lines.push(format!("MCP server {shown} was: {known}\nMCP server {shown} is:  {what}"))
            }
            None => lines.push(format!("MCP server {shown} is new: {what}")),
        }
    }
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    lines.extend(gone.map(|name| format!("MCP server {} is gone", legible_line(name))));
    lines
}

fn told(entry: &ServerEntry) -> String {
    let named = |what: &str, pairs: &[(String, HiddenText)]| {
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("; {what}: {}", names.join(", ")) }
    };
    legible_line(&match &entry.transport {
        ServerTransport::Stdio { command, arguments, environment, directory } => {
            let words = std::iter::once(command).chain(arguments).map(|word| shell_word(Path::new(word)));
            let place = directory.as_ref().map(|place| format!("; in {}", place.display()));
            let line = words.collect::<Vec<_>>().join(" ");
            format!("{line}{}{}", place.unwrap_or_default(), named("variables", environment))
        }
        ServerTransport::Http { url, headers } | ServerTransport::Sse { url, headers } => {
            let login = login(&entry.oauth);
            format!("{url} ({}){}{login}", entry.transport.as_str(), named("headers", headers))
        }
        ServerTransport::Unusable(problem) => problem.clone(),
    })
}

/// The settings for logging in, without the secret.
fn login(settings: &OAuthSettings) -> String {
    let OAuthSettings { client_id, client_secret, scopes, redirect_port, private_addresses } = settings;
    let mut words: Vec<String> = client_id.iter().map(|id| format!("client {id}")).collect();
    words.extend(client_secret.iter().map(|_| "a secret".to_owned()));
    words.extend((!scopes.is_empty()).then(|| format!("scopes {}", scopes.join(" "))));
    words.extend(redirect_port.map(|port| format!("port {port}")));
    words.extend((*private_addresses == PrivateAddresses::Allowed).then(|| "private addresses".to_owned()));
    if words.is_empty() { String::new() } else { format!("; logs in with {}", words.join(", ")) }
}

/// Describes a table of the project's own file without values of variables and headers.
fn told_table(table: &dyn TableLike) -> String {
    let line = |(key, item): (&str, &Item)| match item.as_table_like() {
        Some(inner) => {
            format!("{key}: {}", inner.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", "))
        }
        None => format!("{key} = {}", item.to_string().trim()),
    };
    legible_line(&table.iter().map(line).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(mcp: &str, config: &str) -> ToldServers {
        let mut found = ProjectFiles::default();
        found.files.extend([(".mcp.json".into(), mcp.into()), (PROJECT_CONFIG.into(), config.into())]);
        servers_of(&found)
    }

    #[test]
    fn what_is_other_is_said_and_no_value_of_a_variable() {
        let before = servers(
            r#"{"mcpServers": {"a": {"command": "uvx", "args": ["x"]}, "b": {"url": "https://b.test"}}}"#,
            "[mcp.c]\ncommand = [\"c\"]\nenv = { KEY = \"canary\" }\n",
        );
        assert_eq!(before["c"], "command = [\"c\"]; env: KEY");
        assert_eq!(changes(&before, &before), Vec::<String>::new());
        let now = servers(
            r#"{"mcpServers": {"a": {"command": "uvx", "args": ["x", "--all of it"], "env": {"K": "canary"}}}}"#,
            "[mcp.c]\ncommand = [\"c\"]\nenv = { KEY = \"canary\", MORE = \"canary\" }\n[mcp.d]\nurl = \"https://d.test\"\n",
        );
        assert_eq!(
            changes(&before, &now),
            [
                "MCP server a was: uvx x\nMCP server a is:  uvx x '--all of it'; variables: K",
                "MCP server c was: command = [\"c\"]; env: KEY\nMCP server c is:  command = [\"c\"]; env: KEY, MORE",
                "MCP server d is new: url = \"https://d.test\"",
                "MCP server b is gone",
            ]
        );
    }

    #[test]
    fn a_login_is_told_without_its_secret() {
        let text = r#"{"mcpServers": {"a": {"url": "https://a.test", "oauth": {"clientId": "i", "clientSecret": "${CANARY}", "callbackPort": 99, "scopes": ["r", "w"]}}}}"#;
        let told = servers(text, "");
        assert_eq!(told["a"], "https://a.test (http); logs in with client i, a secret, scopes r w, port 99");
    }
}
