//! Every size and time this crate holds itself to, with its reason.
#![cfg_attr(
    not(all(target_os = "linux", not(attache_portable))),
    allow(dead_code, reason = "some are of what only Linux has")
)]

use std::time::Duration;

/// Error text for the model: enough for the reason and a few lines of the file.
pub const ERROR_BYTES: usize = 4 * 1024;

/// How much space a disk must have left beside a copy of our program, because sessions are stored on it, too.
pub(crate) const SPACE_BESIDE_COPY: u64 = 64 * 1024 * 1024;

/// One read where a program copies itself.
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
pub(crate) const COPY_BYTES: usize = 64 * 1024;

/// Directories above each other that are named one by one: more than any path has.
#[cfg(not(any(target_vendor = "apple", all(target_os = "linux", not(attache_portable)))))]
pub(crate) const PATH_LEVELS: usize = 4_096;

/// One entry of the list of accounts; real ones have a hundred bytes.
pub(crate) const ACCOUNT_BYTES: usize = 16 * 1024;

/// The beginning of a script, which names the program it starts: scripts of version managers are shorter.
pub(crate) const SCRIPT_HEAD_BYTES: u64 = 2 * 1024;

/// A file that may choose a version among other things (`package.json`); we assume that a longer one does.
pub(crate) const VERSION_FILE_BYTES: u64 = 256 * 1024;

/// Symbolic links followed in one path; the kernel's own number.
pub const SYMLINK_HOPS: usize = 40;

/// Time between two views of a running command.
pub(crate) const LIVE_INTERVAL: Duration = Duration::from_millis(100);

/// One read from a command's output: the size of a pipe on Linux.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;

/// How long we wait for output after the shell has ended while another process still holds the pipe.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Time between asking a process tree to end and killing it.
pub(crate) const TERM_TIME: Duration = Duration::from_secs(2);

/// How long we wait for a killed tree to die. With `TERM_TIME` it stays below the 2.5 s of a cancelled call.
pub const KILL_TIME: Duration = Duration::from_millis(400);

/// How long the first process of a namespace may take to count what a command left there: it reads `/proc`.
/// Applies only if no user waits for a cancelled command.
pub(crate) const COUNT_TIME: Duration = Duration::from_millis(500);

/// A repository's configuration; we do not look through a longer one.
pub const GIT_CONFIG_BYTES: u64 = 64 * 1024;

/// The index of some 500,000 files.
pub const GIT_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// Processes of one sandboxed command: parallel builds on large machines stay far below. We count them from
/// inside, because the kernel's own limit knows no namespaces before Linux 5.14 and never applies to root.
pub const COMMAND_PROCESSES: usize = 512;

/// Time between two counts. A fork bomb makes a few thousand processes meanwhile.
pub(crate) const PROCESS_COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// The kernel's own limit on threads and processes, for ordinary users: it stops a fork bomb between two
/// counts.
pub(crate) const COMMAND_TASKS: u64 = 8_192;

/// The largest file a sandboxed command may write; a larger one only fills the disk.
pub(crate) const COMMAND_FILE_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// The same for a command that runs unasked: it keeps only what later commands need in the scratch directory,
/// and the user has agreed to no more.
pub(crate) const UNASKED_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How much the scratch directory may grow while such a command runs, and how many entries we count: the index
/// of a large repository fits.
pub const UNASKED_SCRATCH_BYTES: u64 = 256 * 1024 * 1024;
pub(crate) const UNASKED_SCRATCH_ENTRIES: usize = 20_000;

/// The private `/tmp` of a sandbox lives in memory; large files belong in the scratch directory.
pub(crate) const TEMPORARY_BYTES: u64 = 1024 * 1024 * 1024;

/// What an entry of a file system in memory takes beside its content: the kernel counts as much.
pub(crate) const ENTRY_IN_MEMORY_BYTES: u64 = 1024;

/// Places where others listen that one sandbox hides, each by a mount: a desktop has some dozen outside of
/// what is private anyway.
pub(crate) const HIDDEN_LISTENERS: usize = 128;

/// How long somebody has to have listened to be hidden: what comes and goes within a second may be gone before
/// it is covered, and a sandbox that can't cover what it meant to is not entered.
pub(crate) const LISTENER_AGE: Duration = Duration::from_secs(1);

/// How long a directory that has lost a socket is left out: a program that restarts is there again by then.
pub(crate) const LISTENER_REST: Duration = Duration::from_secs(60);

/// What fits into the empty directories that stand for hidden and missing ones: nothing, and the kernel knows
/// no less.
pub(crate) const SEALED_BYTES: u64 = 4096;

/// How deep we search for repositories before and after a command that may write: a few milliseconds for most
/// projects. The times of directories find repositories that lie deeper.
pub(crate) const GIT_GUARD_DEPTH: usize = 6;
pub(crate) const GIT_GUARD_DIRECTORIES: usize = 1_024;

