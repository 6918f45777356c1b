//! Every size and time this crate holds itself to, with its reason.
#![cfg_attr(
    not(all(target_os = "linux", not(attache_portable))),
    allow(dead_code, reason = "some are of what only Linux has")
)]

use std::time::Duration;

/// Error text for the model; enough for the reason and a few lines of the file.
pub const ERROR_BYTES: usize = 4 * 1024;

/// What a disk must have left beside a copy of our program: sessions are stored on it, too.
pub(crate) const SPACE_BESIDE_COPY: u64 = 64 * 1024 * 1024;

/// One read where a program copies itself.
#[cfg(not(all(target_os = "linux", not(attache_portable))))]
pub(crate) const COPY_BYTES: usize = 64 * 1024;

/// Directories above each other that are named one by one: more than any path has.
#[cfg(not(any(target_vendor = "apple", all(target_os = "linux", not(attache_portable)))))]
pub(crate) const PATH_LEVELS: usize = 4_096;

/// One entry of the list of accounts; real ones have a hundred bytes.
pub(crate) const ACCOUNT_BYTES: usize = 16 * 1024;

/// The beginning of a script in which the program it starts is named: those of version managers are shorter.
pub(crate) const SCRIPT_HEAD_BYTES: u64 = 2 * 1024;

/// A file that may choose a version among other things (`package.json`); in what is longer it is taken to.
pub(crate) const VERSION_FILE_BYTES: u64 = 256 * 1024;

/// Symbolic links followed in one path; the kernel's own number.
pub const SYMLINK_HOPS: usize = 40;

/// Between two views of a running command.
pub(crate) const LIVE_INTERVAL: Duration = Duration::from_millis(100);

/// One read from a command's output: the size of a pipe on Linux.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;

/// How long output is awaited after the shell has ended while something still holds the pipe.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Between asking a process tree to end and killing it.
pub(crate) const TERM_TIME: Duration = Duration::from_secs(2);

/// How long the death of a killed tree is awaited. With `TERM_TIME` it stays below the 2.5 s a cancelled call
/// has.
pub const KILL_TIME: Duration = Duration::from_millis(400);

/// How long the first process of a namespace may take to count what a command left there: it reads `/proc`.
/// Only where nobody waits for a command to be cancelled.
pub(crate) const COUNT_TIME: Duration = Duration::from_millis(500);

/// A repository's configuration; what is longer is not looked through.
pub const GIT_CONFIG_BYTES: u64 = 64 * 1024;

/// The index of some 500,000 files.
pub const GIT_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// Processes of one sandboxed command: parallel builds of large machines stay far below. Counted from inside,
/// since the kernel's own limit knows no namespaces before Linux 5.14 and never holds for root.
pub const COMMAND_PROCESSES: usize = 512;

/// Between two counts. A fork bomb makes a few thousand processes meanwhile.
pub(crate) const PROCESS_COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// Threads and processes by the kernel's own limit, for ordinary users: what a fork bomb reaches between two
/// counts.
pub(crate) const COMMAND_TASKS: u64 = 8_192;

/// Largest file a sandboxed command may write; above it only fills the disk.
pub(crate) const COMMAND_FILE_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// The same for a command that runs unasked: it has the scratch directory for what it keeps for later commands,
/// and the user has agreed to no more.
pub(crate) const UNASKED_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// By how much the scratch directory may grow while such a command runs, and how many entries are counted: an
/// index of a large repository fits.
pub const UNASKED_SCRATCH_BYTES: u64 = 256 * 1024 * 1024;
pub(crate) const UNASKED_SCRATCH_ENTRIES: usize = 20_000;

/// The private `/tmp` of a sandbox lives in memory; large things belong into the scratch directory.
pub(crate) const TEMPORARY_BYTES: u64 = 1024 * 1024 * 1024;

/// What an entry of a file system in memory takes beside its content: the kernel counts as much.
pub(crate) const ENTRY_IN_MEMORY_BYTES: u64 = 1024;

/// Places where others listen that one sandbox hides, each by a mount: a desktop has some dozen outside of
/// what is private anyway.
pub(crate) const HIDDEN_LISTENERS: usize = 128;

/// How long somebody has to have listened to be hidden: what comes and goes within a second may be gone before
/// it is covered, and a sandbox that can't cover what it meant to is not entered.
pub(crate) const LISTENER_AGE: Duration = Duration::from_secs(1);

/// What fits into the empty directories that stand for hidden and missing ones: nothing, and the kernel knows
/// no less.
pub(crate) const SEALED_BYTES: u64 = 4096;

/// How far repositories are looked for before and after a command that may write: a few milliseconds for most
/// projects. Repositories that lie deeper are found by the times of directories.
pub(crate) const GIT_GUARD_DEPTH: usize = 6;
pub(crate) const GIT_GUARD_DIRECTORIES: usize = 1_024;

