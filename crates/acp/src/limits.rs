//! Sizes of the wire, each with its reason.

/// Longest update we send when it can be split or cut: some clients read lines into 64 KiB buffers.
pub const LINE_BYTES: usize = 48 * 1024;

/// What the envelope around a piece of text may take of a line: ids, keys and the notification's frame.
pub const ENVELOPE_BYTES: usize = 2 * 1024;

/// Text up to this size fits a line even if each byte becomes a six-byte escape; most deltas end the check
/// here.
pub const SURELY_FITS_BYTES: usize = (LINE_BYTES - ENVELOPE_BYTES) / 6;

/// No piece of a text is smaller, however much shares its line: an address of 48 KiB must not make a text
/// endless.
pub const SMALLEST_PIECE_BYTES: usize = 4 * 1024;

/// Largest attachment once decoded; the base64 of it still fits the line cap of the peer.
pub const ATTACHMENT_BYTES: usize = 20 * 1024 * 1024;

/// Arguments up to this size are offered as a form: nobody edits more in one, and forms are sent whole.
pub const FORM_ARGUMENT_BYTES: usize = 16 * 1024;

/// How often a form of arguments is put until all of it can be read.
pub const FORM_TRIES: usize = 5;

/// Longest session, method or option id we look at: an error may repeat 200 bytes of input, and ours are 30.
pub const ID_BYTES: usize = 200;

/// Longest id a client may mint for its message.
pub const MESSAGE_ID_BYTES: usize = 128;

/// Longest media type; those in use are far shorter, and it becomes part of a data url.
pub const MEDIA_TYPE_BYTES: usize = 128;

/// Bytes of a value that an error repeats, so that path and reason fit beside it.
pub const QUOTED_BYTES: usize = 60;

/// Sessions on one page of session/list.
pub const SESSIONS_PER_PAGE: usize = 50;

/// A run of blanks this long could push the rest of a command out of sight; it is shown as a count instead.
pub const BLANK_RUN: usize = 40;

/// The same for empty lines.
pub const EMPTY_LINE_RUN: usize = 4;

/// Updates that are collected before they are handed to the peer: large enough to make the hand-over cheap.
pub const BATCH_BYTES: usize = 64 * 1024;

/// Items of a runtime context: an editor has a few facts to tell, and each costs its frame.
pub const RUNTIME_CONTEXT_ITEMS: usize = 64;

/// Bytes of a runtime context, titles included. It is held in memory while its prompt waits, and a thousand may
/// wait.
pub const RUNTIME_CONTEXT_BYTES: usize = 256 * 1024;

/// How long an answer that is on its way may hold up the next turn's updates.
pub const ANSWER_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Pause after the log could not be read.
pub const READ_RETRY: std::time::Duration = std::time::Duration::from_millis(100);

/// After this many failures in a row a forwarder stops waiting for the log: 5 s, longer than any lock is held.
pub const READ_RETRIES: u32 = 50;

/// How long a client may take over a text: an editor has it in memory, and a person who reviews an edit has
/// seen it in the permission request before.
pub const FS_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

/// The same for a terminal, but for the end of its command.
pub const TERMINAL_DEADLINE: std::time::Duration = std::time::Duration::from_secs(10);

/// Requests about texts in a row that a client may leave unanswered. Then it is not asked any more: each costs
/// ten seconds.
pub const SILENCES: u32 = 3;

/// Characters of a client's own error message that reach the model.
pub const REFUSAL_CHARS: usize = 300;

/// Characters of one typed answer to a question; what is longer belongs into a prompt or a file.
pub const SAID_CHARS: usize = 20_000;

/// Characters of an event of an agent that lives elsewhere: it is shown as one line.
pub(crate) const EVENT_CHARACTERS: usize = 300;
