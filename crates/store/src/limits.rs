//! Every size, time and count the store is bound to, each with its reason.

use std::time::Duration;

/// How long a statement waits for another process before it gives up (the contract's `busy_timeout`).
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);

/// Longest sleep between two looks at a locked database: a commit takes well under a millisecond, so sleeping
/// longer (SQLite's own handler goes up to 100 ms) only adds latency and lets an unlucky process starve.
pub(crate) const BUSY_SLEEP_MAX: Duration = Duration::from_millis(4);

/// How long a commit asks for the lock before it stands in line: others need less, unless they are held up.
pub(crate) const COMMIT_TIME: Duration = Duration::from_millis(1);

/// How long a writer waits for its turn while others write. A thousand processes that start at once on two
/// cores are through in a minute; who has not had a turn by then will not get one.
pub(crate) const QUEUE_PATIENCE: Duration = Duration::from_secs(120);

/// Page cache of the writer in KiB: enough for the inner pages of all trees plus the leaves a live run touches.
pub(crate) const WRITER_CACHE_KIB: i64 = 1_024;

/// Page cache of one reader in KiB: reading is sequential, a large cache would only raise the resident size.
pub(crate) const READER_CACHE_KIB: i64 = 512;

/// Under load the write-ahead log is folded into the database when it has this many pages (16 MiB). Folding
/// syncs twice and holds up the writer for some milliseconds, so a turn of usual length shall not meet it; what
/// a killed process leaves is still read again in about 10 ms.
pub(crate) const WAL_CHECKPOINT_PAGES: i64 = 4_000;

/// Otherwise it is folded when nothing was written for this long …
pub(crate) const IDLE_CHECKPOINT_AFTER: Duration = Duration::from_millis(500);

/// … and this many commits have gathered: fewer are not worth two syncs.
pub(crate) const IDLE_CHECKPOINT_COMMITS: usize = 256;

/// A write-ahead log that once grew beyond this (a long reader, a huge batch) is cut back when it starts anew.
pub(crate) const WAL_KEEP_BYTES: i64 = 16 * 1024 * 1024;

/// Statements kept prepared per connection: more than there are in this crate.
pub(crate) const CACHED_STATEMENTS: usize = 48;

/// Batches in one transaction: bounds how long the first of them waits for the last.
pub(crate) const GROUP_MAX: usize = 1_024;

/// Threads that read. Two, so that a long page of one session does not hold up the opening of another.
pub(crate) const READER_THREADS: usize = 2;

/// A reader that had nothing to do for this long ends and gives its memory back.
pub(crate) const READER_IDLE: Duration = Duration::from_secs(10);

/// How often the database's change counter is looked at while a client follows a run of another process.
pub(crate) const FOLLOW_INTERVAL: Duration = Duration::from_millis(40);

/// A change is told to everybody who asks within this time after it was seen. The port does not say who asks,
/// so a follower that was busy reading while another one's poll saw the change must still hear of it.
pub(crate) const FOLLOW_MEMORY: Duration = Duration::from_secs(2);

/// What a row counts beside its payload when a page is filled: ids and struct fields that come with it.
pub(crate) const ROW_OVERHEAD: usize = 256;

/// Databases up to this size are checked completely at every start; it costs well under a millisecond.
pub(crate) const FULL_CHECK_BYTES: u64 = 256 * 1024;

/// A damaged database up to this size is repaired at a start …
pub(crate) const REPAIR_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// … as long as it takes no longer than this: an editor waits meanwhile, and gives up after a while.
pub(crate) const REPAIR_TIME: Duration = Duration::from_secs(15);

/// After so many instructions of SQLite, some milliseconds, the clock is looked at.
pub(crate) const REPAIR_LOOK_AT_CLOCK: i32 = 100_000;

/// Findings about a damaged database that are read. A file with more is not judged any further.
pub(crate) const REPAIR_MAX_FINDINGS: usize = 10_000;

/// Lock files of dead processes looked at after a start; the rest waits for the next one.
pub(crate) const SWEEP_MAX: usize = 64;

/// Unfinished attachment files older than this belong to no process and are removed.
pub(crate) const INCOMING_MAX_AGE: Duration = Duration::from_secs(3_600);

/// Parts of one batch that are indexed in its commit: more than a step of a turn makes. Beyond it they are
/// indexed in pieces later.
pub(crate) const PARTS_INDEXED_AT_ONCE: usize = 64;

/// Documents whose words are taken out of the index at once, about a millisecond each.
pub(crate) const REMOVED_AT_ONCE: usize = 64;

/// What one piece of the backlog reads at most: a few milliseconds, which is what a commit that arrives
/// meanwhile waits.
pub(crate) const PIECE_PARTS: usize = 64;
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// The backlog is worked on when nothing was asked for this long …
pub(crate) const BACKLOG_AFTER: Duration = Duration::from_millis(200);

/// … and then with pauses between its pieces, so that a large database costs a quarter of a core for a while
/// and not a whole one.
pub(crate) const BACKLOG_PAUSE: Duration = Duration::from_millis(10);

/// Matches that are ranked at a time, the latest first: a word that is everywhere would else be ranked in all
/// messages of all sessions.
pub(crate) const RANKED_AT_ONCE: usize = 500;

/// Words around a hit that are shown with it.
pub(crate) const SNIPPET_TOKENS: i64 = 24;

/// Words of one question; who pastes a page has the first of them looked for.
pub(crate) const QUESTION_WORDS: usize = 32;