/// Directories of a root whose times we know, so that we find repositories wherever they lie: enough for a very
/// large project with its packages. Checking one takes a microsecond, listing all of them half a second.
pub(crate) const CACHED_DIRECTORIES: usize = 50_000;

/// Roots for which we know these at the same time: some megabytes each.
pub(crate) const CACHED_ROOTS: usize = 4;

/// The fraction (one part in this many) of a user's watches that we use for one root: editors need the rest.
pub(crate) const WATCH_SHARE: usize = 8;

/// One read of the kernel's reports about watched directories: some hundred changes.
pub(crate) const WATCH_EVENT_BYTES: usize = 16 * 1024;

/// Threads that check the times of directories, and how many directories one checks at least: starting a thread
/// takes about fifty microseconds.
pub(crate) const STAT_THREADS: usize = 4;
pub(crate) const STAT_BATCH: usize = 1_024;

/// The times of files advance with the kernel's ticks; the longest takes ten milliseconds.
pub(crate) const FILE_TIME_GRAIN: Duration = Duration::from_millis(20);

/// Entries of one directory that we look at. If a command adds more where git would run them, we set them
/// aside.
pub(crate) const GIT_GUARD_ENTRIES: usize = 20_000;

/// Links in one repository that we keep track of. Git makes none.
pub(crate) const GIT_GUARD_LINKS: usize = 10_000;

/// How often we look at a root again after undoing something in it: renaming a directory moves what lies in it.
/// The innermost goes first, so more than one further look is rare.
pub(crate) const UNDO_ROUNDS: usize = 16;

/// Repositories in indexes that we look at. If a command adds more, we set them aside.
pub(crate) const GIT_GUARD_MODULES: usize = 4_096;

/// Files of git's configuration that we search for names, and the names in one root: each of some hundred
/// modules may have a few. We mount as many of the existing ones as the last number says, and compare the rest.
pub(crate) const GIT_CONFIG_FILES: usize = 64;
pub(crate) const NAMED_BY_GIT: usize = 1_024;
pub(crate) const MOUNTED_FOR_GIT: usize = 64;

/// Directories in which a command of git's configuration may run, according to its own words.
pub(crate) const COMMAND_DIRECTORIES: usize = 16;

/// Protected names below the top of a root that we compare after a command, and the files of one of them:
/// `.vscode` has three. If a name has more files, we keep only sizes and times, up to the second number.
pub(crate) const PROTECTED_NAMES: usize = 256;
pub(crate) const PROTECTED_ENTRIES: usize = 64;
pub(crate) const PROTECTED_STAMPS: usize = 4_096;

/// Repositories that we look at because they were there before.
pub(crate) const GIT_GUARD_KNOWN: usize = 4_096;

/// How often a running command's baseline records that we live. Also how long after the last record the command
/// may have written, if its guard was killed with us and could not say when it ended: one beat, and the time
/// its processes take to die.
pub(crate) const BASELINE_BEAT: Duration = Duration::from_secs(1);
pub(crate) const KILLED_COMMAND_TIME: Duration = Duration::from_secs(2);

/// Names that we try for what we set aside.
pub(crate) const SET_ASIDE_TRIES: usize = 64;

/// How deep, and in how many directories, we look for nested repositories and protected files before each
/// command: a few milliseconds.
pub(crate) const NESTED_DEPTH: usize = 3;
pub(crate) const NESTED_DIRECTORIES: usize = 128;

/// What one plan protects one by one: each is a mount, and bubblewrap takes 9,000 words. Beyond it we protect
/// whole directories.
pub(crate) const HELD_PATHS: usize = 512;

/// How often we make a new plan because something changed meanwhile, before the command runs without the right
/// to write.
pub(crate) const PLAN_TRIES: usize = 3;

/// Directories of one session whose places we remember: some hundred kilobytes.
pub(crate) const REMEMBERED_PLACES: usize = 4_096;

/// Names that we try for what a command put in the place of a protected link.
pub(crate) const UNDONE_NAMES: usize = 1_000;

/// How much memory all processes of a command may use together, in quarters of the machine's memory: with less,
/// large builds fail; with more, the system swaps out the editor first.
pub(crate) const COMMAND_MEMORY_QUARTERS: u64 = 3;

/// Rules of the reduced level for what a command may read beside hidden paths: enough for the entries of a
/// crowded home.
pub(crate) const HIDING_RULES: usize = 16_384;

/// Running `true` in a sandbox takes milliseconds; a machine slower than this counts as having none.
pub(crate) const PROBE_TIME: Duration = Duration::from_secs(5);

/// How many files a note about lost writes names.
pub(crate) const LOST_WRITE_NAMES: usize = 3;
