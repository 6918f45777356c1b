//! Servers that give a session tools, reached by MCP: what they are, who asked for them, how they are. Starts
//! and reaches none.

use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::tool::{ToolSource, Workspace};
use super::{BoxFuture, Delegate};

mod prompts;

pub use prompts::{ArgumentNeed, PromptArgument, ServerPrompt, WrittenPrompt};

/// A server as somebody asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// As its user calls it; what models see is made from it.
    pub name: String,
    /// Who named it.
    pub origin: ServerOrigin,
    /// How it is reached.
    pub transport: ServerTransport,
    /// What its process may do beside reading.
    pub rights: ServerRights,
    /// How long it may take for what.
    pub deadlines: ServerDeadlines,
    /// Whether it may ask our model.
    pub sampling: ServerSampling,
    /// How to log in to it.
    pub oauth: OAuthSettings,
}

/// What is known beforehand of logging in to a server; mostly nothing, and it is found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// What the authorization server knows us as; an https address is that of a client metadata document.
    pub client_id: Option<String>,
    /// The secret of that client, where it has one.
    pub client_secret: Option<HiddenText>,
    /// Asked for instead of what the server names.
    pub scopes: Vec<String>,
    /// Where the browser comes back to; `None`: any that is free.
    pub redirect_port: Option<u16>,
    /// Whether addresses of this machine and the network around it may be used.
    pub private_addresses: PrivateAddresses,
}

/// Whether a server may lead a login to addresses that are not of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// Only if the server itself is at such an address.
    #[default]
    Refused,
    /// They may.
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

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program that is talked to over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// What it is told beside the usual variables.
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
    /// HTTP with server-sent events, as it was before streamable HTTP.
    Sse {
        /// Where it is.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, HiddenText)>,
    },
    /// An entry that makes no sense, and why: it fails, and the others don't.
    Unusable(String),
}

impl ServerTransport {
    /// As configurations name it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::Unusable(_) => "unusable",
        }
    }
}

/// Text that may be a key: it is compared and used, never printed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HiddenText(String);

impl HiddenText {
    /// A text that is never shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for who uses it.
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

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRight {
    /// It may.
    Granted,
    /// By default: granted unless what the server runs is of the workspace, where an agent could change it.
    UnlessOfWorkspace,
    /// It does not.
    Withheld,
}

impl ServerRights {
    /// Of a server that the user or a client named, where nothing else is said.
    pub const USUAL: Self =
        Self { network: ServerRight::UnlessOfWorkspace, write: ServerRight::UnlessOfWorkspace };

    /// Of one that a project named.
    pub const OF_PROJECT: Self =
        Self { network: ServerRight::Withheld, write: ServerRight::UnlessOfWorkspace };
}

impl ServerRight {
    /// What an entry says about it, else `usual`.
    pub fn said(said: Option<bool>, usual: Self) -> Self {
        match said {
            Some(true) => Self::Granted,
            Some(false) => Self::Withheld,
            None => usual,
        }
    }

    /// What an entry would have to say; `None` for the default.
    pub fn word(self) -> Option<bool> {
        match self {
            Self::Granted => Some(true),
            Self::UnlessOfWorkspace => None,
            Self::Withheld => Some(false),
        }
    }
}

/// Whether a server may ask for answers of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerSampling {
    /// It may not.
    #[default]
    Refused,
    /// The user is asked about each.
    Asked,
}

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDeadlines {
    /// From its start until it has said what it is.
    pub connect: Duration,
    /// For each page of a list.
    pub list: Duration,
    /// For a call, since it last reported progress.
    pub call: Duration,
}

impl Default for ServerDeadlines {
    /// Programs that are fetched before their first start take half a minute; a call that says nothing for
    /// two minutes is stuck more often than not.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(60),
            list: Duration::from_secs(30),
            call: Duration::from_secs(120),
        }
    }
}

/// The servers that one session asks for, beside those of the user's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedServers {
    /// What the client of the session named.
    pub of_client: Vec<ServerEntry>,
    /// What its project named.
    pub of_project: Vec<ServerEntry>,
    /// Named by the project, and not started before its user consents.
    pub waiting: Vec<WaitingServer>,
}

