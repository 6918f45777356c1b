//! What an import takes from an archive: words and numbers to show. Drops what would act by itself, or marks it
//! as inactive.

use serde_json::Value;

use super::{Authority, SessionArchive};
use crate::data_name::DataName;
use crate::metadata::own_mut;
use crate::part::Part;
use crate::ports::store::{Change, StoreError, StoreResult};
use crate::snapshot::CallSnapshot;

/// A rewind shows this.
const NOT_MOVED: &str = "the session was imported: what its calls changed before is not moved";

/// The data that a file may bring. News of the surroundings and texts of hooks are not among them, because the
/// model would take them for ours.
const DATA: [DataName; 7] = [
    DataName::Command,
    DataName::Notice,
    DataName::Compaction,
    DataName::Usage,
    DataName::Plan,
    DataName::FileRef,
    DataName::Context,
];

/// Reduces the archive to what may be stored.
pub(super) fn take(archive: &mut SessionArchive, authority: Authority) -> StoreResult<()> {
    archive.session.metadata = archive.session.metadata.of_file(authority);
    let mut rows = Vec::with_capacity(archive.rows.len());
    for mut change in std::mem::take(&mut archive.rows) {
        match &mut change {
            Change::InsertMessage(row) => row.metadata = row.metadata.of_file(),
            Change::PutPart(row) => {
                let corrupt = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
                let part: Part = serde_json::from_str(&row.data_json).map_err(corrupt)?;
                match part_of_file(part) {
                    // Kept character by character.
                    TakenPart::AsItIs => {}
                    TakenPart::Changed(part) => {
                        row.data_json = serde_json::to_string(&part).map_err(corrupt)?;
                    }
                    TakenPart::LeftOut => continue,
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
        rows.push(change);
    }
    archive.rows = rows;
    Ok(())
}

/// What happens to a part.
#[derive(Debug)]
enum TakenPart {
    AsItIs,
    Changed(Part),
    LeftOut,
}

fn part_of_file(part: Part) -> TakenPart {
    match part {
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::File { .. } => TakenPart::AsItIs,
        Part::Tool(mut tool) => match tool.tool_metadata.as_mut().map(without_sights) {
            Some(ToldSights::Gone) => TakenPart::Changed(Part::Tool(tool)),
            Some(ToldSights::None) | None => TakenPart::AsItIs,
        },
        Part::Data { name, id, data } if name == DataName::Snapshot => {
            let title = data.get("title").and_then(Value::as_str).unwrap_or("a call").to_owned();
            let nothing =
                CallSnapshot { title, uncovered: Some(NOT_MOVED.to_owned()), ..CallSnapshot::default() };
            TakenPart::Changed(Part::Data { name, id, data: serde_json::json!(nothing) })
        }
        Part::Data { name, .. } if DataName::of(&name).is_some_and(|name| DATA.contains(&name)) => {
            TakenPart::AsItIs
        }
        Part::Data { .. } => TakenPart::LeftOut,
    }
}

/// Whether a result said which files the model had seen.
enum ToldSights {
    None,
    Gone,
}

/// Removes which files a model has seen: no file from elsewhere can know that of this machine.
fn without_sights(metadata: &mut Value) -> ToldSights {
    let of_tool = own_mut(metadata).and_then(|ours| ours.get_mut("metadata")).and_then(Value::as_object_mut);
    match of_tool.and_then(|of_tool| of_tool.shift_remove("seen")) {
        Some(_) => ToldSights::Gone,
        None => ToldSights::None,
    }
}
