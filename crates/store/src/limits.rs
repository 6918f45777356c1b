//! Every size, time and count limit of the store, each with its reason.

use std::time::Duration;

/// How long a statement waits for another process before it gives up (the contract's `busy_timeout`).
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);

/// The longest sleep between two attempts at a locked database: a commit takes well under a millisecond, so a
/// longer sleep (SQLite's own handler goes up to 100 ms) only adds latency and lets an unlucky process starve.
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

/// Under load we fold the write-ahead log into the database at this many pages (16 MiB). Folding syncs twice
/// and delays the writer by some milliseconds, so a turn of usual length should not trigger it. Reading the log
/// that a killed process leaves still takes only about 10 ms.
pub(crate) const WAL_CHECKPOINT_PAGES: i64 = 4_000;

/// Otherwise we fold it after this long without writes …
pub(crate) const IDLE_CHECKPOINT_AFTER: Duration = Duration::from_millis(500);

/// … and after at least this many commits: fewer are not worth two syncs.
pub(crate) const IDLE_CHECKPOINT_COMMITS: usize = 256;

/// When the write-ahead log restarts, SQLite shrinks a larger one (after a long reader or a huge batch) to this
/// size.
pub(crate) const WAL_KEEP_BYTES: i64 = 16 * 1024 * 1024;

/// Statements kept prepared per connection: more than there are in this crate.
pub(crate) const CACHED_STATEMENTS: usize = 48;

/// The most batches in one transaction: limits how long the first of them waits for the last.
pub(crate) const GROUP_MAX: usize = 1_024;

/// Threads that read. Two, so that a long page of one session does not hold up the opening of another.
pub(crate) const READER_THREADS: usize = 2;

/// A reader idle for this long ends and frees its memory.
pub(crate) const READER_IDLE: Duration = Duration::from_secs(10);

/// How often we check the database's change counter while a client follows a run of another process.
pub(crate) const FOLLOW_INTERVAL: Duration = Duration::from_millis(40);

/// For this long after we saw a change, we report it to everybody who asks. The port does not say who asks, so
/// a follower that was reading while another one's poll saw the change must still hear of it.
pub(crate) const FOLLOW_MEMORY: Duration = Duration::from_secs(2);

/// What a row counts beside its payload in filling a page: its ids and struct fields.
pub(crate) const ROW_OVERHEAD: usize = 256;

/// We check databases up to this size completely at every start; it costs well under a millisecond.
pub(crate) const FULL_CHECK_BYTES: u64 = 256 * 1024;

/// We repair a damaged database up to this size at a start …
pub(crate) const REPAIR_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// … as long as it takes no longer than this: an editor waits meanwhile, and gives up after a while.
pub(crate) const REPAIR_TIME: Duration = Duration::from_secs(15);

/// How many SQLite instructions, some milliseconds, run between two looks at the clock.
pub(crate) const REPAIR_LOOK_AT_CLOCK: i32 = 100_000;

/// How many findings about a damaged database we read. With more, we do not judge the file any further.
pub(crate) const REPAIR_MAX_FINDINGS: usize = 10_000;

/// How many lock files of dead processes we check after a start; the rest waits for the next one.
pub(crate) const SWEEP_MAX: usize = 64;

/// Unfinished attachment files older than this belong to no process; we remove them.
pub(crate) const INCOMING_MAX_AGE: Duration = Duration::from_secs(3_600);

/// How many parts of one batch we index in its commit: more than one step of a turn makes. If there are more,
/// we index them in pieces later.
pub(crate) const PARTS_INDEXED_AT_ONCE: usize = 64;

/// How many documents' words we remove from the index at once, about a millisecond each.
pub(crate) const REMOVED_AT_ONCE: usize = 64;

/// How much one piece of the backlog reads at most: a few milliseconds, for which a commit may have to wait.
pub(crate) const PIECE_PARTS: usize = 64;
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// We work on the backlog after this long without other work …
pub(crate) const BACKLOG_AFTER: Duration = Duration::from_millis(200);

/// … and then pause between its pieces, so that a large database takes a quarter of a core for a while instead
/// of a whole one.
pub(crate) const BACKLOG_PAUSE: Duration = Duration::from_millis(10);

/// How many matches we rank at a time, the latest first: otherwise a frequent word would be ranked in all
/// messages of all sessions.
pub(crate) const RANKED_AT_ONCE: usize = 500;

/// How many words around a hit we show.
pub(crate) const SNIPPET_TOKENS: i64 = 24;

/// The most words of one question; of a pasted page we search the first ones.
pub(crate) const QUESTION_WORDS: usize = 32;
