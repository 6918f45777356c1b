//! Sizes, counts and times of the core, each with its reason.

use std::time::Duration;

/// The most model calls per turn if the user sets none: far more than honest work needs, few enough to stop a
/// model that runs in circles soon.
pub const USUAL_STEPS: u32 = 100;

/// How long the scratch directory of an unused session stays: its user may still continue it days later.
pub const SCRATCH_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Chunks that wait for their commit: enough for big group commits, little compared with the promise of 16 MiB
/// per stalled client.
pub(crate) const UNCOMMITTED_BYTES: usize = 256 * 1024;

/// The bytes that a reader may leave unread in memory; beyond them the reader drops its queue and reads the log
/// again.
pub const READER_QUEUE_BYTES: usize = 1024 * 1024;

/// One page of the log or of rows: a few milliseconds of work, small against `READER_QUEUE_BYTES`.
pub const PAGE_BYTES: usize = 256 * 1024;

/// One page of a replay: small, because the next page is read while a client gets this one, but the first page
/// has none before it to read it beside.
pub(crate) const REPLAY_PAGE_BYTES: usize = 64 * 1024;

/// The size at which a text or reasoning part is closed and the next one opened, so that folding stays linear
/// and memory bounded.
pub(crate) const PART_BYTES: usize = 256 * 1024;

/// The least size at which a part is folded into its row before its end; after that it is folded each time it
/// has doubled.
pub(crate) const FOLD_BYTES: usize = 4 * 1024;

/// Parts of a running message that stay in memory; beyond this size finished parts are read back from their
/// rows when a request needs them.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Conversations that all idle sessions together keep for their next turns: one of 10 MB and a few of the usual
/// size. Sessions read the rest from the store again.
pub(crate) const HISTORIES_BYTES: usize = 32 * 1024 * 1024;

/// Bytes per token where nothing was counted: for prose and code the usual tokenizers need between 3 and 5.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of an attached file where nothing was counted: an image of the usual size at the large providers.
pub const FILE_TOKENS: u64 = 1_600;

/// The most tokens of a context that stay free for the answer: more than any answer needs before it is
/// compacted.
pub(crate) const CONTEXT_RESERVE: u64 = 20_000;

/// The percentage of the context at which people are told that it fills up: there is room for a few more turns.
pub(crate) const CONTEXT_WARNED_PERCENT: u64 = 80;

/// Tokens that the instructions of a user and a project may take of every request.
pub(crate) const INSTRUCTION_TOKENS: u64 = 8_000;

/// In a small window instructions may take this fraction (one in N) at most: the rest is for the work.
pub(crate) const INSTRUCTION_WINDOW_SHARE: u64 = 4;

/// Tokens that the index of skills may take of every request: enough for 200 skills with a line each.
pub(crate) const SKILL_INDEX_TOKENS: u64 = 4_000;

/// In a small window the index may take this fraction (one in N) at most.
pub(crate) const SKILL_INDEX_WINDOW_SHARE: u64 = 16;

/// Longest name of a skill or a command: as long as names of tools.
pub(crate) const SKILL_NAME_CHARACTERS: usize = 64;

/// How much of a description lists show: a sentence or two.
pub(crate) const SKILL_DESCRIPTION_CHARACTERS: usize = 200;

/// How many unusable agent files one notice names: as many as people read.
pub(crate) const AGENTS_TOLD: usize = 8;

/// How deep values in front matter may be nested: enough for a schema with some levels of objects.
pub(crate) const FRONT_MATTER_DEPTH: usize = 32;

/// The largest text that a slash command may expand to: a template that repeats the typed text could grow
/// without limit.
pub(crate) const TEMPLATE_EXPANSION_BYTES: usize = 1024 * 1024;

/// How long a first turn waits for skills and commands: enough to read some hundred small files, even from a
/// slow disk.
pub(crate) const KNOWLEDGE_TIME: Duration = Duration::from_secs(2);

/// How long opening a session waits for its list of commands, which takes reading files.
pub(crate) const COMMANDS_WAIT: Duration = Duration::from_millis(500);

/// Up to this many tools of servers are listed in every request; with more, the model searches for them. Each
/// listed tool adds its schema to every request.
pub(crate) const SEARCHED_TOOLS_SHOWN: usize = 20;

/// The most tools that one search returns.
pub(crate) const SEARCHED_TOOLS_FOUND: usize = 10;

