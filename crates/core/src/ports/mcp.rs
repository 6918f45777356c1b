//! MCP servers that give a session tools: what they are, who asked for them, how they are doing. Starts none
//! and connects to none.

use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::tool::{ToolSource, Workspace};
use super::{BoxFuture, Delegate};

mod prompts;

pub use prompts::{ArgumentNeed, PromptArgument, ServerPrompt, WrittenPrompt};

/// A server as a client, the user or a project asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// The user's name for it, from which the names of tools are made.
    pub name: String,
    /// Who asked for it.
    pub origin: ServerOrigin,
    /// How to reach it.
    pub transport: ServerTransport,
    /// What its process may do beside reading.
    pub rights: ServerRights,
    /// Its time limits.
    pub deadlines: ServerDeadlines,
    /// Whether it may ask our model for answers.
    pub sampling: ServerSampling,
    /// How to log in to it.
    pub oauth: OAuthSettings,
}

/// What is known beforehand about logging in to a server; usually nothing, and attache discovers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// Our client id at the authorization server; an https address is that of a client metadata document.
    pub client_id: Option<String>,
    /// The secret of that client, if it has one.
    pub client_secret: Option<HiddenText>,
    /// The scopes to ask for, instead of those that the server names.
    pub scopes: Vec<String>,
    /// The port to which the browser returns; `None`: any free port.
    pub redirect_port: Option<u16>,
    /// Whether addresses of this machine and the network around it may be used.
    pub private_addresses: PrivateAddresses,
}

/// Whether a login may lead to addresses that are not of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// Only if the server itself is at such an address.
    #[default]
    Refused,
    /// It may.
    Allowed,
}

/// An argument of a prompt while its user types it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunArgument<'a> {
    /// What the server calls it.
    pub name: &'a str,
    /// What is typed of it, be it nothing.
    pub typed: &'a str,
}

/// Whose word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The client's request for this session.
    Client,
    /// The user's own configuration.
    User,
    /// A file of the project, by its path below the project; its user consented to it.
    Project(PathBuf),
}

/// How to reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program, over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Environment variables beside the usual ones.
        environment: Vec<(String, HiddenText)>,
        /// `None`: the session's root.
        directory: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Where it is.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, HiddenText)>,
    },
    /// HTTP with server-sent events, the predecessor of streamable HTTP.
    Sse {
        /// Where it is.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, HiddenText)>,
    },
    /// An entry that makes no sense, and why: only this entry fails.
    Unusable(String),
}

impl ServerTransport {
    /// The name that configurations use.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::Unusable(_) => "unusable",
        }
    }
}

/// A text that may be a key: code compares and uses it, never prints it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HiddenText(String);

impl HiddenText {
    /// Wraps a text that must not be shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for code that uses it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// What a local server may do beside reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRights {
    /// Reach the network.
    pub network: ServerRight,
    /// Write in the workspace.
    pub write: ServerRight,
}

/// One right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRight {
    /// It may.
    Granted,
    /// The default: granted, unless the server runs something from the workspace, where an agent could change
    /// it.
    UnlessOfWorkspace,
    /// It does not.
    Withheld,
}

impl ServerRights {
    /// The rights of a server that the user or a client asked for, if the entry says nothing else.
    pub const USUAL: Self =
        Self { network: ServerRight::UnlessOfWorkspace, write: ServerRight::UnlessOfWorkspace };

    /// The rights of a server that a project asked for.
    pub const OF_PROJECT: Self =
        Self { network: ServerRight::Withheld, write: ServerRight::UnlessOfWorkspace };
}

impl ServerRight {
    /// The right that an entry states, else `usual`.
    pub fn said(said: Option<bool>, usual: Self) -> Self {
        match said {
            Some(true) => Self::Granted,
            Some(false) => Self::Withheld,
            None => usual,
        }
    }

    /// What an entry has to state for this; `None` for the default.
    pub fn word(self) -> Option<bool> {
        match self {
            Self::Granted => Some(true),
            Self::UnlessOfWorkspace => None,
            Self::Withheld => Some(false),
        }
    }
}

/// Whether a server may ask a model for answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerSampling {
    /// No.
    #[default]
    Refused,
    /// Yes, and the user is asked about each.
    Asked,
}

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDeadlines {
    /// From its start until it has introduced itself.
    pub connect: Duration,
    /// For each page of a list.
    pub list: Duration,
    /// For a call, counted from its last report of progress.
    pub call: Duration,
}

impl Default for ServerDeadlines {
    /// A program that is downloaded before its first start needs half a minute; a call without progress for two
    /// minutes is usually stuck.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(60),
            list: Duration::from_secs(30),
            call: Duration::from_secs(120),
        }
    }
}

