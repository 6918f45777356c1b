//! Gives an imported session new ids, wherever the old ones occur.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SessionArchive;
use crate::ids::{Ids, MessageId};
use crate::metadata::{MessageMeta, SessionMeta};
use crate::ports::store::{Change, StoreError, StoreResult};

/// Ids are long and random: a text that equals one as a whole means that id in any place.
pub(super) fn rename(archive: &mut SessionArchive, ids: &Ids) -> StoreResult<()> {
    let session = ids.session();
    let mut new: HashMap<String, String> = HashMap::new();
    new.insert(archive.session.id.to_string(), session.to_string());
    for change in &archive.rows {
        if let Change::InsertMessage(row) = change {
            new.insert(row.id.to_string(), ids.message().to_string());
        }
    }
    archive.session.id = session.clone();
    archive.session.metadata = SessionMeta::from(object(archive.session.metadata.as_map().clone(), &new));
    for change in &mut archive.rows {
        match change {
            Change::InsertMessage(row) => {
                row.id = MessageId::new(named(&new, row.id.as_str()));
                row.session_id = session.clone();
                row.metadata = MessageMeta::from(object(row.metadata.as_map().clone(), &new));
            }
            Change::PutPart(row) => {
                row.id = ids.part();
                row.message_id = MessageId::new(named(&new, row.message_id.as_str()));
                row.session_id = session.clone();
                let corrupt = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
                let mut data: Value = serde_json::from_str(&row.data_json).map_err(corrupt)?;
                // Most parts name no message: keep those character by character.
                if in_value(&mut data, &new) == Renamed::Some {
                    row.data_json = data.to_string();
                }
            }
            Change::CreateSession(_)
            | Change::PatchSession(_)
            | Change::DeleteSession
            | Change::PatchMessage { .. }
            | Change::DropParts { .. }
            | Change::HideMessages { .. }
            | Change::ShowMessages { .. }
            | Change::CopyConversation(_)
            | Change::PutSystemPrompt { .. }
            | Change::AppendLog(_)
            | Change::TrimLog { .. }
            | Change::BeginRun(_)
            | Change::EndRun
            | Change::ReleaseLease => {}
        }
    }
    Ok(())
}

/// A client may make ids of its own; a shorter one could be an ordinary word.
const SHORTEST_ID: usize = 8;

fn named(new: &HashMap<String, String>, old: &str) -> String {
    new.get(old).cloned().unwrap_or_else(|| old.to_owned())
}

/// Whether anything was renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renamed {
    Nothing,
    Some,
}

impl Renamed {
    fn or(self, other: Self) -> Self {
        if self == Self::Some { self } else { other }
    }
}

fn in_value(value: &mut Value, new: &HashMap<String, String>) -> Renamed {
    match value {
        Value::String(text) if text.len() >= SHORTEST_ID => match new.get(text.as_str()) {
            Some(name) => {
                name.clone_into(text);
                Renamed::Some
            }
            None => Renamed::Nothing,
        },
        Value::Array(values) => in_values(values.iter_mut(), new),
        Value::Object(fields) => in_values(fields.values_mut(), new),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Renamed::Nothing,
    }
}

fn in_values<'a>(values: impl Iterator<Item = &'a mut Value>, new: &HashMap<String, String>) -> Renamed {
    values.fold(Renamed::Nothing, |renamed, value| in_value(value, new).or(renamed))
}

fn object(mut fields: Map<String, Value>, new: &HashMap<String, String>) -> Map<String, Value> {
    in_values(fields.values_mut(), new);
    fields
}