/// The most servers that a model is told of by name: more are hardly ever in use, and a project's file must not
/// fill a request.
pub(crate) const SERVERS_NAMED: usize = 20;

/// The most characters of a server's name, or of the reason why it is not available.
pub(crate) const SERVER_WORDS: usize = 200;

/// How long the first prompt waits for servers that are starting: most local ones are ready by then, and a
/// person does not wonder yet.
pub(crate) const SERVERS_WAIT: Duration = Duration::from_secs(2);

/// How long a small model may take for an answer beside the conversation: enough for a slow one to write a
/// page.
pub(crate) const SIDE_ANSWER_TIME: Duration = Duration::from_secs(60);

/// How long the end of a session waits for its servers to exit before it kills them: a host has three seconds
/// in all.
pub(crate) const SERVERS_CLOSE: Duration = Duration::from_millis(500);

/// Tokens of the note that replaces the beginning of a conversation; fewer in a small window.
pub(crate) const SUMMARY_TOKENS: u64 = 4_000;

/// The least size of an old result that becomes a stub when room is needed: a stub for a shorter one saves next
/// to nothing.
pub(crate) const STUBBED_BYTES: u64 = 600;

/// The percentage of the room for a request from which on results older than the last turns become stubs.
pub(crate) const STUBS_PERCENT: u64 = 60;

/// How many pieces of a summary's text may wait for the client that shows them.
pub(crate) const PROGRESS_AHEAD: usize = 64;

/// The most pieces of a conversation that are summarised one after the other; with more, the middle is left
/// out.
pub(crate) const SUMMARY_PIECES: usize = 16;

/// How often a model is asked to summarise one piece.
pub(crate) const SUMMARY_TRIES: usize = 3;

/// One result of a call may take this fraction (one in N) of the model's context: several results have to fit.
pub(crate) const RESULT_SHARE: u64 = 4;

/// The least size of a result that is left out of a request that is too long: a smaller one is not the cause.
pub(crate) const LEFT_OUT_RESULT_BYTES: u64 = 2_000;

/// The most steps of one turn whose results may be left out: a model that needs more has no room to work in.
pub(crate) const LEFT_OUT_STEPS: u32 = 5;

/// How long a turn waits for facts about its workspace: enough to read a file or two.
pub(crate) const LOOK_AROUND: Duration = Duration::from_millis(200);

/// How long a session waits before it asks version control for uncommitted changes. A prompt that comes sooner
/// is from a program, and the question would compete with it for the processor.
pub(crate) const LOOK_LATER: Duration = Duration::from_millis(50);

/// The largest picture of a call that clients get as data: in base64 it still fits a line beside its path.
/// Clients get a link to a larger one.
pub(crate) const SHOWN_PICTURE_BYTES: usize = 24 * 1024;

/// The largest attachment that stays in its row; the blob store keeps larger ones.
pub(crate) const INLINE_ATTACHMENT_BYTES: usize = 1024 * 1024;

/// How long an aborted tool may take to clean up: TERM, two seconds, KILL, and a little for the way back.
pub(crate) const TOOL_ABORT: Duration = Duration::from_millis(2_400);

/// How long a cancelled call that only reads may take to end: it leaves nothing behind, and the user waits.
pub(crate) const READ_ABORT: Duration = Duration::from_millis(200);

/// How much is kept of a provider's reason for refusing an attachment.
pub(crate) const REJECTION_CHARACTERS: usize = 200;

/// How long a hook may take if its configuration does not say: enough for formatters, linters and quick tests.
pub const HOOK_TIME: Duration = Duration::from_secs(60);

/// The longest time that a hook can be given: a person waits for it.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(600);

/// How long a cancelled turn waits until its hook is killed: the whole cancellation has to take less than half
/// a second.
pub(crate) const HOOK_ABORT: Duration = Duration::from_millis(400);

/// How often hooks may make one turn continue: a hook that is never content must not keep it running for ever.
pub(crate) const HOOK_CONTINUATIONS: u32 = 5;

/// The most that a hook may say to the model or to people at once: a page of a linter's complaints.
pub(crate) const HOOK_WORD_BYTES: usize = 8 * 1024;

/// The largest text of a call that a hook's input holds: larger ones are files, which the hook can read itself.
pub(crate) const HOOK_INPUT_BYTES: usize = 1024 * 1024;

