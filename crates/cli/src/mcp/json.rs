//! Reads MCP servers from the JSON of other agents and editors. An entry with a mistake becomes a server that
//! fails with that mistake; the others work.

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, PrivateAddresses, ServerDeadlines, ServerEntry, ServerOrigin, ServerRight,
    ServerRights, ServerSampling, ServerTransport,
};
use serde_json::{Map, Value};

use crate::config::nearest;
use crate::jsonc;

/// Under which key others keep their table of servers.
const TABLES: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];

const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];

/// One file while we read it.
struct ServersFile<'a> {
    text: &'a str,
    /// For messages.
    shown: &'a str,
    origin: ServerOrigin,
}

/// The servers in a text, in its order. `shown` is the name of the text in messages.
pub(crate) fn servers(text: &str, shown: &str, origin: ServerOrigin) -> Result<Vec<ServerEntry>, String> {
    let plain = jsonc::plain(text);
    let value: Value = serde_json::from_str(&plain).map_err(|error| {
        format!("{shown}:{}: not valid JSON ({})", error.line(), legible_line(&error.to_string()))
    })?;
    let file = ServersFile { text, shown, origin };
    let Some(table) = table(&value) else {
        return Err(format!("{shown}: there is no table of servers in it ({})", TABLES.join(", ")));
    };
    let is_on = |entry: &Value| {
        entry.get("disabled").and_then(Value::as_bool) != Some(true)
            && entry.get("enabled").and_then(Value::as_bool) != Some(false)
    };
    Ok(table.iter().filter(|(_, entry)| is_on(entry)).map(|(name, entry)| file.server(name, entry)).collect())
}

/// The table of servers: in the whole file, in its settings, or the text itself.
fn table(value: &Value) -> Option<&Map<String, Value>> {
    let inner = [value, value.get("mcp").unwrap_or(&Value::Null)];
    let named = inner.iter().find_map(|value| TABLES.iter().find_map(|name| value.get(name)?.as_object()));
    let is_table = |table: &&Map<String, Value>| {
        !table.is_empty() && table.values().all(|entry| entry.get("command").or(entry.get("url")).is_some())
    };
    let bare = || [value.get("mcp"), Some(value)].into_iter().flatten().find_map(Value::as_object);
    named.or_else(|| bare().filter(is_table)).or_else(|| value.as_object().filter(is_table))
}

impl ServersFile<'_> {
    fn server(&self, name: &str, entry: &Value) -> ServerEntry {
        let usual = match &self.origin {
            ServerOrigin::Client | ServerOrigin::User => ServerRights::USUAL,
            ServerOrigin::Project(_) => ServerRights::OF_PROJECT,
        };
        let said = |key: &str| entry.get(key).and_then(Value::as_bool);
        let rights = ServerRights {
            network: ServerRight::said(said("network"), usual.network),
            write: ServerRight::said(said("write"), usual.write),
        };
        let read = transport(entry).and_then(|transport| Ok((transport, oauth(entry)?)));
        let (transport, oauth) = read.unwrap_or_else(|problem| {
            let quoted = Value::from(name).to_string();
            let at = self.text.find(&quoted).unwrap_or(0);
            let line = self.text[..at].matches('\n').count() + 1;
            let problem = format!("{}:{line}: {problem}", self.shown);
            (ServerTransport::Unusable(problem), OAuthSettings::default())
        });
        let (name, origin) = (name.to_owned(), self.origin.clone());
        let (deadlines, sampling) = (ServerDeadlines::default(), ServerSampling::Refused);
        ServerEntry { name, origin, transport, rights, deadlines, sampling, oauth }
    }
}

/// The login settings, under the names that other programs use.
fn oauth(entry: &Value) -> Result<OAuthSettings, String> {
    let Some(fields) = entry.get("oauth").or(entry.get("auth")).and_then(Value::as_object) else {
        return Ok(OAuthSettings::default());
    };
    let value = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)).filter(|value| !value.is_null());
    let text = |keys: &[&str]| match value(keys) {
        None => Ok(None),
        Some(value) => match value.as_str().filter(|text| !text.is_empty()) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(format!("`{}` must be a string", keys[0])),
        },
    };
    let client_secret = text(&["clientSecret", "client_secret", "CLIENT_SECRET"])?;
    if client_secret.as_ref().is_some_and(|secret| !secret.contains("${")) {
        return Err("`clientSecret` must refer to a variable: \"${NAME}\"".to_owned());
    }
    let scopes = match value(&["scopes"]) {
        None => Vec::new(),
        Some(list) => texts(list).ok_or("`scopes` must be a list of strings")?,
    };
    let redirect_port = match value(&["callbackPort", "redirect_port"]) {
        None => None,
        Some(port) => {
            let port = port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            Some(port.ok_or("`callbackPort` must be a port")?)
        }
    };
    Ok(OAuthSettings {
        client_id: text(&["clientId", "client_id", "CLIENT_ID"])?,
        client_secret: client_secret.map(HiddenText::new),
        scopes,
        redirect_port,
        private_addresses: PrivateAddresses::Refused,
    })
}

