//! MCP servers of the client, as an ACP agent is told them. Starts and reaches none.

use agent_client_protocol_schema::v1::{
    EnvVariable, HttpHeader, McpCapabilities, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
};
use attache_core::ports::mcp::{HiddenText, ServerEntry, ServerTransport};

/// What an agent is told, and the names of those that it does not reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PassedServers {
    pub(super) servers: Vec<McpServer>,
    pub(super) left_out: Vec<String>,
}

pub(super) fn passed_on(entries: &[ServerEntry], takes: &McpCapabilities) -> PassedServers {
    let mut passed = PassedServers::default();
    for entry in entries {
        match server(entry, takes) {
            Some(server) => passed.servers.push(server),
            None => passed.left_out.push(entry.name.clone()),
        }
    }
    passed
}

fn server(entry: &ServerEntry, takes: &McpCapabilities) -> Option<McpServer> {
    match &entry.transport {
        ServerTransport::Stdio { command, arguments, environment, .. } => {
            let variable = |(name, value): &(String, HiddenText)| EnvVariable::new(name, value.expose());
            let server = McpServerStdio::new(&entry.name, command.as_str())
                .args(arguments.clone())
                .env(environment.iter().map(variable).collect::<Vec<_>>());
            Some(McpServer::Stdio(server))
        }
        ServerTransport::Http { url, headers } if takes.http => {
            Some(McpServer::Http(McpServerHttp::new(&entry.name, url).headers(told(headers))))
        }
        ServerTransport::Sse { url, headers } if takes.sse => {
            Some(McpServer::Sse(McpServerSse::new(&entry.name, url).headers(told(headers))))
        }
        ServerTransport::Http { .. } | ServerTransport::Sse { .. } | ServerTransport::Unusable(_) => None,
    }
}

fn told(headers: &[(String, HiddenText)]) -> Vec<HttpHeader> {
    headers.iter().map(|(name, value)| HttpHeader::new(name, value.expose())).collect()
}
