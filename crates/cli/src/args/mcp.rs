//! What can be typed behind `attache mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;

use super::SessionArgs;

#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "Example:\n  attache mcp list")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Show the servers of your configuration and of this project, and whether they work
    #[command(after_help = "Example:\n  attache mcp list")]
    List,
    /// Add a server to your configuration
    #[command(
        after_help = "Example:\n  attache mcp add everything npx -y @modelcontextprotocol/server-everything"
    )]
    Add(McpAddArgs),
    /// Remove a server from your configuration
    #[command(after_help = "Example:\n  attache mcp remove everything")]
    Remove {
        /// The server
        name: String,
    },
    /// Connect to one server and show its tools
    #[command(after_help = "Example:\n  attache mcp test everything")]
    Test {
        /// The server
        name: String,
    },
    /// Log in to a server in your browser
    #[command(after_help = "Example:\n  attache mcp login docs")]
    Login(McpLoginArgs),
    /// Forget the login at a server
    #[command(after_help = "Example:\n  attache mcp logout docs")]
    Logout {
        /// The server, or its address
        name: String,
    },
    /// Be an MCP server, so that other agents can ask this one
    #[command(after_help = "Example:\n  attache mcp serve --listen 127.0.0.1:7733")]
    Serve(McpServeArgs),
    /// Add the servers of other agents and editors to your configuration
    #[command(after_help = "Example:\n  attache mcp import --yes")]
    Import {
        /// One file to read, instead of those in the usual places
        file: Option<PathBuf>,
        /// Add what is found without asking
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct McpServeArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// Serve streamable HTTP on this address of the machine itself, instead of stdin and stdout
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':')).unwrap_or(text);
    text.parse().map_err(|_| match port.parse::<u16>() {
        Ok(port) => format!("write 127.0.0.1:{port}"),
        Err(_) => "it needs an address of this machine with a port, such as 127.0.0.1:7733".to_owned(),
    })
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct McpLoginArgs {
    /// The server, or its address
    pub(crate) name: String,
    /// Only print the address to open
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Keep the login in a file that only you can read, not in the keyring
    #[arg(long)]
    pub(crate) file: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct McpAddArgs {
    /// Name of the server; leave it out if --json names its servers
    #[arg(required_unless_present = "json")]
    pub(crate) name: Option<String>,
    /// A variable for its program; ${NAME} as the value refers to one of yours
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for its address
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// How to reach an address
    #[arg(long, value_name = "KIND", value_parser = ["http", "sse"])]
    pub(crate) transport: Option<String>,
    /// Keep its program from the network
    #[arg(long)]
    pub(crate) no_network: bool,
    /// The JSON that other programs use: {"mcpServers": {…}}, or one server
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["env", "header", "transport", "line"])]
    pub(crate) json: Option<String>,
    /// Its program with arguments, or its address
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "json",
        value_name = "COMMAND|URL"
    )]
    pub(crate) line: Vec<String>,
}
