//! Starts a child: makes its row, limited by its parent's turn, and opens its session.

use std::path::PathBuf;

use serde_json::Value;

use crate::agents::Agent;
use crate::hub::{Hub, HubError, SessionHandle, SessionPlace, commit};
use crate::ids::{CallId, MessageId, SessionId};
use crate::metadata::{ChildOf, SessionMeta};
use crate::ports::store::{Batch, Change, ModelRef, SessionRow, UsageTotals};
use crate::session::ClientSide;

/// What the turn with a `task` call gives to the child; the session of that turn provides it.
#[derive(Clone, Debug)]
pub(crate) struct TaskTerms {
    /// The session at the top, whose people and limits apply.
    pub(crate) root: SessionId,
    pub(crate) parent: SessionId,
    /// The answer that contains the call.
    pub(crate) message_id: MessageId,
    /// The agent of the turn.
    pub(crate) agent: String,
    pub(crate) model: ModelRef,
    pub(crate) directory: PathBuf,
    /// The directories beside that one, and the servers of the client.
    pub(crate) place: SessionPlace,
    /// The client of the turn's prompt, if it does some work itself.
    pub(crate) client: ClientSide,
}

/// Stores the row of a child and opens its session. Nothing runs in it yet.
pub(super) async fn open_child(
    hub: &Hub,
    terms: &TaskTerms,
    agent: &Agent,
    title: &str,
    call_id: CallId,
) -> Result<SessionHandle, HubError> {
    let row = child_row(hub, terms, agent, title, call_id);
    let id = row.id.clone();
    let changes = vec![Change::CreateSession(Box::new(row))];
    commit(&*hub.ports().store, Batch { session_id: id.clone(), fence: None, changes }).await?;
    hub.open_in(&id, &terms.place).await
}

fn child_row(hub: &Hub, terms: &TaskTerms, agent: &Agent, title: &str, call_id: CallId) -> SessionRow {
    let now = hub.ports().clock.now_ms();
    let mut metadata = SessionMeta::default();
    // No model makes a better title: the caller said what the task is about.
    metadata.set_title(title);
    metadata.set_child_of(&ChildOf::new(&terms.agent, call_id, agent.transcript));
    if !terms.place.additional.is_empty() {
        metadata.set_additional_directories(&terms.place.additional);
    }
    let model = agent.model.clone().unwrap_or_else(|| terms.model.clone());
    let variant = agent.thought.map(|level| level.as_str().to_owned());
    let variant = variant.or(model.variant.clone());
    SessionRow {
        id: hub.ports().ids.session(),
        agent: agent.id.to_string(),
        workspace_root: terms.directory.clone(),
        model: Some(ModelRef { variant, ..model }),
        parent_id: Some(terms.parent.clone()),
        parent_message_id: Some(terms.message_id.clone()),
        permissions: Value::Array(Vec::new()),
        metadata,
        totals: UsageTotals::default(),
        created_at: now,
        updated_at: now,
        archived_at: None,
    }
}
