//! One process's view of a `Disk`: commits come back in order after a time the seed decides, until the process
//! is killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use attache_core::agents::Transcript;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::Role;
use attache_core::ports::BoxFuture;
use attache_core::ports::store::{
    Batch, BlobOwner, Blobs, Done, Epoch, LeaseGrant, Leases, ListedSessions, LogSegment, RowCursor, RowPage,
    RowRange, SeqSpan, SessionQuery, SessionRecord, SessionRow, SpanContent, SpanMessages, Store, StoreError,
    StoreResult, StoredMessage,
};
use tokio::sync::mpsc;

use super::disk::{Disk, ProcessId};
use super::random::Random;

#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    disk: Arc<Mutex<Disk>>,
    process: ProcessId,
    commits: mpsc::UnboundedSender<Pending>,
    killed: AtomicBool,
    /// Commits left before one fails; `u64::MAX` for never.
    fails_in: AtomicU64,
    /// Decides how long each read takes.
    reads: Mutex<Random>,
}

enum Pending {
    Commit(Batch, Done),
    Acquire(SessionId, Option<Epoch>, tokio::sync::oneshot::Sender<StoreResult<LeaseGrant>>),
}

/// The longest a commit takes, in milliseconds of tokio's time.
const SLOWEST_COMMIT: u64 = 4;

/// The longest a read takes; most take no time at all.
const SLOWEST_READ: u64 = 2;

impl MemoryStore {
    /// A new process on this disk. `seed` decides how long each commit takes.
    pub fn open(disk: Arc<Mutex<Disk>>, process: ProcessId, seed: u64) -> Self {
        disk.lock().unwrap().alive.insert(process);
        let (commits, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            disk,
            process,
            commits,
            killed: AtomicBool::new(false),
            fails_in: AtomicU64::new(u64::MAX),
            reads: Mutex::new(Random::new(!seed)),
        });
        tokio::spawn(write(Arc::downgrade(&shared), waiting, Random::new(seed)));
        Self { shared }
    }

    /// SIGKILL: nothing more is committed, no caller is told.
    pub fn kill(&self) {
        self.shared.killed.store(true, Ordering::SeqCst);
        self.disk().alive.remove(&self.shared.process);
    }

    /// The n-th commit from now on fails, once.
    pub fn fail_commit(&self, nth: u64) {
        self.shared.fails_in.store(nth, Ordering::SeqCst);
    }

    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.shared.disk.lock().unwrap()
    }
}

async fn write(
    shared: std::sync::Weak<Shared>,
    mut waiting: mpsc::UnboundedReceiver<Pending>,
    mut random: Random,
) {
    while let Some(pending) = waiting.recv().await {
        tokio::time::sleep(Duration::from_millis(random.below(SLOWEST_COMMIT + 1))).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.killed.load(Ordering::SeqCst) {
            return;
        }
        match pending {
            Pending::Commit(batch, done) => {
                let left = shared.fails_in.load(Ordering::SeqCst);
                shared
                    .fails_in
                    .store(if left == u64::MAX { left } else { left.wrapping_sub(1) }, Ordering::SeqCst);
                let result = if left == 0 {
                    Err(StoreError::Unavailable("disk full (put in by the test)".into()))
                } else {
                    shared.disk.lock().unwrap().apply(shared.process, batch)
                };
                done(result);
            }
            Pending::Acquire(session, known, reply) => {
                let granted = acquire(&mut shared.disk.lock().unwrap(), shared.process, &session, known);
                drop(reply.send(Ok(granted)));
            }
        }
    }
}

fn acquire(disk: &mut Disk, process: ProcessId, session: &SessionId, known: Option<Epoch>) -> LeaseGrant {
    if !disk.sessions.contains_key(session) {
        return LeaseGrant::UnknownSession;
    }
    let alive = disk.alive.clone();
    let lease = disk.lease(session);
    match lease.owner {
        Some(owner) if owner == process => {
            return LeaseGrant::Granted { epoch: Epoch(lease.epoch), moved: false };
        }
        Some(owner) if alive.contains(&owner) => return LeaseGrant::Elsewhere,
        Some(_) | None => {}
    }
    let moved = known.is_some_and(|known| known != Epoch(lease.epoch));
    lease.owner = Some(process);
    lease.epoch += 1;
    LeaseGrant::Granted { epoch: Epoch(lease.epoch), moved }
}