/// The servers that one session asks for, beside those in the user's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedServers {
    /// Those that the session's client named.
    pub of_client: Vec<ServerEntry>,
    /// Those that its project named.
    pub of_project: Vec<ServerEntry>,
    /// Those that the project named and that may not start before the user consents.
    pub waiting: Vec<WaitingServer>,
}

/// A server that may not be used before the user consents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingServer {
    /// The project's name for it.
    pub name: String,
    /// The file that names it, below the project.
    pub file: PathBuf,
    /// How to consent.
    pub how: String,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It has not answered yet.
    Connecting,
    /// Its tools can be used.
    Ready,
    /// It failed, with the reason and what happens next.
    Failed(String),
    /// It waits for consent, with how to give it.
    WaitingForConsent(String),
}

impl ServerState {
    /// In one word, for people.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Failed(_) => "failed",
            Self::WaitingForConsent(_) => "waiting for consent",
        }
    }

    /// Why it is not ready.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Connecting | Self::Ready => None,
            Self::Failed(why) | Self::WaitingForConsent(why) => Some(why),
        }
    }
}

/// A server and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The name from which its tools are named.
    pub name: String,
    /// Where it comes from and how it is reached, for people.
    pub about: String,
    /// Its state.
    pub state: ServerState,
    /// The names by which models call its tools.
    pub tools: Vec<Arc<str>>,
    /// The names by which users type its prompts, without the slash.
    pub prompts: Vec<Arc<str>>,
}

/// Stands between the reason for a failure and the time until the next try.
pub const TRIED_AGAIN: &str = "; it is tried again in ";

/// Tells a session about its servers. Any task may call it.
#[derive(Clone)]
pub struct ServerNotices(Arc<dyn Fn(ServerNews) + Send + Sync>);

/// What a session hears about its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNews {
    /// A problem, for people: a title, and what it means.
    Notice {
        /// One line.
        title: String,
        /// What it means, and what to do.
        description: String,
    },
    /// The same for something that went well, or that people asked for.
    Word {
        /// One line.
        title: String,
        /// What it means.
        description: String,
    },
    /// `SessionServers::prompts` has changed.
    PromptsChanged,
}

impl ServerNotices {
    /// Passes news to `hear`.
    pub fn new(hear: impl Fn(ServerNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Tells people about a problem.
    pub fn tell(&self, title: String, description: String) {
        (self.0)(ServerNews::Notice { title, description });
    }

    /// Tells people about something that went well.
    pub fn say(&self, title: String, description: String) {
        (self.0)(ServerNews::Word { title, description });
    }

    /// The list of prompts has changed.
    pub fn prompts_changed(&self) {
        (self.0)(ServerNews::PromptsChanged);
    }
}

impl Debug for ServerNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerNotices")
    }
}

/// Gives sessions their servers.
pub trait ToolServers: Send + Sync + Debug {
    /// Begins to connect a session's servers and returns at once. Sessions share a server if program,
    /// environment and directories are the same.
    fn open(
        &self,
        workspace: Arc<Workspace>,
        wanted: WantedServers,
        notices: ServerNotices,
    ) -> Arc<dyn SessionServers>;
}

/// The servers of one session. When a server is lost, its tools stay listed, and their calls say so.
pub trait SessionServers: ToolSource {
    /// The state of each server.
    fn status(&self) -> Vec<ServerStatus>;
    /// Resolves once every server has either connected or failed for the first time.
    fn settled(&self) -> BoxFuture<'static, ()>;
    /// The prompts of the connected servers, which users can type as commands.
    fn prompts(&self) -> Arc<[ServerPrompt]>;
    /// Has the server write out one of them, with its arguments by name. The error is for the user who typed
    /// it.
    fn write_out(
        &self,
        command: &str,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<WrittenPrompt, String>>;
    /// Values that the server suggests for an argument of a prompt, given the other arguments.
    fn suggestions(
        &self,
        command: &str,
        given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> BoxFuture<'static, Vec<String>>;
    /// Resources that a model has read and that have changed since, in words; each is told once.
    fn resource_news(&self) -> Option<String>;
    /// Begins a login to a server. A client that shows addresses shows the one to open; otherwise a notice
    /// does. A notice also tells the outcome. The error says why no login began.
    fn log_in(&self, name: &str, client: Option<Arc<dyn Delegate>>) -> Result<(), String>;
    /// Releases the servers; those that no other session uses are stopped.
    fn close(&self) -> BoxFuture<'static, ()>;
}
