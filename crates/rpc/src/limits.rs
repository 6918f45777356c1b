//! Every size and time this crate holds itself to, with its reason. Settings a caller may change are in
//! `Options`.

use std::time::Duration;

/// Longest accepted line: a prompt with a 20 MiB attachment in base64 (27 MiB) fits, with room for the rest.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Requests of the other side being worked on at once; far beyond any editor, small enough to hold.
pub const MAX_IN_FLIGHT: usize = 1024;

/// Lines accepted by `send_lines` but not yet written. Senders wait above it, so a stalled reader costs this
/// much.
pub const QUEUE_BYTES: usize = 1024 * 1024;

/// Answers and cancellations never wait for the queue; once this much of them is unread, we stop reading
/// requests.
pub const REPLY_RESERVE_BYTES: usize = 1024 * 1024;

/// How long nothing may come once the output is broken, before the other side counts as silent: what it wrote
/// before it was gone lies in a pipe or a socket and needs no time.
pub const LAST_MESSAGE: Duration = Duration::from_millis(250);

/// How long reading goes on at most once the output is broken: an input that stays open must not hold the end
/// up.
pub const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// One read. The size of a pipe on Linux: a larger buffer would not be filled.
pub const READ_CHUNK_BYTES: usize = 64 * 1024;

/// One write. Large enough to make the system call's price vanish, small enough to free queue room often.
pub const WRITE_CHUNK_BYTES: usize = 256 * 1024;

/// Capacity a buffer may keep while it is idle; what a burst needed beyond it is given back.
pub const KEEP_BUFFER_BYTES: usize = 256 * 1024;

/// Lines from here on are moved, not copied, out of the framing buffer, so that a line exists once in memory.
pub const LARGE_LINE_BYTES: usize = 256 * 1024;

/// A growing line doubles its buffer up to here and grows eightfold beyond: few moves, pages untouched until
/// used.
pub const DOUBLE_UNTIL_BYTES: usize = 1024 * 1024;

/// Bytes of the other side's input an error may repeat.
pub const MAX_ECHO_BYTES: usize = 200;

/// Messages of our own making (provider errors among them) are cut here, below what clients read as one line.
pub const MAX_ERROR_MESSAGE_BYTES: usize = 16 * 1024;

/// Nesting accepted in a line: the parameters, one level down, are then always within what serde_json decodes.
pub const MAX_DEPTH: usize = 128;

/// Longest accepted request id; ids are held for each request in flight and echoed whole.
pub const MAX_ID_BYTES: usize = 4096;

/// Traffic waiting for the trace's thread. Above it traffic is left out of the trace, never delayed.
pub const TRACE_QUEUE_BYTES: usize = 8 * 1024 * 1024;

/// A traced line longer than this is written as several records, so that the trace never holds a whole long
/// line.
pub const TRACE_RECORD_BYTES: usize = 1024 * 1024;

/// Bytes between a blocking standard stream and its async side; one write's worth.
pub const STDIO_BUFFER_BYTES: usize = 256 * 1024;