/// Directories of a root that are known with their times, so that repositories are found wherever they lie:
/// those of a very large project with its packages. Asking each costs a microsecond, listing all of them half
/// a second.
pub(crate) const CACHED_DIRECTORIES: usize = 50_000;

/// Roots of which they are known at once: some megabytes each.
pub(crate) const CACHED_ROOTS: usize = 4;

/// Of what one user may watch, the part that is taken for one root: editors need the rest.
pub(crate) const WATCH_SHARE: usize = 8;

/// One read of what the kernel says of watched directories: some hundred changes.
pub(crate) const WATCH_EVENT_BYTES: usize = 16 * 1024;

/// Threads that ask for the times of directories, and how many one asks for at least: it starts in some fifty
/// microseconds.
pub(crate) const STAT_THREADS: usize = 4;
pub(crate) const STAT_BATCH: usize = 1_024;

/// The times of files go on with the kernel's ticks, of which the longest takes ten milliseconds.
pub(crate) const FILE_TIME_GRAIN: Duration = Duration::from_millis(20);

/// Entries of one directory that are looked at. What a command adds beyond, where git would run it, is set
/// aside.
pub(crate) const GIT_GUARD_ENTRIES: usize = 20_000;

/// Links in one repository that are known. Git makes none.
pub(crate) const GIT_GUARD_LINKS: usize = 10_000;

/// How often a root is looked at again after something in it was undone: what is renamed takes along what lies
/// in it. The innermost goes first, so one look more than that is rare.
pub(crate) const UNDO_ROUNDS: usize = 16;

/// Repositories that an index leads to and that are looked at. What a command adds beyond is set aside.
pub(crate) const GIT_GUARD_MODULES: usize = 4_096;

/// Files of git's configuration that are looked through for what they name, and the names in one root: each of
/// some hundred modules may have a few. Of those that exist, so many are mounted; the rest is compared.
pub(crate) const GIT_CONFIG_FILES: usize = 64;
pub(crate) const NAMED_BY_GIT: usize = 1_024;
pub(crate) const MOUNTED_FOR_GIT: usize = 64;

/// Directories in which a command of git's configuration may run, by its own words.
pub(crate) const COMMAND_DIRECTORIES: usize = 16;

/// Protected names below the top of a root that are compared after a command, and the files of one of them:
/// `.vscode` has three. Of what has more files, only their sizes and times are kept, up to the second number.
pub(crate) const PROTECTED_NAMES: usize = 256;
pub(crate) const PROTECTED_ENTRIES: usize = 64;
pub(crate) const PROTECTED_STAMPS: usize = 4_096;

/// Repositories that are looked at because they were there before.
pub(crate) const GIT_GUARD_KNOWN: usize = 4_096;

/// How often a running command's baseline says that we live, and how long after the last time the command may
/// have written if its guard was killed with us and could not say when it ended: one beat, and the time in
/// which its processes die.
pub(crate) const BASELINE_BEAT: Duration = Duration::from_secs(1);
pub(crate) const KILLED_COMMAND_TIME: Duration = Duration::from_secs(2);

/// Names tried for what is set aside.
pub(crate) const SET_ASIDE_TRIES: usize = 64;

/// How deep, and in how many directories, nested repositories and protected files are looked for before each
/// command: a few milliseconds.
pub(crate) const NESTED_DEPTH: usize = 3;
pub(crate) const NESTED_DIRECTORIES: usize = 128;

/// What one plan holds one by one: each is a mount, and bubblewrap takes 9,000 words. Beyond it whole
/// directories are held.
pub(crate) const HELD_PATHS: usize = 512;

/// Plans that are made anew when something changed on the way, before a command runs without the right to
/// write.
pub(crate) const PLAN_TRIES: usize = 3;

/// Directories of one session whose places are remembered: some hundred kilobytes.
pub(crate) const REMEMBERED_PLACES: usize = 4_096;

/// Names tried for what a command has put in the place of a protected link.
pub(crate) const UNDONE_NAMES: usize = 1_000;

/// What all processes of a command may have in memory together, in parts of four of what the machine has: with
/// less, large builds fail; with more, the editor is swapped out first.
pub(crate) const COMMAND_MEMORY_QUARTERS: u64 = 3;

/// Rules of the reduced level for what may be read beside hidden paths: the entries of a crowded home fit.
pub(crate) const HIDING_RULES: usize = 16_384;

/// `true` in a sandbox takes milliseconds; a machine that is this slow has none.
pub(crate) const PROBE_TIME: Duration = Duration::from_secs(5);

/// How many files a note about lost writes names.
pub(crate) const LOST_WRITE_NAMES: usize = 3;
