//! One connection of a client: requests in, answers and updates out. Decides nothing about sessions; the hub
//! does.
//!
//! The handler is called by the reader and never waits: it routes each request to the session it is for, where
//! it becomes a command in the order of arrival. One forwarder per session sends the updates, and the answers
//! that have to follow them.

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
    /// Whether this is a directory that exists; the error names the path and says what is wrong.
    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>>;
    /// Whether both names lead to one directory that exists.
    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory>;
    /// Whether the directories of a session are those that it first had by these names, as far as they exist;
    /// new ones are remembered. The error says which leads elsewhere.
    fn check_places(
        &self,
        session: &SessionId,
        directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>>;
    /// What is out of order on this host and was not told yet. The client that opens the next session is told.
    fn take_warnings(&self) -> Vec<Warning>;
    /// What holds commands here; looked for if nobody has asked yet. `None` on a host that runs none.
    fn containment(&self) -> BoxFuture<'static, Option<Containment>> {
        Box::pin(std::future::ready(None))
    }
    /// Which of these roots of sessions the clients of this host may know of; `None`: all of them, as anywhere
    /// where a client is its user.
    fn admitted(&self, roots: Vec<PathBuf>) -> Option<BoxFuture<'static, Vec<bool>>> {
        drop(roots);
        None
    }
}

/// What carries a connection may hold up the updates of one session while others go on.
pub trait SessionPace: Send + Sync + Debug {
    /// Resolves when updates of this session may be sent, and when nothing can be sent any more.
    fn room_for(&self, session: &SessionId) -> BoxFuture<'static, ()>;
}

/// Two names of directories, once the links in them are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameDirectory {
    /// Both names lead to one directory.
    Same,
    /// Also where one of them does not exist.
    Different,
}

/// Something that works less well than was asked for, in words for a user.
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
    /// Where sessions are.
    pub hub: Hub,
    /// What is asked of the machine.
    pub host: Arc<dyn Host>,
    /// `None` on a host that manages no credentials: nothing of logging in is advertised then.
    pub accounts: Option<Arc<dyn Accounts>>,
    /// The hub's own.
    pub clock: Arc<dyn Clock>,
    /// Our own version, as clients see it.
    pub version: &'static str,
    /// Whether clients see what models think.
    pub thoughts: ThoughtUpdates,
    /// Whether a client's files and terminals are used.
    pub client_fs: ClientFs,
}

/// Whether clients do themselves what they offer to: read and write texts, run commands in their terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientFs {
    /// Where the client offers them.
    #[default]
    Auto,
    /// Whatever the client offers.
    Never,
}

impl ClientFs {
    /// As configurations name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

/// Serves a client over this transport until it hangs up. Runs that are under way then go on; the host ends
/// them.
pub fn connect(
    agent: AgentServices,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
) -> Connection {
    start(agent, source, sink, options, None)
}

/// The same over a transport that has a pace for each session.
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
