//! Limits of the screen, each with its reason.

use std::time::Duration;

/// Combining marks on one sign: no script needs more, and towers of them cover other lines.
pub(crate) const MARKS_PER_SIGN: usize = 8;

/// Eyes see no more, and a fast model sends thousands of deltas in a second.
pub(crate) const FRAME: Duration = Duration::from_millis(16);

/// An answer without a blank line is given to the scrollback in pieces of this size, so that what is laid out
/// again with each frame stays small.
pub(crate) const OPEN_BLOCK_BYTES: usize = 8 * 1024;

/// Below this a table is shown row by row; wider ones give their longest column away first.
pub(crate) const CELL_LEAST: usize = 4;

/// Lines of a running command's output that are shown live.
pub(crate) const OUTPUT_TAIL: usize = 5;

/// Lines of a finished call that are shown with it; the rest is one key away.
pub(crate) const RESULT_LINES: usize = 4;

/// Lines of one diff in the conversation; the rest is one key away.
pub(crate) const DIFF_LINES: usize = 60;

/// Words are compared within lines up to this long; longer ones are data.
pub(crate) const WORD_DIFF_BYTES: usize = 2_000;

/// A diff that takes longer is shown as all removed, all added.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(50);

/// Finished calls and thoughts whose details can be looked at again.
pub(crate) const DETAILS_KEPT: usize = 100;

/// Bytes of one of them.
pub(crate) const DETAIL_BYTES: usize = 64 * 1024;

/// Things that a call which does not end holds back from the scrollback.
pub(crate) const LIVE_LINES: usize = 50;

/// Lines of the plan above the composer.
pub(crate) const PLAN_LINES: usize = 8;

/// Prompts that wait and are shown.
pub(crate) const WAITING_LINES: usize = 3;

/// How long a hint stays in the place of the line of facts.
pub(crate) const HINT_TIME: Duration = Duration::from_secs(4);

/// Whoever waited longer for a turn looks elsewhere by then and is called.
pub(crate) const LONG_TURN: Duration = Duration::from_secs(10);

/// Prompts of this conversation that a rewind offers.
pub(crate) const REWINDS_KEPT: usize = 200;

/// Prompts of a workspace that the history keeps.
pub(crate) const HISTORY_ENTRIES: usize = 500;

/// Bytes of one of them; longer ones are attachments and not typed again.
pub(crate) const HISTORY_ENTRY_BYTES: usize = 16 * 1024;

/// A pasted text of more lines or bytes becomes an attachment: it would push everything else off the screen.
pub(crate) const PASTE_LINES: usize = 12;
pub(crate) const PASTE_BYTES: usize = 2_000;

/// A larger one is refused, as the agent refuses blocks of that size.
pub(crate) const PASTE_MOST: usize = 20 * 1024 * 1024;

/// Files that `@` completes; the user is told when a larger tree is cut.
pub(crate) const FILES_KNOWN: usize = 500_000;

/// Of these, how many a search for `@` looks at before keys are taken and a frame may be drawn again: about a
/// millisecond.
pub(crate) const FILES_AT_ONCE: usize = 10_000;

/// Completions on the screen.
pub(crate) const COMPLETIONS: usize = 8;

/// Lines of the composer on the screen.
pub(crate) const COMPOSER_LINES: usize = 10;

/// Keys within this time after the last one typed into the composer do not answer a dialog that has just
/// opened.
pub(crate) const TYPING: Duration = Duration::from_millis(600);

/// A second Escape within this time opens the rewind picker, a second Ctrl-C leaves.
pub(crate) const TWICE: Duration = Duration::from_millis(1500);

/// One turn of the sign that says that something is going on.
pub(crate) const SPINNER: Duration = Duration::from_millis(120);

/// Events of the agent that one frame takes in: a flood of them must not keep keys waiting.
pub(crate) const EVENTS_PER_FRAME: usize = 256;

/// An agent that lived for less is broken, and starting it again would go on for ever.
pub(crate) const RESTART_LEAST: Duration = Duration::from_secs(2);

/// The largest text that is taken back from an editor.
pub(crate) const EDITED_BYTES: u64 = 1024 * 1024;

/// Titles of sessions that `@` offers at once: files are what is meant most often.
pub(crate) const SESSIONS_OFFERED: usize = 3;

/// Characters of a title by which a session is mentioned: it is part of the line that is typed.
pub(crate) const SESSION_TITLE_CHARS: usize = 60;

/// Bytes that a mentioned session adds to a prompt: its end, which people usually come back to.
pub(crate) const SESSION_BYTES: usize = 128 * 1024;

/// Bytes that are kept of the output of a user's own command: its beginning and its end.
pub(crate) const OWN_OUTPUT_BYTES: usize = 64 * 1024;

/// How long a program that reads the clipboard may take.
pub(crate) const CLIPBOARD_TIME: Duration = Duration::from_secs(3);

/// Lines of a command of the user's own: whoever types it wants to read what it says.
pub(crate) const OWN_LINES: usize = 40;

/// Changes of one prompt that the `u` of vi takes back.
pub(crate) const VI_UNDOS: usize = 50;

/// Rows of a picture in the conversation: enough to see what it is.
pub(crate) const DRAWING_ROWS: usize = 12;

/// Base64 of a picture that is drawn: it goes through the terminal's own parser.
pub(crate) const DRAWING_BYTES: usize = 8 * 1024 * 1024;

/// A picture that is decoded to be drawn: its sides, and what decoding may take.
pub(crate) const DECODED_SIDE: u32 = 8_192;
pub(crate) const DECODED_BYTES: u64 = 64 * 1024 * 1024;

/// Whoever typed a moment ago types on: until then keys are looked for by themselves, since the stream of keys
/// may miss the wake of those that come together with a change of size.
pub(crate) const TYPED_LATELY: Duration = Duration::from_secs(3);
pub(crate) const LOOK_FOR_KEYS: Duration = Duration::from_millis(100);
