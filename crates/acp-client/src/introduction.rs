//! What a client says of itself when it connects: its name, and what it does for an agent. Promises nothing
//! that nobody serves.

use agent_client_protocol_schema::v1::{
    ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationUrlCapabilities, FileSystemCapabilities, Implementation,
    NoticeCapabilities,
};
use attache_rpc::Trace;

#[derive(Clone, Debug)]
pub struct Introduction {
    pub client: Implementation,
    /// Exactly what the one who takes the events serves.
    pub capabilities: ClientCapabilities,
    /// Receives a copy of all traffic.
    pub trace: Option<Trace>,
}

impl Introduction {
    /// `name` is for programs: people are told that it is Attaché.
    pub fn new(name: &str, version: &str, capabilities: ClientCapabilities) -> Self {
        let client = Implementation::new(name, version).title("Attaché".to_owned());
        Self { client, capabilities, trace: None }
    }

    /// For a person who sees notices and answers questions. Files and terminals are the agent's own.
    pub fn of_a_person(version: &str) -> Self {
        Self::new(CHAT, version, unattended_capabilities().elicitation(asked_of_a_person()))
    }

    /// For a run that nobody watches: there is no one to fill in a form.
    pub fn unattended(version: &str) -> Self {
        Self::new(CHAT, version, unattended_capabilities())
    }

    #[must_use]
    pub fn with_trace(self, trace: Option<Trace>) -> Self {
        Self { trace, ..self }
    }

    /// Which requests of the agent become events; all others are refused.
    pub(crate) fn served(&self) -> ServedCalls {
        let FileSystemCapabilities { read_text_file, write_text_file, .. } = self.capabilities.fs;
        ServedCalls { read_text_file, write_text_file, terminal: self.capabilities.terminal }
    }
}

const CHAT: &str = "attache-chat";

/// Forms to fill in and addresses to visit.
pub fn asked_of_a_person() -> ElicitationCapabilities {
    ElicitationCapabilities::new()
        .form(ElicitationFormCapabilities::new())
        .url(ElicitationUrlCapabilities::new())
}

/// Notices and compactions are taken; there is nobody to ask.
pub fn unattended_capabilities() -> ClientCapabilities {
    let session = ClientSessionCapabilities::new()
        .notices(NoticeCapabilities::new())
        .compaction(CompactionCapabilities::new());
    ClientCapabilities::new().session(session)
}

/// What was offered of files and terminals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedCalls {
    pub(crate) read_text_file: bool,
    pub(crate) write_text_file: bool,
    pub(crate) terminal: bool,
}
