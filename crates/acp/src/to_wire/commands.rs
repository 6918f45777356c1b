//! Slash commands on the wire: the list of them, and a typed command in its user's words.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, UnstructuredCommandInput,
};
use attache_core::entry::Entry;
use attache_core::ids::SessionId;
use attache_core::part::Role;
use attache_core::slash_commands::{SlashCommand, SlashCommands};
use attache_rpc::encode_notification;
use serde_json::Value;

use super::EncodeResult;
use super::line::{self, UPDATE_METHOD, UpdateNotification};
use crate::limits::LINE_BYTES;

/// The lengths of descriptions that we try, the longest first: even a list of hundreds must fit a line.
const WIDTHS: [usize; 5] = [usize::MAX, 120, 60, 30, 0];

/// Appends the line that tells a client which commands a session has.
pub fn write_commands(session_id: &SessionId, commands: &SlashCommands, out: &mut Vec<u8>) -> EncodeResult {
    let start = out.len();
    for width in WIDTHS {
        out.truncate(start);
        let available = commands.iter().map(|command| available(command, width)).collect();
        let update = SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(available));
        let notification = UpdateNotification { session_id: session_id.as_str(), update: &update };
        encode_notification(out, UPDATE_METHOD, &notification)?;
        if out.len() - start <= LINE_BYTES {
            break;
        }
    }
    Ok(())
}

fn available(command: &SlashCommand, width: usize) -> AvailableCommand {
    let hint = command.input_hint.as_deref();
    let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    let description = match command.description.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &command.description[..end]),
        None => command.description.to_string(),
    };
    AvailableCommand::new(&*command.name, description).input(input)
}

/// The text that the user typed.
pub(super) fn typed(data: &Value) -> Option<&str> {
    data.get("text").and_then(Value::as_str)
}

/// A stored command, as the message it was.
pub(super) fn command(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    match (entry.role, typed(data)) {
        (Role::User, Some(text)) => line::text(entry, line::ChunkSpeaker::User, text, out),
        (Role::User, None) | (Role::Assistant | Role::System, _) => Ok(()),
    }
}