impl MemoryStore {
    /// Looks at the disk as it is when the read is done, which may be later than it was asked for.
    fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Disk) -> T + Send + 'static,
    ) -> BoxFuture<'static, StoreResult<T>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let pause = {
                let mut random = shared.reads.lock().unwrap();
                if random.one_in(3) { random.below(SLOWEST_READ + 1) } else { 0 }
            };
            if pause > 0 {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            if shared.killed.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let disk = shared.disk.lock().unwrap();
            Ok(look(&disk))
        })
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: Batch, done: Done) {
        drop(self.shared.commits.send(Pending::Commit(batch, done)));
    }

    fn session(&self, id: &SessionId) -> BoxFuture<'static, StoreResult<Option<SessionRecord>>> {
        let (process, id) = (self.shared.process, id.clone());
        self.read(move |disk| disk.record(process, &id))
    }

    fn list_sessions(&self, query: SessionQuery) -> BoxFuture<'static, StoreResult<Vec<SessionRow>>> {
        self.read(move |disk| {
            let is_listed = |row: &SessionRow| match &query.listed {
                ListedSessions::Own => row.metadata.child_of().is_none(),
                ListedSessions::WithChildren => {
                    row.metadata.child_of().is_none_or(|child| child.transcript() == Transcript::OwnSession)
                }
                ListedSessions::ChildrenOf(parent) => {
                    row.metadata.child_of().is_some() && row.parent_id.as_ref() == Some(parent)
                }
            };
            let all = matches!(query.listed, ListedSessions::ChildrenOf(_));
            let spoken = |row: &&SessionRow| all || !disk.conversation(&row.id).is_empty();
            let wanted = |row: &&SessionRow| {
                query.workspace_root.as_ref().is_none_or(|root| *root == row.workspace_root)
                    && (all || query.include_archived || row.archived_at.is_none())
                    && is_listed(row)
            };
            let mut rows: Vec<_> = disk.sessions.values().filter(spoken).filter(wanted).cloned().collect();
            rows.sort_by(|a, b| (b.updated_at, &b.id).cmp(&(a.updated_at, &a.id)));
            if let Some((at, id)) = &query.after {
                rows.retain(|row| (row.updated_at, &row.id) < (*at, id));
            }
            rows.truncate(query.limit);
            rows
        })
    }

    fn read_rows(&self, session: &SessionId, range: RowRange) -> BoxFuture<'static, StoreResult<RowPage>> {
        let session = session.clone();
        self.read(move |disk| page(disk, &session, &range))
    }

    fn message(&self, id: &MessageId) -> BoxFuture<'static, StoreResult<Option<StoredMessage>>> {
        let id = id.clone();
        self.read(move |disk| disk.messages.get(&id).map(|row| (row.clone(), disk.parts_of(&id))))
    }

    fn last_prompts(
        &self,
        session: &SessionId,
        before_seq: i64,
        limit: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<StoredMessage>>> {
        let session = session.clone();
        self.read(move |disk| {
            let conversation = disk.conversation(&session).into_iter().rev();
            let prompts = conversation.filter(|row| {
                row.role == Role::User && !row.metadata.is_hidden() && row.seq < Some(before_seq)
            });
            prompts.take(limit).map(|row| (row.clone(), disk.parts_of(&row.id))).collect()
        })
    }

    fn span(
        &self,
        session: &SessionId,
        span: SeqSpan,
        messages: SpanMessages,
        part_kind: &'static str,
    ) -> BoxFuture<'static, StoreResult<SpanContent>> {
        let session = session.clone();
        self.read(move |disk| {
            let mut content = SpanContent::default();
            for row in disk.conversation(&session) {
                let is_meant = match messages {
                    SpanMessages::Visible => !row.metadata.is_hidden(),
                    SpanMessages::HiddenAt(hidden_at) => row.metadata.hidden_at() == Some(hidden_at),
                };
                if !is_meant || !row.seq.is_some_and(|seq| span.holds(seq)) {
                    continue;
                }
                content.messages += 1;
                if row.metadata.snapshot_id().is_some() {
                    let parts = disk.parts_of(&row.id).into_iter();
                    content.snapshots.extend(parts.filter(|part| part.kind == part_kind));
                }
            }
            content
        })
    }

    fn system_prompt(&self, digest: &str) -> BoxFuture<'static, StoreResult<Option<String>>> {
        let digest = digest.to_owned();
        self.read(move |disk| disk.system_prompts.get(&digest).cloned())
    }

    fn read_log(
        &self,
        session: &SessionId,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'static, StoreResult<Vec<LogSegment>>> {
        let session = session.clone();
        self.read(move |disk| {
            let mut bytes = 0;
            let wanted = disk.segments(&session).filter(|segment| segment.last_index >= from);
            wanted
                .take_while(|segment| {
                    let first = bytes == 0;
                    bytes += segment.chunks.len();
                    first || bytes <= max_bytes
                })
                .cloned()
                .collect()
        })
    }
}

