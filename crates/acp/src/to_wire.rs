//! Converts journal entries to `session/update` lines: one total function for both live entries and replay.
//! Keeps no state; everything it needs is in the entry or constant for the connection.

use agent_client_protocol_schema::v1::ClientCapabilities;
use attache_core::choices::CurrentChoices;
use attache_core::chunk::Chunk;
use attache_core::entry::Entry;
use attache_core::part::Role;

mod answers;
mod arguments;
mod commands;
mod compaction;
mod content;
mod data;
mod fit;
mod legible;
mod line;
mod questions;
mod rewinds;
mod selection;
mod tool;

pub use answers::{
    EDIT_ARGUMENTS, Logins, completed_commands, failed_start_response, initialize_response, mode_request,
    permission_request, queue_entry, session_info, session_result, status_result,
};
pub use arguments::{ArgumentKind, argument_form, has_form};
pub use commands::write_commands;
pub use questions::{
    CONSENT_DECLINED, CONSENT_FIELD, CONSENT_GIVEN, MORE_CHOICES, NO_CHOICE, address_request, choice_id,
    choice_request, consent_form, field_name, fits_options, foreign_form, form_request, has_more_choices,
    permit_request,
};
pub use rewinds::{rewind_result, unrewind_result};
pub use selection::{
    AGENT_OPTION, APPROVAL_OPTION, DEFAULT_THOUGHT, MODE_OPTION, MODEL_OPTION, THOUGHT_OPTION,
    config_options, modes,
};

/// Whether the JSON could be written.
type EncodeResult = Result<(), serde_json::Error>;

/// What changes the look of entries for a connection: constant except for the choices, which follow the hub's.
#[derive(Clone, Debug)]
pub struct WireView {
    /// The choices, to look up names.
    pub choices: CurrentChoices,
    /// Whether the client sees what models think.
    pub thoughts: ThoughtUpdates,
    /// Whether the client gets notices in our own form.
    pub notices: Notices,
    /// Whether the client gets summaries in our own form.
    pub compaction: CompactionUpdates,
}

/// Whether the client shows what the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtUpdates {
    /// It does.
    Show,
    /// It does not.
    Drop,
}

/// Whether the client asked for notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notices {
    /// The client asked for notices.
    Wanted,
    /// The client did not ask for notices.
    Unwanted,
}

/// Whether the client asked for compaction updates; others get a line of thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionUpdates {
    /// The client asked for compaction updates.
    Wanted,
    /// The client did not ask for compaction updates.
    Unwanted,
}

impl WireView {
    /// The view of a client with these capabilities.
    pub fn new(choices: CurrentChoices, capabilities: &ClientCapabilities, thoughts: ThoughtUpdates) -> Self {
        let session = capabilities.session.as_ref();
        let notices = match session.and_then(|session| session.notices.as_ref()) {
            Some(_) => Notices::Wanted,
            None => Notices::Unwanted,
        };
        let compaction = match session.and_then(|session| session.compaction.as_ref()) {
            Some(_) => CompactionUpdates::Wanted,
            None => CompactionUpdates::Unwanted,
        };
        Self { choices, thoughts, notices, compaction }
    }
}

/// Appends the lines that show one entry to a client: none for most structural chunks, one for most others,
/// more if one would be too long. On an error, `out` contains nothing of this entry.
pub fn write_updates(entry: Entry<'_>, view: &WireView, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = write_chunk(entry, view, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_chunk(entry: Entry<'_>, view: &WireView, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match entry.chunk {
        Chunk::TextDelta { delta, .. } => match entry.role {
            Role::Assistant => line::text(entry, line::ChunkSpeaker::Agent, delta, out),
            Role::User => line::text(entry, line::ChunkSpeaker::User, delta, out),
            Role::System => Ok(()),
        },
        Chunk::ReasoningDelta { delta, .. } => line::thought(entry, view, delta, out),
        Chunk::ToolInputStart { call_id, tool_name, marks, rest, .. } => {
            tool::started(entry, tool::ToolCallChunk { id: call_id, marks, rest }, tool_name, out)
        }
        Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest } => {
            tool::understood(entry, tool::ToolCallChunk { id: call_id, marks, rest }, tool_name, input, out)
        }
        Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, rest } => {
            let call = tool::ToolCallChunk { id: call_id, marks, rest };
            tool::misunderstood(entry, call, tool_name, input, error_text, out)
        }
        Chunk::ToolOutputAvailable { call_id, output, preliminary, marks, rest } => {
            let call = tool::ToolCallChunk { id: call_id, marks, rest };
            match preliminary {
                Some(true) => tool::progressed(entry, call, out),
                Some(false) | None => tool::completed(entry, call, output, out),
            }
        }
        Chunk::ToolOutputError { call_id, error_text, marks, rest } => {
            tool::failed(entry, tool::ToolCallChunk { id: call_id, marks, rest }, error_text, out)
        }
        Chunk::ToolOutputDenied { call_id, rest } => tool::denied(entry, call_id, rest, out),
        Chunk::File { url, media_type, rest } => content::file(entry, url, media_type, rest, out),
        Chunk::SourceUrl { url, title, .. } => content::source_url(entry, url, title.as_deref(), out),
        Chunk::SourceDocument { source_id, media_type, title, filename, .. } => {
            content::source_document(entry, source_id, media_type, title, filename.as_deref(), out)
        }
        Chunk::Data { name, id, data, transient, .. } => {
            let lasting = match transient {
                Some(true) => data::Lasting::Moment,
                Some(false) | None => data::Lasting::Stored,
            };
            data::write(entry, view, data::DataChunk { name, id: id.as_deref(), data, lasting }, out)
        }
        // Structure. An end answers the prompt; a permission is a separate request; arguments appear when they
        // are complete.
        Chunk::Start { .. }
        | Chunk::StartStep { .. }
        | Chunk::FinishStep { .. }
        | Chunk::TextStart { .. }
        | Chunk::TextEnd { .. }
        | Chunk::ReasoningStart { .. }
        | Chunk::ReasoningEnd { .. }
        | Chunk::ToolInputDelta { .. }
        | Chunk::ToolApprovalRequest { .. }
        | Chunk::MessageMetadata { .. }
        | Chunk::Error { .. }
        | Chunk::Abort { .. }
        | Chunk::Finish { .. } => Ok(()),
    }
}