/// Tries of one model call, the first included.
pub(crate) const MODEL_TRIES: u32 = 5;

/// First pause between two tries; doubles each time.
pub const RETRY_BASE: Duration = Duration::from_millis(500);

/// The longest pause a provider may ask for, because the user is watching: beyond it the turn fails and says
/// when to come back.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// The most that is added at random to a pause; a quarter of the pause if that is less.
pub(crate) const JITTER_MAX: Duration = Duration::from_secs(1);

/// How many chunks an answer may have and still count as silent: they only open parts. More of them count as an
/// answer.
pub(crate) const SILENT_CHUNKS: usize = 16;

/// Model calls per turn if nothing is configured.
pub const MAX_STEPS: u32 = 100;

/// How many model calls of a turn are left when the model is told so: enough for a last test and a closing
/// text.
pub const STEPS_LEFT_WARNED: u32 = 3;

/// After the same call this often in a row, the model is told so.
pub(crate) const REPEATS_WARNED: u32 = 3;

/// After the same call this often in a row, the turn ends.
pub(crate) const REPEATS_STOPPED: u32 = 10;

/// How much the model is told of why its last turn failed: a provider may send a page.
pub const END_CHARACTERS: usize = 300;

/// Longest title of a session: it fits a line of a list.
pub const TITLE_CHARACTERS: usize = 80;

/// How much of the prompt and of the answer a title is made from: so little that it costs next to nothing.
pub(crate) const TITLE_EXCERPT_BYTES: usize = 2 * 1024;

/// How much is kept of a model's answer to the request for a title; some models think aloud before they give
/// it.
pub(crate) const TITLE_ANSWER_BYTES: usize = 8 * 1024;

/// How long the request for a title may take: no turn waits for it, and a model that takes longer is not small.
pub(crate) const TITLE_TIME: Duration = Duration::from_secs(60);

/// How many sessions an unknown id is compared with, the latest first: one page of a store; the user does not
/// mean older ones.
pub(crate) const SESSIONS_COMPARED: usize = 200;

/// The most messages in one session's queue; a further prompt is refused.
pub(crate) const QUEUED_MESSAGES: usize = 1_000;

/// How often a session is opened again because it was closed at the same moment; more than once is rare, three
/// times is a fault.
pub(crate) const OPEN_TRIES: u32 = 3;

/// How many events a slow subscriber may fall behind before it loses the oldest. Memory for all of them is
/// reserved from the start.
pub(crate) const EVENTS_BEHIND: usize = 256;

/// First pause before attache tries by itself to repair a session whose store failed; doubles each time.
pub(crate) const MEND_BASE: Duration = Duration::from_secs(1);

/// The longest pause between two such tries: a disk that has room again should be noticed within half a minute.
pub(crate) const MEND_MAX: Duration = Duration::from_secs(30);

/// How much is kept of what a person says about a call that they reject: a longer text belongs into a prompt.
pub(crate) const REJECTION_CHARS: usize = 2_000;

/// How often a host that wants to end checks whether turns still run: too short a time for a person to notice.
pub(crate) const REST_LOOK: Duration = Duration::from_millis(50);

/// How long `shutdown` waits for runs to settle: the process has to be gone 3 s after its editor.
pub(crate) const SHUTDOWN: Duration = Duration::from_millis(2_700);

/// Longest pattern of a user's rule: no command or path worth a rule is longer.
pub(crate) const RULE_CHARACTERS: usize = 1_024;

/// How much of a command a refusal quotes.
pub(crate) const REFUSED_COMMAND_CHARACTERS: usize = 100;

/// How much of the reason the title shows for a call that was not understood.
pub(crate) const CALL_TITLE_CHARACTERS: usize = 120;

/// How much of a long line the name of an "always" option shows: few editors show more.
pub(crate) const ALWAYS_NAME_CHARACTERS: usize = 100;

/// The most readings of where a command's own words begin after its options: more options than people write
/// before them.
pub(crate) const COMMAND_READINGS: usize = 16;

/// The most rules that one "always" answer may make: the name of an option can't show more.
pub(crate) const ALWAYS_RULES: usize = 8;

/// The most rewinds of one session that can be undone one after the other: no user remembers more, and the
/// session's row keeps them.
pub const REWINDS_KEPT: usize = 64;

