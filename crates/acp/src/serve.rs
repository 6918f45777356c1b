//! One connection of a client: takes requests, sends answers and updates. Decides nothing about sessions; the
//! hub does.
//!
//! The reader calls the handler, which never waits: it routes each request to its session, where the request
//! becomes a command in order of arrival. One forwarder per session sends the updates, and the answers that
//! must follow them.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::hub::Hub;
use attache_core::ids::SessionId;
use attache_core::ports::{BoxFuture, Clock};
use attache_core::watchdog::Containment;
use attache_rpc::{Connection, MessageSink, MessageSource, Options, Peer};

use crate::accounts::Accounts;
use crate::to_wire::ThoughtUpdates;

mod admission;
mod client;
mod closing;
mod consent;
mod delegate;
mod failure;
mod forwarder;
mod link;
mod links;
mod login;
mod opening;
mod prompt;
mod refusal;
mod router;
mod sessions;
mod terminal;

pub use refusal::{StartFailure, refuse_all};

/// What the host does for clients beside the hub: this crate touches no files.
pub trait Host: Send + Sync + Debug {
    /// Whether this directory exists; the error names the path and the problem.
    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>>;
    /// Whether both names lead to the same existing directory.
    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory>;
    /// Whether the existing directories of a session are the ones it first had by these names; remembers new
    /// ones. The error names a directory that leads elsewhere.
    fn check_places(
        &self,
        session: &SessionId,
        directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>>;
    /// Problems of this host that no client knows yet. The client that opens the next session gets them.
    fn take_warnings(&self) -> Vec<Warning>;
    /// How this host confines commands; finds out at the first question. `None` on a host that runs no
    /// commands.
    fn containment(&self) -> BoxFuture<'static, Option<Containment>> {
        Box::pin(std::future::ready(None))
    }
    /// Which of these session roots the clients of this host may know of; `None` means all of them, as on any
    /// host whose client is its user.
    fn admitted(&self, roots: Vec<PathBuf>) -> Option<BoxFuture<'static, Vec<bool>>> {
        drop(roots);
        None
    }
}

/// A transport may delay the updates of one session while others continue.
pub trait SessionPace: Send + Sync + Debug {
    /// Resolves when updates of this session may be sent, or when nothing can be sent any more.
    fn room_for(&self, session: &SessionId) -> BoxFuture<'static, ()>;
}

/// How two directory names compare after resolving links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameDirectory {
    /// Both names lead to one directory.
    Same,
    /// Also if one of them does not exist.
    Different,
}

/// Something that works less well than requested, in words for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// One line.
    pub title: String,
    /// What it means, and what to do.
    pub description: String,
}

/// What all connections of a process share.
#[derive(Clone, Debug)]
pub struct AgentServices {
    /// The sessions of this process.
    pub hub: Hub,
    /// What needs this machine's file system.
    pub host: Arc<dyn Host>,
    /// `None` on a host that manages no credentials: then we advertise no login.
    pub accounts: Option<Arc<dyn Accounts>>,
    /// The same clock as the hub's.
    pub clock: Arc<dyn Clock>,
    /// Our own version, as clients display it.
    pub version: &'static str,
    /// Whether clients see what models think.
    pub thoughts: ThoughtUpdates,
    /// Whether we use a client's files and terminals.
    pub client_fs: ClientFs,
}

/// Whether clients do themselves what they offer: read and write texts, run commands in their terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientFs {
    /// If the client offers them.
    #[default]
    Auto,
    /// Whatever the client offers.
    Never,
}

impl ClientFs {
    /// The word in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

/// Serves a client over this transport until it hangs up. Its runs then continue; the host ends them.
pub fn connect(
    agent: AgentServices,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
) -> Connection {
    start(agent, source, sink, options, None)
}

/// The same over a transport with a separate pace for each session.
pub fn connect_paced(
    agent: AgentServices,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
    pace: Arc<dyn SessionPace>,
) -> Connection {
    start(agent, source, sink, options, Some(pace))
}

fn start(
    agent: AgentServices,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
    pace: Option<Arc<dyn SessionPace>>,
) -> Connection {
    let (_, connection) = Peer::start(source, sink, options, |peer| router::Router::new(agent, peer, pace));
    connection
}
