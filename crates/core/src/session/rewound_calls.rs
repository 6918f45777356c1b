//! The calls that a rewind is about: those of the session, and those of the subagents that they started.
//! `rewind` moves their files.

use std::collections::HashSet;

use serde::Deserialize;

use super::Session;
use crate::hub::{Hub, HubError};
use crate::ids::SessionId;
use crate::journal::replay::parts_of;
use crate::limits::{TASK_LOOK, TASK_REST};
use crate::part::Part;
use crate::ports::store::{PartRow, SeqSpan, SpanMessages};
use crate::snapshot::{self, CallSnapshot};

const UNREADABLE: &str = "its snapshot can't be read by this version";
const CHILD_GONE: &str = "its subagent's session and the file snapshots in it are gone";
const CHILD_WORKS: &str = "its subagent was still at work";

/// Everything visible in a session.
const ALL: SeqSpan = SeqSpan { from: i64::MIN, before: i64::MAX };

impl Session {
    /// What the calls in some rows changed, in order. After a call that started a subagent come the subagent's
    /// calls, whose states of files are in its own session.
    pub(super) async fn calls_of(&self, rows: &[PartRow]) -> Result<Vec<CallSnapshot>, HubError> {
        let mut next = told_in(rows)?;
        next.reverse();
        let (mut calls, mut children) = (Vec::new(), HashSet::new());
        while let Some(mut call) = next.pop() {
            if let Some(child) = call.child.clone()
                && children.insert(child.clone())
            {
                match self.calls_of_child(&child).await? {
                    None => call.uncovered = Some(CHILD_GONE.to_owned()),
                    Some(ChildCalls { told, works }) => {
                        next.extend(told.into_iter().rev());
                        call.uncovered = works.then(|| CHILD_WORKS.to_owned());
                    }
                }
            }
            calls.push(call);
        }
        Ok(calls)
    }

    /// `None` if that child session no longer exists.
    async fn calls_of_child(&self, child: &SessionId) -> Result<Option<ChildCalls>, HubError> {
        let store = self.hub.ports.store.clone();
        let record = store.session(child).await?;
        let Some(record) = record.filter(|record| record.row.metadata.child_of().is_some()) else {
            return Ok(None);
        };
        let content = store.span(child, ALL, SpanMessages::Visible, snapshot::PART_KIND).await?;
        Ok(Some(ChildCalls { told: told_in(&content.snapshots)?, works: record.live_run.is_some() }))
    }

    /// Ends the background tasks that were started from here on, and waits for them: a user who undoes their
    /// start does not want them to continue. Their results say so, and begin no turn.
    pub(super) async fn cancel_tasks_since(&self, seq: i64) -> Result<(), HubError> {
        let store = &self.hub.ports.store;
        let mut cancelled = Vec::new();
        for child in self.children.in_background() {
            let record = store.session(child).await?;
            let Some(message_id) = record.and_then(|record| record.row.parent_message_id) else { continue };
            let started = store.message(&message_id).await?.and_then(|(row, _)| row.seq);
            if started.is_some_and(|started| started >= seq) {
                self.children.cancel_one(child);
                cancelled.push(child.clone());
            }
        }
        // A task that does not stop in time is reported as still at work.
        let all_rest = async {
            for child in &cancelled {
                self.rest_of(child).await;
            }
        };
        drop(tokio::time::timeout(TASK_REST, all_rest).await);
        Ok(())
    }

    /// Resolves when nothing runs in a child's session.
    async fn rest_of(&self, child: &SessionId) {
        let Some(child) = Hub::of(self.hub.clone()).opened(child) else { return };
        while child.status().await.is_ok_and(|status| status.is_active()) {
            tokio::time::sleep(TASK_LOOK).await;
        }
    }
}

struct ChildCalls {
    told: Vec<CallSnapshot>,
    /// Whether it is still at work.
    works: bool,
}

fn told_in(rows: &[PartRow]) -> Result<Vec<CallSnapshot>, HubError> {
    let read = |part: Part| match part {
        Part::Data { data, .. } => Some(CallSnapshot::deserialize(&data).unwrap_or_else(|_| CallSnapshot {
            title: "a call".into(),
            uncovered: Some(UNREADABLE.to_owned()),
            ..CallSnapshot::default()
        })),
        Part::StepStart
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::File { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. } => None,
    };
    Ok(parts_of(rows)?.into_iter().filter_map(read).collect())
}