/// How many prompts `/rewind` and `/fork` list: as many as fit a screen.
pub(crate) const PROMPTS_LISTED: usize = 10;

/// How much of a prompt such a list shows.
pub(crate) const LISTED_PROMPT_CHARACTERS: usize = 80;

/// How many messages are searched for a prompt that is no command: only a script has so many commands in a row.
pub(crate) const PROMPTS_LOOKED_AT: usize = 200;

/// Largest content that is kept before a call changes it: larger files are data that another program makes, and
/// copying one takes longer than changing it.
pub(crate) const SNAPSHOT_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of all contents kept for one session: months of edits to source code, and no more than a browser's
/// cache.
pub(crate) const SNAPSHOT_SESSION_BYTES: u64 = 256 * 1024 * 1024;

/// How long contents are kept after the session last kept one: a user who comes back later finds other files
/// anyway.
pub(crate) const SNAPSHOT_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How much of one part can be searched for: more than a person writes or a model says at a time. The rest is a
/// pasted file, and indexing it would delay the commit of its message by milliseconds.
pub(crate) const SEARCHED_PART_BYTES: usize = 64 * 1024;

/// How much of a call's result can be searched for: its first lines say what it is about. With all of it, the
/// index would be as large as every file that was ever read.
pub(crate) const SEARCHED_OUTPUT_BYTES: usize = 2 * 1024;

/// Longest line of an imported file: an attachment of the largest message that a client can send, in base64.
pub(crate) const IMPORT_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Longest id of a session: ours have 30 characters. It becomes the name of a directory, for which file systems
/// allow 255 bytes, and each character may be written as three.
pub(crate) const SESSION_ID_BYTES: usize = 64;

/// Longest id of a message or a part in an imported file: as long as a client may make its own.
pub(crate) const IMPORTED_ID_BYTES: usize = 4096;

/// Largest imported file: it is in memory until the one commit that stores it.
pub(crate) const IMPORT_BYTES: u64 = 512 * 1024 * 1024;

/// Largest export that `/export` makes: it is in memory until it is written. The command line makes larger
/// ones, page by page.
pub(crate) const EXPORTED_BYTES: usize = 64 * 1024 * 1024;

/// How deep tasks may be nested: no user can follow a sixth level, and a model that delegates all its work
/// would never end.
pub(crate) const TASK_DEPTH: usize = 5;

/// The most children of one session that work at once: with many more streams, providers slow down or refuse.
pub(crate) const TASKS_AT_ONCE: usize = 8;

/// How long a rewind waits for the background tasks that it ends: a cancellation takes less than half a second.
pub const TASK_REST: Duration = Duration::from_secs(1);

/// How often the rewind checks whether they have ended.
pub const TASK_LOOK: Duration = Duration::from_millis(5);

/// How much a task returns to the model: the report of a subagent that was told to be brief. Its own session
/// has all of it.
pub(crate) const TASK_RESULT_BYTES: usize = 32 * 1024;

/// How much of a nested child's transcript a client gets.
pub(crate) const NESTED_TRANSCRIPT_BYTES: usize = 24 * 1024;

/// How many calls of a child its parent's call shows while it runs: as many as fit a screen.
pub(crate) const TASK_CALLS_SHOWN: usize = 8;

/// How many denied calls a child's result lists: a script counts them, and people read no more.
pub const TASK_DENIED_SHOWN: usize = 20;

/// How often the view of a running child is updated: as fast as people read, at a small cost in the journal.
pub(crate) const TASK_VIEW: Duration = Duration::from_millis(250);

/// How often a child is told that its last message does not fit its schema.
pub const SCHEMA_RETRIES: usize = 2;

/// How many schema mistakes are reported at once: a model that makes more corrects these first.
pub(crate) const SCHEMA_MISTAKES: usize = 10;

/// How deep a JSON Schema may be nested: the check is recursive, and no model's answer needs more.
pub const SCHEMA_DEPTH: usize = 64;

/// The most of one text that a span holds: more than most tools return, and far less than collectors accept in
/// one request. Every call of a model sends the whole conversation again, so this also bounds what a call adds.
pub(crate) const SPAN_CONTENT_BYTES: usize = 64 * 1024;

/// How long session/new waits for an agent that has modes of its own: clients are told once which there are.
/// One that takes longer shows them as an option.
pub const OWN_MODES_TIME: std::time::Duration = std::time::Duration::from_secs(5);