fn transport(entry: &Value) -> Result<ServerTransport, String> {
    let Some(fields) = entry.as_object() else { return Err("a server must be an object".to_owned()) };
    let text = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)?.as_str().map(str::to_owned));
    let url = text(&["url", "httpUrl", "serverUrl", "uri"]);
    let stated = match text(&["type", "transport"]) {
        None => None,
        Some(name) => Some(kind(&name).ok_or_else(|| {
            let near = nearest(&name, &TRANSPORTS).map(|near| format!(", did you mean \"{near}\"?"));
            let known = TRANSPORTS.join(", ");
            format!("its transport is unknown{} (known: {known})", near.unwrap_or_default())
        })?),
    };
    let kind = stated.unwrap_or(if url.is_some() { "http" } else { "stdio" });
    if kind != "stdio" {
        let url = url.ok_or_else(|| "it has no url".to_owned())?;
        let headers = pairs(fields, "headers")?;
        return Ok(match kind {
            "sse" => ServerTransport::Sse { url, headers },
            _ => ServerTransport::Http { url, headers },
        });
    }
    let (command, arguments) = command(fields)?;
    let directory = text(&["cwd"]).map(Into::into);
    let variables = if fields.contains_key("env") { "env" } else { "environment" };
    Ok(ServerTransport::Stdio { command, arguments, environment: pairs(fields, variables)?, directory })
}

/// A program and its arguments; some files write them as a list, some as an object.
fn command(fields: &Map<String, Value>) -> Result<(String, Vec<String>), String> {
    let inner = fields.get("command");
    let more = |fields: &Map<String, Value>| match fields.get("args") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) => texts(list).ok_or_else(|| "`args` must be a list of strings".to_owned()),
    };
    match inner {
        Some(Value::String(command)) => Ok((command.clone(), more(fields)?)),
        Some(list @ Value::Array(_)) => {
            let words = texts(list).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| "`command` must be a list of strings".to_owned())?;
            Ok((words[0].clone(), words[1..].iter().cloned().chain(more(fields)?).collect()))
        }
        Some(Value::Object(inner)) => {
            let path = inner.get("path").and_then(Value::as_str).ok_or("it has no command")?;
            Ok((path.to_owned(), more(inner)?))
        }
        Some(_) => Err("`command` must be a string".to_owned()),
        None => Err("it has no command and no url".to_owned()),
    }
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

fn pairs(fields: &Map<String, Value>, key: &str) -> Result<Vec<(String, HiddenText)>, String> {
    let wrong = || format!("`{key}` must be an object of strings");
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(value) => Ok((name.clone(), HiddenText::new(value.as_str()))),
        Value::Number(_) | Value::Bool(_) => Ok((name.clone(), HiddenText::new(value.to_string()))),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(wrong()),
    };
    match fields.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(table)) => table.iter().map(pair).collect(),
        Some(_) => Err(wrong()),
    }
}

