//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// How long a client may cache our list of tools: it changes with the program only.
pub(crate) const LIST_LIFE: Duration = Duration::from_secs(60 * 60);

/// Asks whose clients have to come back with an answer, and how long that may take: a person has to find the
/// form.
pub(crate) const PARKED_ASKS: usize = 32;
pub(crate) const PARKED_TIME: Duration = Duration::from_secs(30 * 60);

/// Longest message of a client: a prompt with some files in it. What is longer is refused.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Requests of one client under way at once; each may be a whole turn of a model.
pub const REQUESTS: usize = 32;

/// What a client gets of an answer: far more than any model writes. The session has all of it.
pub(crate) const ANSWER_BYTES: usize = 256 * 1024;

/// Of one line about what the agent does.
pub(crate) const LINE_CHARACTERS: usize = 200;

/// Calls of a turn whose titles are kept: only those that run are looked up again.
pub(crate) const KNOWN_CALLS: usize = 256;

/// Denied calls that are listed; further ones have the same reasons.
pub(crate) const DENIALS: usize = 50;

/// Of what a call would do, in the question about it.
pub(crate) const QUESTION_CHARACTERS: usize = 4_000;

/// Of a person's answer to a question of the agent.
pub(crate) const SAID_CHARACTERS: usize = 16_000;

/// Hits of a search: one screen, and more than is read to its end.
pub(crate) const HITS: usize = 10;
pub(crate) const HITS_MOST: usize = 50;

/// Messages of a page of a session, as long as they fit into its bytes.
pub(crate) const MESSAGES: usize = 20;
pub(crate) const MESSAGES_MOST: usize = 200;

/// Of one page of a session: a good part of a small model's window. The last message may go beyond it.
pub(crate) const PAGE_BYTES: usize = 64 * 1024;

/// Of one message in it, so that one long answer does not hide the others.
pub(crate) const MESSAGE_TEXT_BYTES: usize = 16 * 1024;

/// Rows fetched at a time.
pub(crate) const ROWS_BYTES: usize = 256 * 1024;

/// Conversations over HTTP at once: each has a handful of tasks and buffers.
pub(crate) const CONVERSATIONS: usize = 32;

/// A conversation over HTTP that was idle for so long is over; a client that is still there begins anew.
pub(crate) const IDLE: Duration = Duration::from_secs(30 * 60);

/// How long an answer over HTTP is waited for before it is sent as a stream: most are there by then.
pub(crate) const ANSWER_AT_ONCE: Duration = Duration::from_millis(300);

/// How long our hello over HTTP may take: its head names the conversation, so it is waited for.
pub(crate) const HELLO: Duration = Duration::from_secs(60);

/// Messages of a client over HTTP that wait to be read.
pub(crate) const INCOMING: usize = 4;

/// Lines about progress that wait for a client that does not read; the next ones are left out.
pub(crate) const UNREAD_LINES: usize = 64;

/// Unread bytes above which no more lines about progress are sent; a quarter of what a connection holds.
pub(crate) const UNREAD_BYTES: usize = 256 * 1024;

/// Random bytes in the name of a conversation over HTTP.
pub(crate) const NAME_BYTES: usize = 16;
