//! The MCP servers of a session request. Checks only shapes: whether a command or an address exists shows when
//! the server starts.

use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerOrigin, ServerRights, ServerSampling,
    ServerTransport,
};

use super::fields::{Field, Invalid, Object, quoted};

/// One entry of `mcpServers`. A server without a type is a program.
pub(super) fn server(server: Field) -> Result<ServerEntry, Invalid> {
    let mut server = server.object()?;
    let transport = match server.optional("type") {
        None => "stdio".to_owned(),
        Some(transport) => {
            let path = transport.path().to_owned();
            let transport = transport.string()?;
            if !["stdio", "http", "sse"].contains(&transport.as_str()) {
                let reason = format!("must be stdio, http or sse, not {}", quoted(&transport));
                return Err(Invalid::new(path, reason));
            }
            transport
        }
    };
    let name = server.required("name")?.string()?;
    let transport = match transport.as_str() {
        "http" => ServerTransport::Http { url: url(&mut server)?, headers: pairs(&mut server, "headers")? },
        "sse" => ServerTransport::Sse { url: url(&mut server)?, headers: pairs(&mut server, "headers")? },
        _ => ServerTransport::Stdio {
            command: server.required("command")?.string()?,
            arguments: list(&mut server, "args")?.into_iter().map(Field::string).collect::<Result<_, _>>()?,
            environment: pairs(&mut server, "env")?,
            directory: None,
        },
    };
    Ok(ServerEntry {
        name,
        origin: ServerOrigin::Client,
        transport,
        rights: ServerRights::USUAL,
        deadlines: ServerDeadlines::default(),
        sampling: ServerSampling::Refused,
        oauth: OAuthSettings::default(),
    })
}

fn url(server: &mut Object) -> Result<String, Invalid> {
    server.required("url")?.string()
}

/// A list that must be present; null means an empty one.
fn list(server: &mut Object, key: &str) -> Result<Vec<Field>, Invalid> {
    if !server.has(key) {
        server.required(key)?;
    }
    server.optional(key).map_or(Ok(Vec::new()), Field::array)
}

fn pairs(server: &mut Object, key: &str) -> Result<Vec<(String, HiddenText)>, Invalid> {
    let pair = |pair: Field| {
        let mut pair = pair.object()?;
        let name = pair.required("name")?.string()?;
        Ok((name, HiddenText::new(pair.required("value")?.string()?)))
    };
    list(server, key)?.into_iter().map(pair).collect()
}
