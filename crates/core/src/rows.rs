//! Parts as rows; only this file fills the columns of a part.

use crate::ids::{Ids, MessageId, PartId, SessionId};
use crate::part::Part;
use crate::ports::store::{PartRow, StoreError, StoreResult};

/// Where a part is.
#[derive(Clone, Debug)]
pub(crate) struct PartPlace<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) message_id: &'a MessageId,
    pub(crate) index: usize,
}

pub(crate) fn of_part(
    place: PartPlace<'_>,
    id: PartId,
    part: &Part,
    created_at: i64,
    now: i64,
) -> StoreResult<PartRow> {
    let data_json = serde_json::to_string(part).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(PartRow {
        id,
        message_id: place.message_id.clone(),
        session_id: place.session_id.clone(),
        index: place.index as i64,
        kind: part.kind().into_owned(),
        data_json,
        tool_call_id: part.tool().map(|tool| tool.call_id.to_string()),
        tool_state: part.tool().map(|tool| tool.state.as_str()),
        created_at,
        updated_at: now,
    })
}

/// Rows for all parts of a message that is stored in one go.
pub(crate) fn of_message(
    session_id: &SessionId,
    message_id: &MessageId,
    parts: &[Part],
    now: i64,
    ids: &Ids,
) -> StoreResult<Vec<PartRow>> {
    let rows = parts.iter().enumerate();
    rows.map(|(index, part)| of_part(PartPlace { session_id, message_id, index }, ids.part(), part, now, now))
        .collect()
}
