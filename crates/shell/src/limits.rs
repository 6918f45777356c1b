//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// Text of a command that is taken apart; people do not read more before they say yes.
pub(crate) const SHELL_BYTES: usize = 64 * 1024;

/// How long the grammar may take over it. Ordinary commands take microseconds; this ends hostile ones.
pub(crate) const SHELL_PARSE_TIME: Duration = Duration::from_millis(500);

/// Nested structures of one command, and texts within texts (functions, `eval`, `sh -c`): far above what people
/// write, far below the end of a stack.
pub(crate) const SHELL_NESTING: usize = 100;
pub(crate) const SHELL_TEXTS: usize = 8;

/// Simple commands followed in one reading, repeated ones counted again.
pub(crate) const SHELL_STEPS: usize = 2_000;

/// Accesses of one command; they are compared with each other.
pub(crate) const SHELL_ACCESSES: usize = 256;

/// Files that a command would come across and that rules keep from being read, before one knows enough.
pub(crate) const SHELL_CLOSED: usize = 16;

/// No longer name can be opened: the kernel's own bound for a path.
pub(crate) const SHELL_PATH_BYTES: usize = 4_096;

/// Entries of a tree that are looked at for private keys and links before a command searches it or fits a
/// pattern there: some milliseconds, and the top of every repository.
pub(crate) const SHELL_LOOK: usize = 4_096;

/// Places a shell may be in at one point before we say that it may be anywhere.
pub(crate) const SHELL_DIRECTORIES: usize = 8;

/// Words one pair of braces or one list of a `for` may become before they are not followed one by one.
pub(crate) const SHELL_ALTERNATIVES: usize = 64;

/// Rounds of a loop after which what still changes is given up.
pub(crate) const SHELL_ROUNDS: usize = 3;