/// A server that is not used before its user says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingServer {
    /// As the project names it.
    pub name: String,
    /// The file that names it, below the project.
    pub file: PathBuf,
    /// How to consent.
    pub how: String,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It has not answered yet.
    Connecting,
    /// Its tools can be used.
    Ready,
    /// With the reason, and what happens next.
    Failed(String),
    /// With what to do about it.
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

    /// Why it is no better.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Connecting | Self::Ready => None,
            Self::Failed(why) | Self::WaitingForConsent(why) => Some(why),
        }
    }
}

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// As tools are named after it.
    pub name: String,
    /// Where it comes from and how it is reached, in words.
    pub about: String,
    /// What it does.
    pub state: ServerState,
    /// As models call them.
    pub tools: Vec<Arc<str>>,
    /// As they are typed, without the slash.
    pub prompts: Vec<Arc<str>>,
}

/// Between why a server is not there and when it is tried again.
pub const TRIED_AGAIN: &str = "; it is tried again in ";

/// Tells a session about its servers. May be called from any task.
#[derive(Clone)]
pub struct ServerNotices(Arc<dyn Fn(ServerNews) + Send + Sync>);

/// What a session is told of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNews {
    /// For people: a title, and what it means.
    Notice {
        /// One line.
        title: String,
        /// What it means, and what to do.
        description: String,
    },
    /// The same of something that went well, or that they wanted.
    Word {
        /// One line.
        title: String,
        /// What it means.
        description: String,
    },
    /// `SessionServers::prompts` says something else than before.
    PromptsChanged,
}

impl ServerNotices {
    /// Tells it to `hear`.
    pub fn new(hear: impl Fn(ServerNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    /// Something for people.
    pub fn tell(&self, title: String, description: String) {
        (self.0)(ServerNews::Notice { title, description });
    }

    /// The same of something that went well.
    pub fn say(&self, title: String, description: String) {
        (self.0)(ServerNews::Word { title, description });
    }

    /// What can be typed for its prompts is something else than before.
    pub fn prompts_changed(&self) {
        (self.0)(ServerNews::PromptsChanged);
    }
}

impl Debug for ServerNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerNotices")
    }
}

/// Who has servers for sessions.
pub trait ToolServers: Send + Sync + Debug {
    /// Begins to connect a session's servers and returns at once. Those that another session has with the same
    /// program, environment and directories are shared.
    fn open(
        &self,
        workspace: Arc<Workspace>,
        wanted: WantedServers,
        notices: ServerNotices,
    ) -> Arc<dyn SessionServers>;
}

/// The servers of one session. Its tools stay known when their server is lost, and say so.
pub trait SessionServers: ToolSource {
    /// How each of them is doing.
    fn status(&self) -> Vec<ServerStatus>;
    /// Resolves when none is on its way for the first time any more.
    fn settled(&self) -> BoxFuture<'static, ()>;
    /// What can be typed as commands: the prompts of those that are there.
    fn prompts(&self) -> Arc<[ServerPrompt]>;
    /// One of them as its server writes it out, given its arguments by their names. The error is for who typed
    /// it.
    fn write_out(
        &self,
        command: &str,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<WrittenPrompt, String>>;
    /// What an argument of a prompt may be beside those that are given, as far as its server says.
    fn suggestions(
        &self,
        command: &str,
        given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> BoxFuture<'static, Vec<String>>;
    /// Resources that a model has read and that have changed since, in words, each told once.
    fn resource_news(&self) -> Option<String>;
    /// Begins to log in to one of them. The address to open is shown by the client, where it shows addresses,
    /// else told; what comes of it is told, too. The error says why nothing has begun.
    fn log_in(&self, name: &str, client: Option<Arc<dyn Delegate>>) -> Result<(), String>;
    /// Lets go of them: what no other session has ends.
    fn close(&self) -> BoxFuture<'static, ()>;
}