fn page(disk: &Disk, session: &SessionId, range: &RowRange) -> RowPage {
    let mut page = RowPage::default();
    let mut bytes = 0;
    for row in disk.conversation(session) {
        let seq = row.seq.unwrap_or_default();
        let after = range.after.map_or((i64::MIN, i64::MIN), |cursor| (cursor.seq, cursor.part_index));
        if row.metadata.is_hidden() || seq < after.0 || range.before_seq.is_some_and(|end| seq >= end) {
            continue;
        }
        let mut parts = Vec::new();
        for part in disk.parts_of(&row.id) {
            if (seq, part.index) <= after {
                continue;
            }
            let needed = part.data_json.len() + 1;
            let page_is_empty = page.messages.is_empty() && parts.is_empty();
            if !page_is_empty && needed.saturating_add(bytes) > range.max_bytes {
                let last: Option<&attache_core::ports::store::PartRow> = parts.last();
                page.next = match last {
                    Some(last) => Some(RowCursor { seq, part_index: last.index }),
                    None => Some(RowCursor { seq: seq - 1, part_index: i64::MAX }),
                };
                if !parts.is_empty() {
                    page.messages.push((row.clone(), parts));
                }
                return page;
            }
            bytes += needed;
            parts.push(part);
        }
        if seq > after.0 || !parts.is_empty() {
            page.messages.push((row.clone(), parts));
        }
    }
    page
}

impl Leases for MemoryStore {
    fn acquire(
        &self,
        session: &SessionId,
        known: Option<Epoch>,
    ) -> BoxFuture<'static, StoreResult<LeaseGrant>> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        drop(self.shared.commits.send(Pending::Acquire(session.clone(), known, reply)));
        Box::pin(async move {
            match answer.await {
                Ok(granted) => granted,
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn changed_elsewhere(&self) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(50)))
    }
}

impl Blobs for MemoryStore {
    fn put(&self, session: &SessionId, bytes: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        let digest = attache_core::prompt::digest(&bytes);
        let mut disk = self.disk();
        let blob = disk.blobs.entry(digest.clone()).or_insert_with(|| (Default::default(), bytes));
        blob.0.insert(session.clone());
        Box::pin(async move { Ok(digest) })
    }

    fn get(&self, sha256: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        let sha256 = sha256.to_string();
        self.read(move |disk| disk.blobs.get(&sha256).map(|(_, bytes)| bytes.clone()))
    }

    fn share(&self, from: &SessionId, with: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        for (owners, _) in self.disk().blobs.values_mut().filter(|(owners, _)| owners.contains(from)) {
            owners.insert(with.clone());
        }
        Box::pin(async { Ok(()) })
    }

    fn bytes_of(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        let session = session.clone();
        self.read(move |disk| {
            let own = disk.blobs.values().filter(|(owners, _)| owners.contains(&session));
            own.map(|(_, bytes)| bytes.len() as u64).sum()
        })
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        self.read(move |disk| {
            let owners = disk.blobs.values().flat_map(|(owners, _)| owners.iter().cloned());
            let owners: std::collections::BTreeSet<SessionId> = owners.collect();
            // Of no time: whoever asks for old ones gets them all.
            owners.into_iter().map(|session| BlobOwner { session, touched_at: 0 }).collect()
        })
    }

    fn delete_session(&self, session: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        self.disk().blobs.retain(|_, (owners, _)| {
            owners.remove(session);
            !owners.is_empty()
        });
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests;
