//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// ACP connections at once. Each costs a few tasks and less than 100 KB while it is silent.
pub const CONNECTIONS: usize = 4_096;

/// Sockets at once: each connection over HTTP has a few streams and sends beside them.
pub const SOCKETS: usize = 16_384;

/// Before somebody who has too many connections should try another: people close editors, they don't blink.
pub(crate) const CONNECTION_RETRY: Duration = Duration::from_secs(5);

/// Callers whose use is remembered before those that use nothing are forgotten.
pub(crate) const CALLERS: usize = 4_096;

/// How long a WebSocket that has sent too much is left unread at a time, so that its pongs are heard between.
pub(crate) const UNREAD_TIME: Duration = Duration::from_secs(15);

/// StreamLayout of sessions that one connection may have open.
pub const SESSION_STREAMS: usize = 256;

/// Of a connection's id: 128 bits can't be guessed.
pub(crate) const ID_BYTES: usize = 16;

/// Longest session id that is looked at; ours have 30 bytes.
pub(crate) const SESSION_ID_BYTES: usize = 200;

/// How long a connection without a socket or stream is kept for its client to come back.
pub const RESUME_TIME: Duration = Duration::from_secs(5 * 60);

/// What was sent is kept so far for a client whose connection was cut: more than lies between us and it, which
/// is what the sockets of both sides and a proxy hold.
pub const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// An event counts as arrived when its stream is still read after this time.
pub(crate) const KEPT_TIME: Duration = Duration::from_secs(60);

/// Unread updates of one session above which the session's own place in the log waits.
pub(crate) const SESSION_UNREAD_BYTES: usize = 64 * 1024;

/// Unread messages of a WebSocket above which its connection waits: there is one stream, so no other could go
/// on.
pub(crate) const SOCKET_UNREAD_BYTES: usize = 256 * 1024;

/// The same over HTTP, where one stream that nobody reads must not hold up the others: all that updates can
/// fill, and answers beside them.
pub(crate) const HTTP_UNREAD_BYTES: usize = 48 * 1024 * 1024;

/// What a message costs beside its bytes.
pub(crate) const MESSAGE_OVERHEAD: usize = 96;

/// One piece of a stream of events, and of what a WebSocket is given at once.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Messages of a client that wait for the reader of its connection; it waits for nothing but its own answers.
pub(crate) const INCOMING: usize = 16;

/// Bodies that are read at the same moment, over all connections.
pub(crate) const BODY_BYTES: usize = 128 * 1024 * 1024;

/// How long the answer to `initialize` may take; it waits for nothing.
pub(crate) const HELLO_TIME: Duration = Duration::from_secs(30);

/// How long a connection may take to accept one more message.
pub(crate) const ACCEPT_TIME: Duration = Duration::from_secs(60);

/// How often a client over a WebSocket is asked whether it is there, and how long it may leave that unanswered.
pub const PING_TIME: Duration = Duration::from_secs(20);
pub const PONG_TIME: Duration = Duration::from_secs(60);

/// How long a former carrier of a connection may take to let go of it.
pub(crate) const LET_GO_TIME: Duration = Duration::from_secs(5);

/// How long the last messages of a connection may take to leave.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long all clients together may take to take what there was for them when the server ends.
pub(crate) const END_TIME: Duration = Duration::from_secs(3);

/// How long a connection may take to take in what its client wrote before it left.
pub(crate) const LAST_READ: Duration = Duration::from_secs(2);

/// How long messages that are on their way in hold up the end that their client asks for on another socket.
pub(crate) const ARRIVAL_TIME: Duration = Duration::from_secs(1);

/// How long the bridge goes on for an editor that has left: what it said has to reach the server, and what it
/// asked wants an answer. It is gone within the 3 s that editors wait before they kill.
pub(crate) const LEAVE_TIME: Duration = Duration::from_millis(2_500);

/// How much of it is for answers; what is left is for the goodbye.
pub(crate) const ANSWERS_TIME: Duration = Duration::from_millis(1_400);

/// How long an editor that has left may take to take its last answers, as without a server between.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// How long nothing may come from an editor that is about to be left before it has said everything.
pub(crate) const LAST_LINE: Duration = Duration::from_millis(50);