/// What other programs call their transports.
fn kind(name: &str) -> Option<&'static str> {
    match name {
        "stdio" | "local" => Some("stdio"),
        "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote" => Some("http"),
        "sse" => Some("sse"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<ServerEntry> {
        servers(text, "f.json", ServerOrigin::User).unwrap_or_else(|error| panic!("{error}"))
    }

    fn stdio(entry: &ServerEntry) -> (&str, &[String]) {
        match &entry.transport {
            ServerTransport::Stdio { command, arguments, .. } => (command, arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_forms_of_other_programs_are_read() {
        for text in [
            r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}"#,
            r#"{"servers": {"git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"]}}}"#,
            r#"{"mcp": {"servers": {"git": {"command": ["uvx", "mcp-server-git"]}}}}"#,
            r#"{"context_servers": {"git": {"command": {"path": "uvx", "args": ["mcp-server-git"]}}}}"#,
            r#"{"git": {"command": "uvx", "args": ["mcp-server-git"]}}"#,
            r#"{"$schema": "x", "mcp": {"git": {"type": "local", "command": ["uvx", "mcp-server-git"]}}}"#,
            "{\n // a comment \"x\"\n\"mcpServers\": {\"git\": /* y */ {\"command\": \"uvx\", \"args\": [\"mcp-server-git\",],},},\n}",
        ] {
            let found = read(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(
                (found[0].name.as_str(), stdio(&found[0])),
                ("git", ("uvx", &["mcp-server-git".to_owned()][..]))
            );
        }
        let remote = read(
            r#"{"mcpServers": {"a": {"url": "https://x"}, "b": {"type": "sse", "url": "https://y", "headers": {"A": "//k"}}}}"#,
        );
        assert!(matches!(&remote[0].transport, ServerTransport::Http { url, .. } if url == "https://x"));
        assert!(
            matches!(&remote[1].transport, ServerTransport::Sse { headers, .. } if headers[0].1.expose() == "//k")
        );
    }

    #[test]
    fn what_others_know_of_a_login_is_read() {
        for text in [
            r#"{"a": {"url": "https://x", "oauth": {"clientId": "i", "clientSecret": "${S}", "callbackPort": 99, "scopes": ["r"]}}}"#,
            r#"{"a": {"url": "https://x", "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "${S}", "redirect_port": 99, "scopes": ["r"]}}}"#,
        ] {
            let oauth = read(text).remove(0).oauth;
            assert_eq!((oauth.client_id.as_deref(), oauth.redirect_port), (Some("i"), Some(99)), "{text}");
            assert_eq!(oauth.client_secret.unwrap().expose(), "${S}");
            assert_eq!(
                (oauth.scopes, oauth.private_addresses),
                (vec!["r".to_owned()], PrivateAddresses::Refused)
            );
        }
        for (oauth, problem) in [
            (r#"{"clientSecret": "canary"}"#, "`clientSecret` must refer to a variable"),
            (r#"{"clientId": 5}"#, "`clientId` must be a string"),
            (r#"{"callbackPort": 0}"#, "`callbackPort` must be a port"),
            (r#"{"scopes": "r"}"#, "`scopes` must be a list"),
        ] {
            let found = read(&format!(r#"{{"a": {{"url": "https://x", "oauth": {oauth}}}}}"#)).remove(0);
            let ServerTransport::Unusable(why) = found.transport else { panic!("{oauth}") };
            assert!(why.contains(problem) && !why.contains("canary"), "{why}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_the_others_work() {
        let found = read(
            "{\"mcpServers\": {\n\"a\": {\"command\": 5},\n\"b\": {\"command\": \"x\"},\n\"c\": {\"type\": \"htp\", \"url\": \"u\"},\n\"d\": {\"disabled\": true}\n}}",
        );
        let problem = |entry: &ServerEntry| match &entry.transport {
            ServerTransport::Unusable(problem) => problem.clone(),
            _ => String::new(),
        };
        let problems: Vec<String> = found.iter().map(problem).collect();
        assert_eq!(problems.len(), 3, "what is switched off is left out");
        assert_eq!(problems[0], "f.json:2: `command` must be a string");
        assert_eq!(problems[1], "");
        assert!(
            problems[2].starts_with("f.json:4: its transport is unknown, did you mean \"http\"?"),
            "{}",
            problems[2]
        );
        assert!(
            servers("{\n\n x", "f.json", ServerOrigin::User)
                .unwrap_err()
                .starts_with("f.json:3: not valid JSON")
        );
        assert!(servers("{}", "f.json", ServerOrigin::User).unwrap_err().contains("no table of servers"));
    }

    #[test]
    fn a_project_has_the_network_only_if_it_says_so() {
        let of_project = |text: &str| {
            servers(text, "f", ServerOrigin::Project(".mcp.json".into())).unwrap()[0].rights.network
        };
        assert_eq!(of_project(r#"{"mcpServers": {"a": {"command": "x"}}}"#), ServerRight::Withheld);
        assert_eq!(
            of_project(r#"{"mcpServers": {"a": {"command": "x", "network": true}}}"#),
            ServerRight::Granted
        );
    }
}
