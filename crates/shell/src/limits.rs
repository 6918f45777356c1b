//! Every size and time limit of this crate, with its reason.

use std::time::Duration;

/// The longest command text that we take apart; people do not read more before they agree.
pub(crate) const SHELL_BYTES: usize = 64 * 1024;

/// How long the grammar may parse it. Ordinary commands take microseconds; this stops hostile ones.
pub(crate) const SHELL_PARSE_TIME: Duration = Duration::from_millis(500);

/// Depth of nested structures in one command, and of texts within texts (functions, `eval`, `sh -c`): far more
/// than people write, far less than the stack can take.
pub(crate) const SHELL_NESTING: usize = 100;
pub(crate) const SHELL_TEXTS: usize = 8;

/// Simple commands that we follow in one reading, counting repeated ones again.
pub(crate) const SHELL_STEPS: usize = 2_000;

/// Touches of one command; we compare them with each other.
pub(crate) const SHELL_ACCESSES: usize = 256;

/// How many files that rules keep from being read we list, of those a command would come across.
pub(crate) const SHELL_CLOSED: usize = 16;

/// The kernel's own limit for a path; a longer name cannot be opened.
pub(crate) const SHELL_PATH_BYTES: usize = 4_096;

/// How many entries of a tree we check for private keys and links before a command searches it or matches a
/// pattern there: takes some milliseconds, and covers the top of every repository.
pub(crate) const SHELL_LOOK: usize = 4_096;

/// How many directories a shell may be in at one point before we say that it may be anywhere.
pub(crate) const SHELL_DIRECTORIES: usize = 8;

/// How many words one pair of braces or one list of a `for` may produce before we stop following them one by
/// one.
pub(crate) const SHELL_ALTERNATIVES: usize = 64;

/// Rounds of a loop; values that still change after them count as unknown.
pub(crate) const SHELL_ROUNDS: usize = 3;