/// How long a WebSocket may take to take its farewell.
pub(crate) const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// Longest message of a server that a client takes: a line as long as it may be on a pipe, and the number in
/// front of it. Whatever a server announces is held in memory, and it may be a stranger's.
pub(crate) const SERVER_MESSAGE_BYTES: usize = attache_rpc::limits::MAX_LINE_BYTES + 1024;

/// How long a server may take to answer a handshake.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Pauses before a lost server is tried again; the last one repeats.
pub(crate) const RETRY_PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// After this time the editor is told that the server is away: a silent prompt looks hung.
pub const GIVE_UP_TIME: Duration = Duration::from_secs(30);

/// Messages of the editor that the server has not confirmed, above which the next ones wait.
pub(crate) const UNCONFIRMED_BYTES: usize = 64 * 1024 * 1024;

/// Longest body of a webhook: what forges send about one event.
pub(crate) const HOOK_BODY_BYTES: usize = 1024 * 1024;

/// Such bodies at the same moment: whoever sends them has shown nothing yet.
pub(crate) const HOOK_BODIES: usize = 16;

/// Of them, those that come from one address: a forge sends one event after the other.
pub(crate) const HOOK_BODIES_PER_ADDRESS: usize = 4;

/// How long such a body may take: a place is held meanwhile, and forges are not slow.
pub(crate) const HOOK_BODY_TIME: Duration = Duration::from_secs(10);

/// Longest prompt that a template is filled to.
pub(crate) const HOOK_PROMPT_BYTES: usize = 256 * 1024;

/// Shortest secret of a webhook: 128 bits in hexadecimal digits are twice that.
pub const HOOK_SECRET_BYTES: usize = 16;

/// Turns of one webhook at the same time: each costs a model's attention and money.
pub(crate) const HOOK_RUNS: usize = 4;

/// Before a webhook that has all its turns should be called again.
pub(crate) const HOOK_RETRY: Duration = Duration::from_secs(30);

/// Signatures that are remembered until they are too old to be good.
pub(crate) const SIGNATURES: usize = 10_000;

/// How often a schedule looks at the clock: what is set or was asleep is seen within that time.
pub(crate) const SCHEDULE_LOOK: Duration = Duration::from_secs(20);

/// How late a time of a schedule is still kept; a machine that slept for longer has missed it.
pub(crate) const SCHEDULE_LATE: Duration = Duration::from_secs(60);

/// Missed times that are counted one by one.
pub(crate) const MISSED_COUNTED: usize = 1_000;

/// How deep sessions work for sessions that are looked at for their cost; the agent nests less.
pub(crate) const CHILD_DEPTH: usize = 16;

/// Calls of models that who watches their cost may be behind.
pub(crate) const SPENDING_BEHIND: usize = 1_024;
/// Sessions on one page of a list: a few screens.
pub(crate) const LISTED_SESSIONS: usize = 50;

/// Sessions and hits that are looked at for one answer, where most of them are of other places.
pub(crate) const LOOKED_AT_SESSIONS: usize = 500;

/// Hits of a search: nobody reads more.
pub(crate) const SEARCH_HITS: usize = 50;

/// Of the words to look for.
pub(crate) const SEARCH_WORDS_BYTES: usize = 1_000;

/// One page of a conversation: a screen needs a tenth of the usual one, and a page is held in memory.
pub(crate) const LEAST_PAGE_BYTES: usize = 1024;
pub(crate) const USUAL_PAGE_BYTES: usize = 96 * 1024;
pub(crate) const MOST_PAGE_BYTES: usize = 1024 * 1024;

/// Messages of one page of an outline, about 60 bytes each.
pub(crate) const OUTLINE_MESSAGES: usize = 5_000;

/// Turns of one page of a comparison, and lines of one of them.
pub(crate) const COMPARED_TURNS: usize = 20;
pub(crate) const COMPARED_LINES: usize = 2_000;

/// Days of which the sums are given: ten years.
pub(crate) const USAGE_DAYS: usize = 3_660;

/// Pieces of an export that wait for a slow reader.
pub(crate) const EXPORT_PIECES: usize = 4;

/// Exports that are read at once: a slow reader holds a thread.
pub(crate) const EXPORTS: usize = 8;
