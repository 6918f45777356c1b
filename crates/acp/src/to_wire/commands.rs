//! Slash commands on the wire: which there are, and one that was typed as the words its user typed.

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, UnstructuredCommandInput,
};
use attache_core::entry::Entry;
use attache_core::ids::SessionId;
use attache_core::part::Role;
use attache_core::slash_commands::SlashCommands;
use attache_rpc::encode_notification;
use serde_json::Value;

use super::EncodeResult;
use super::line::{self, UPDATE_METHOD, UpdateNotification};

/// Appends the line that tells a client which commands a session has.
pub fn write_commands(session_id: &SessionId, commands: &SlashCommands, out: &mut Vec<u8>) -> EncodeResult {
    let available = commands.iter().map(|command| {
        let hint = command.input_hint.as_deref();
        let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        AvailableCommand::new(&*command.name, &*command.description).input(input)
    });
    let update = SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(available.collect()));
    let notification = UpdateNotification { session_id: session_id.as_str(), update: &update };
    encode_notification(out, UPDATE_METHOD, &notification)
}

/// What the user typed.
pub(super) fn typed(data: &Value) -> Option<&str> {
    data.get("text").and_then(Value::as_str)
}

/// A stored command as the message it was.
pub(super) fn command(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    match (entry.role, typed(data)) {
        (Role::User, Some(text)) => line::text(entry, line::ChunkSpeaker::User, text, out),
        (Role::User, None) | (Role::Assistant | Role::System, _) => Ok(()),
    }
}
