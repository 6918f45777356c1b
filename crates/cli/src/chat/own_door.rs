//! The door to the agent of this very process: the same as `attache acp` serves, over a pipe in memory.

use std::fmt;
use std::path::{Path, PathBuf};

use attache_acp_client::{AgentDoor, ClientFailure, DoorFuture, Introduction, connect};
use attache_core::hub::{ModelStandIn, People};
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Connection, Options, duplex, json_lines};
use tokio::sync::Mutex;

use crate::acp::OwnAgent;
use crate::limits::CHAT_PIPE_BYTES;
use crate::setup::{Setup, Sources};
use crate::usage_error::is_wrong_usage;

pub(super) struct OwnDoor<'a> {
    sources: &'a Sources,
    /// The file that gets the traffic.
    trace: Option<PathBuf>,
    people: People,
    /// A lock, because any task may open the door, but only the first one starts the agent. The others wait for
    /// the start.
    opened: Mutex<Option<OpenedDoor>>,
}

struct OpenedDoor {
    agent: OwnAgent,
    connections: Vec<Connection>,
}

impl<'a> OwnDoor<'a> {
    pub(super) fn new(sources: &'a Sources, trace: Option<&Path>, people: People) -> Self {
        Self { sources, trace: trace.map(Path::to_owned), people, opened: Mutex::new(None) }
    }

    /// Ends the agent, and whatever still runs in it.
    pub(super) async fn close(self) {
        if let Some(OpenedDoor { agent, connections }) = self.opened.into_inner() {
            agent.end(connections).await;
        }
    }
}

impl fmt::Debug for OwnDoor<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnDoor").field("trace", &self.trace).finish_non_exhaustive()
    }
}

impl AgentDoor for OwnDoor<'_> {
    fn open(&self, introduction: Introduction) -> DoorFuture<'_> {
        Box::pin(async move {
            let mut opened = self.opened.lock().await;
            let OpenedDoor { agent, connections } = match &mut *opened {
                Some(opened) => opened,
                None => {
                    // Without a person at the terminal, only the chosen model may answer.
                    let stand_in = match self.people {
                        People::Present => ModelStandIn::Allowed,
                        People::Absent | People::OnlyAProgram => ModelStandIn::Refused,
                    };
                    let setup = Setup::open(self.sources, self.trace.as_deref(), stand_in, self.people);
                    let setup = setup.map_err(|error| match is_wrong_usage(&error) {
                        true => ClientFailure::Misused(format!("{error:#}")),
                        false => ClientFailure::Own(format!("{error:#}")),
                    })?;
                    let agent = OwnAgent::start(setup, self.sources).await;
                    opened.insert(OpenedDoor { agent, connections: Vec::new() })
                }
            };
            let (ours, theirs) = duplex(CHAT_PIPE_BYTES);
            let (source, sink) = json_lines(theirs, MAX_LINE_BYTES);
            connections.push(agent.connect(source, sink, Options::default()));
            let (source, sink) = json_lines(ours, MAX_LINE_BYTES);
            connect(source, sink, None, introduction).await
        })
    }
}
