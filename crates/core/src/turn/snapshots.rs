//! Records what a call is about to change, in the journal and on the shelf, before the call continues.

use std::sync::{Arc, Mutex, PoisonError};

use super::Turn;
use super::call::Call;
use crate::ids::CallId;
use crate::journal::{Author, Journal};
use crate::metadata::MessageMeta;
use crate::ports::store::{Change, StoreError, StoreResult};
use crate::ports::tool::{Effect, Site, Tool};
use crate::ports::{BoxFuture, FileMover, SnapshotSink};
use crate::snapshot::{CallSnapshot, FileKeeper, SnapshotShelf};

#[derive(Debug)]
pub(super) struct CallSnapshots {
    /// `None` once the call has its result. Why a lock: a tool that was given up may still run, but must not
    /// change anything unrecorded.
    journal: Mutex<Option<Journal>>,
    author: Author,
    call_id: CallId,
    title: String,
    shelf: Arc<SnapshotShelf>,
    now: i64,
    /// The call's last report. Why a lock: a tool reports from a task of its own.
    told: Mutex<Option<CallSnapshot>>,
}

impl CallSnapshots {
    /// For a call that may change something, if snapshots are kept.
    pub(super) fn of(turn: &Turn, call: &Call, effect: Effect) -> Option<Arc<Self>> {
        match effect {
            Effect::ReadOnly | Effect::SessionOnly => return None,
            Effect::Mutates => {}
        }
        let shelf = turn.snapshots.clone()?;
        Some(Arc::new(Self {
            journal: Mutex::new(Some(turn.journal.clone())),
            author: turn.author.clone(),
            call_id: call.call_id.clone(),
            title: call.presentation().title,
            shelf,
            now: turn.hub.ports.clock.now_ms(),
            told: Mutex::default(),
        }))
    }

    /// Called before a tool runs that does not report what it changes.
    pub(super) fn expect_anything(&self, tool: &dyn Tool) -> StoreResult<()> {
        if tool.tells_changes() {
            return Ok(());
        }
        self.put(&CallSnapshot {
            title: self.title.clone(),
            uncovered: Some("it is unknown what this tool changes".to_owned()),
            ..CallSnapshot::default()
        })
        .map(drop)
    }

    /// Called after hooks, which may have changed the call's files again (a formatter): records their result as
    /// the call's, so that a rewind does not take it for a change by hand.
    pub(super) async fn look_again(&self, files: &dyn FileMover, site: Site) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut snapshot) = told else { return };
        let paths = snapshot.files.iter().map(|file| file.path.clone()).collect();
        let found = files.look_at(site, paths).await;
        for (file, now) in snapshot.files.iter_mut().zip(found) {
            if let (FileKeeper::Disk, Some(_), Some(now)) = (file.keeper, &file.after, now) {
                file.after = Some(now);
            }
        }
        if let Err(error) = self.put(&snapshot) {
            tracing::debug!(%error, "what hooks left of files was not stored");
        }
    }

    /// Called when the call is over.
    pub(super) fn close(&self) {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn put(&self, snapshot: &CallSnapshot) -> StoreResult<Journal> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = &*journal else {
            return Err(StoreError::Unavailable("the call was given up".into()));
        };
        let mut metadata = MessageMeta::default();
        metadata.set_snapshot_id(&self.call_id);
        let id = self.author.message_id.clone();
        let mark = Change::PatchMessage { id, seq: None, metadata, updated_at: self.now };
        journal.record_with(&self.author, vec![snapshot.chunk(&self.call_id)], vec![mark])?;
        Ok(journal.clone())
    }
}

impl SnapshotSink for CallSnapshots {
    fn keep(&self, content: Vec<u8>) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.shelf.keep(content))
    }

    fn record(&self, snapshot: CallSnapshot) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let journal = self.put(&snapshot).map_err(|error| error.to_string())?;
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
            journal.settle().await.map(drop).map_err(|error| error.to_string())
        })
    }
}
