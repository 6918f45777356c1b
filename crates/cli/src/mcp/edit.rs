//! Changes `[mcp.NAME]` of the user's file; keeps everything else in it, including comments.

use attache_core::ports::mcp::{HiddenText, OAuthSettings, PrivateAddresses, ServerEntry, ServerTransport};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

const TABLE: &str = "mcp";

pub(super) fn names(document: &DocumentMut) -> Vec<String> {
    let servers = document.get(TABLE).and_then(Item::as_table_like);
    servers.map(|servers| servers.iter().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default()
}

pub(super) fn remove(document: &mut DocumentMut, name: &str) -> bool {
    let servers = document.get_mut(TABLE).and_then(Item::as_table_like_mut);
    servers.is_some_and(|servers| servers.remove(name).is_some())
}

pub(super) fn put(document: &mut DocumentMut, entry: &ServerEntry) {
    let mut table = Table::new();
    match &entry.transport {
        ServerTransport::Stdio { command, arguments, environment, directory } => {
            let words: Array = std::iter::once(command).chain(arguments).map(String::as_str).collect();
            table.insert("command", value(words));
            if let Some(directory) = directory {
                table.insert("cwd", value(directory.to_string_lossy().as_ref()));
            }
            pairs(&mut table, "env", environment);
        }
        ServerTransport::Http { url, headers } => {
            table.insert("url", value(url.as_str()));
            pairs(&mut table, "headers", headers);
        }
        ServerTransport::Sse { url, headers } => {
            table.insert("url", value(url.as_str()));
            table.insert("transport", value("sse"));
            pairs(&mut table, "headers", headers);
        }
        ServerTransport::Unusable(_) => return,
    }
    for (key, right) in [("network", entry.rights.network), ("write", entry.rights.write)] {
        if let Some(word) = right.word() {
            table.insert(key, value(word));
        }
    }
    if let Some(oauth) = oauth(&entry.oauth) {
        table.insert("oauth", value(oauth));
    }
    let servers = document.entry(TABLE).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    if let Some(servers) = servers.as_table_like_mut() {
        servers.insert(&entry.name, Item::Table(table));
    }
}

/// `None` if there are no settings for logging in.
fn oauth(settings: &OAuthSettings) -> Option<InlineTable> {
    let OAuthSettings { client_id, client_secret, scopes, redirect_port, private_addresses } = settings;
    let mut table = InlineTable::new();
    if let Some(id) = client_id {
        table.insert("client_id", id.as_str().into());
    }
    if let Some(secret) = client_secret {
        table.insert("client_secret", secret.expose().into());
    }
    if !scopes.is_empty() {
        table.insert("scopes", scopes.iter().map(String::as_str).collect::<Array>().into());
    }
    if let Some(port) = redirect_port {
        table.insert("redirect_port", i64::from(*port).into());
    }
    if *private_addresses == PrivateAddresses::Allowed {
        table.insert("allow_private", true.into());
    }
    Some(table).filter(|table| !table.is_empty())
}

fn pairs(table: &mut Table, key: &str, pairs: &[(String, HiddenText)]) {
    if pairs.is_empty() {
        return;
    }
    let inline: InlineTable = pairs.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    table.insert(key, value(inline));
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_core::ports::mcp::{ServerDeadlines, ServerOrigin, ServerRights, ServerSampling};

    fn entry(name: &str, transport: ServerTransport) -> ServerEntry {
        ServerEntry {
            name: name.to_owned(),
            origin: ServerOrigin::User,
            transport,
            rights: ServerRights::USUAL,
            deadlines: ServerDeadlines::default(),
            sampling: ServerSampling::Refused,
            oauth: OAuthSettings::default(),
        }
    }

    #[test]
    fn comments_and_order_stay_and_what_was_added_can_be_removed() {
        let before = "# mine\nmodel = \"a/b\" # why\n\n[mcp.old] # keep\nurl = \"https://x\"\n\n[limits]\nmax_steps = 5\n";
        let mut document: DocumentMut = before.parse().unwrap();
        let transport = ServerTransport::Stdio {
            command: "npx".to_owned(),
            arguments: vec!["-y".to_owned(), "a \"b\"".to_owned()],
            environment: vec![("TOKEN".to_owned(), HiddenText::new("${TOKEN}"))],
            directory: None,
        };
        put(&mut document, &entry("new.one", transport));
        let text = document.to_string();
        assert!(
            text.contains("# mine\nmodel = \"a/b\" # why") && text.contains("[mcp.old] # keep"),
            "{text}"
        );
        assert!(text.contains("[mcp.\"new.one\"]\ncommand = [\"npx\", \"-y\", 'a \"b\"']"), "{text}");
        assert!(text.contains("env = { TOKEN = \"${TOKEN}\" }"), "{text}");
        assert_eq!(names(&document), ["old", "new.one"]);
        let oauth = OAuthSettings {
            client_id: Some("i".to_owned()),
            client_secret: Some(HiddenText::new("${S}")),
            scopes: vec!["r".to_owned()],
            redirect_port: Some(99),
            private_addresses: PrivateAddresses::Allowed,
        };
        let transport = ServerTransport::Http { url: "https://y".to_owned(), headers: Vec::new() };
        put(&mut document, &ServerEntry { oauth, ..entry("far", transport) });
        let text = document.to_string();
        let written = "oauth = { client_id = \"i\", client_secret = \"${S}\", scopes = [\"r\"], redirect_port = 99, allow_private = true }";
        assert!(text.contains(written), "{text}");
        assert!(remove(&mut document, "far"));
        assert!(remove(&mut document, "new.one") && !remove(&mut document, "new.one"));
        assert_eq!(document.to_string(), before);
    }
}
