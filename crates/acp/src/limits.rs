//! Sizes of the wire, each with its reason.

/// The longest update we send if we can split or cut it: some clients read lines into 64 KiB buffers.
pub const LINE_BYTES: usize = 48 * 1024;

/// How much of a line the frame around a piece of text may take: ids, keys and the notification.
pub const ENVELOPE_BYTES: usize = 2 * 1024;

/// Text up to this size fits a line even if every byte becomes a six-byte escape; for most deltas the check
/// ends here.
pub const SURELY_FITS_BYTES: usize = (LINE_BYTES - ENVELOPE_BYTES) / 6;

/// The smallest piece of a text, however much else the line holds: an address of 48 KiB must not split a text
/// without end.
pub const SMALLEST_PIECE_BYTES: usize = 4 * 1024;

/// Largest attachment once decoded; the base64 of it still fits the line cap of the peer.
pub const ATTACHMENT_BYTES: usize = 20 * 1024 * 1024;

/// Arguments up to this size are offered as a form: nobody edits more in one, and forms are sent whole.
pub const FORM_ARGUMENT_BYTES: usize = 16 * 1024;

/// How often a form of arguments is put until all of it can be read.
pub const FORM_TRIES: usize = 5;

/// Longest session, method or option id we look at: an error may repeat 200 bytes of input, and ours are 30.
pub const ID_BYTES: usize = 200;

/// The longest id a client may make for its message.
pub const MESSAGE_ID_BYTES: usize = 128;

/// The longest media type; real ones are far shorter, and it becomes part of a data url.
pub const MEDIA_TYPE_BYTES: usize = 128;

/// Bytes of a value that an error repeats, so that path and reason fit beside it.
pub const QUOTED_BYTES: usize = 60;

/// Sessions on one page of session/list.
pub const SESSIONS_PER_PAGE: usize = 50;

/// A run of blanks this long could push the rest of a command out of sight, so we show a count instead.
pub const BLANK_RUN: usize = 40;

/// The same limit for empty lines.
pub const EMPTY_LINE_RUN: usize = 4;

/// How many bytes of updates we collect before passing them to the peer: enough to make passing cheap.
pub const BATCH_BYTES: usize = 64 * 1024;

/// Items of a runtime context: an editor has a few facts to tell, and each adds a frame.
pub const RUNTIME_CONTEXT_ITEMS: usize = 64;

/// Bytes of a runtime context, titles included. We hold it in memory while its prompt waits, and a thousand may
/// wait.
pub const RUNTIME_CONTEXT_BYTES: usize = 256 * 1024;

/// How long an answer in progress may delay the next turn's updates.
pub const ANSWER_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Pause after a failed read of the log.
pub const READ_RETRY: std::time::Duration = std::time::Duration::from_millis(100);

/// After this many failures in a row a forwarder stops waiting for the log: 5 s, longer than any process holds
/// the lock.
pub const READ_RETRIES: u32 = 50;

/// How long a client may take for a text: an editor has it in memory, and a person who reviews an edit saw it
/// earlier in the permission request.
pub const FS_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

/// The same for a terminal, except waiting for its command to end.
pub const TERMINAL_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

/// How many requests about texts in a row a client may leave unanswered before we stop asking: each costs ten
/// seconds.
pub const SILENCES: u32 = 3;

/// How many characters of a client's own error message the model reads.
pub const REFUSAL_CHARS: usize = 300;

/// Characters of one typed answer to a question; longer text belongs in a prompt or a file.
pub const SAID_CHARS: usize = 20_000;

/// Characters of an event of an agent that runs elsewhere: we show it as one line.
pub(crate) const EVENT_CHARACTERS: usize = 300;
