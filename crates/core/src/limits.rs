//! Sizes, counts and times of the core, each with its reason.

use std::time::Duration;

/// Model calls per turn where nobody says how many: far beyond honest work, soon enough for a model that runs
/// in circles.
pub const USUAL_STEPS: u32 = 100;

/// How long the scratch directory of an unused session stays: days later its user may still go on with it.
pub const SCRATCH_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Chunks that wait for their commit: large enough for big group commits, small against the memory promise of
/// 16 MiB per stalled client.
pub(crate) const UNCOMMITTED_BYTES: usize = 256 * 1024;

/// What a reader may leave unread in memory; beyond it the queue is dropped and re-read from the log.
pub const READER_QUEUE_BYTES: usize = 1024 * 1024;

/// One page of the log or of rows: a few milliseconds of work, small against `READER_QUEUE_BYTES`.
pub const PAGE_BYTES: usize = 256 * 1024;

/// One page of a replay: small, because the next one is read while it is shown, and the first can't be
/// read beside another.
pub(crate) const REPLAY_PAGE_BYTES: usize = 64 * 1024;

/// A text or reasoning part is closed at this size and the next one opened, so that folding stays linear and
/// memory bounded.
pub(crate) const PART_BYTES: usize = 256 * 1024;

/// A part is folded into its row before its end only when it has doubled since the last time and is at least
/// this large.
pub(crate) const FOLD_BYTES: usize = 4 * 1024;

/// Parts of a running message that stay in memory; beyond it finished ones are read back from their rows when a
/// request needs them.
pub const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Conversations that all idle sessions together keep for their next turns: one of 10 MB and a few of the usual
/// size. What goes beyond is read again from the store.
pub(crate) const HISTORIES_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of text per token that was not counted: prose and code of the usual tokenizers lie between 3 and 5.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of an attached file that were not counted: an image of the usual size with the large providers.
pub const FILE_TOKENS: u64 = 1_600;

/// Tokens of a context that are kept free for the answer, at most: more than any answer needs before it is
/// compacted.
pub(crate) const CONTEXT_RESERVE: u64 = 20_000;

/// Percent of a context at which people are told that it fills up: room for a few more turns.
pub(crate) const CONTEXT_WARNED_PERCENT: u64 = 80;

/// Tokens that the instructions of a user and a project may take of every request.
pub(crate) const INSTRUCTION_TOKENS: u64 = 8_000;

/// At most one part in so many of a small window: the rest is for the work.
pub(crate) const INSTRUCTION_WINDOW_SHARE: u64 = 4;

/// Tokens that the index of skills may take of every request: 200 of them with a line each.
pub(crate) const SKILL_INDEX_TOKENS: u64 = 4_000;

/// At most one part in so many of a small window.
pub(crate) const SKILL_INDEX_WINDOW_SHARE: u64 = 16;

/// What the name of a skill or of a command may have: as long as tools' names.
pub(crate) const SKILL_NAME_CHARACTERS: usize = 64;

/// What lists show of a description: a sentence or two.
pub(crate) const SKILL_DESCRIPTION_CHARACTERS: usize = 200;

/// How many files of agents people are told of that can't be used: what they read in one notice.
pub(crate) const AGENTS_TOLD: usize = 8;

/// How deep values of front matter may lie in each other: a schema with some levels of objects.
pub(crate) const FRONT_MATTER_DEPTH: usize = 32;

/// What a slash command may become for the model. A template that repeats what was typed could grow for ever.
pub(crate) const TEMPLATE_EXPANSION_BYTES: usize = 1024 * 1024;

/// How long a first turn waits for skills and commands: some hundred small files, on a slow disk too.
pub(crate) const KNOWLEDGE_TIME: Duration = Duration::from_secs(2);

/// How long who opened a session waits to be told its commands: files are read for them.
pub(crate) const COMMANDS_WAIT: Duration = Duration::from_millis(500);

/// Tools of servers that are listed in every request; above it they are searched for. Each costs its schema in
/// every request.
pub(crate) const SEARCHED_TOOLS_SHOWN: usize = 20;

/// Tools that one search gives.
pub(crate) const SEARCHED_TOOLS_FOUND: usize = 10;

/// Servers that a model is told of by name; more are not in use, and a project's file must not fill a request.
pub(crate) const SERVERS_NAMED: usize = 20;

/// Characters of a server's name or of the reason why it is not there.
pub(crate) const SERVER_WORDS: usize = 200;

/// How long the first prompt waits for servers that are on their way: most local ones are there by then, and a
/// person does not wonder yet.
pub(crate) const SERVERS_WAIT: Duration = Duration::from_secs(2);

/// How long a small model may take for an answer beside the conversation: a page of text by a slow one.
pub(crate) const SIDE_ANSWER_TIME: Duration = Duration::from_secs(60);

/// How long the end of a session waits for its servers: they are asked first and killed then, and a host has
/// three seconds in all.
pub(crate) const SERVERS_CLOSE: Duration = Duration::from_millis(500);

/// Tokens of the note that takes the place of a conversation's beginning; less in a small window.
pub(crate) const SUMMARY_TOKENS: u64 = 4_000;

/// An old result of at least this size becomes a stub where room is needed: a stub of a shorter one saves
/// next to nothing.
pub(crate) const STUBBED_BYTES: u64 = 600;

/// Percent of what a request may take from which on results older than the last turns become stubs.
pub(crate) const STUBS_PERCENT: u64 = 60;

/// What a summary under way may be ahead of who shows it, in pieces of its text.
pub(crate) const PROGRESS_AHEAD: usize = 64;

/// Pieces of a conversation that are summarised one after the other; beyond it the middle is left out.
pub(crate) const SUMMARY_PIECES: usize = 16;

/// How often a model is asked for one piece.
pub(crate) const SUMMARY_TRIES: usize = 3;

/// The part of a model's context, as its reciprocal, that one result of a call may take: several have to fit.
pub(crate) const RESULT_SHARE: u64 = 4;

/// A result of at least this size is left out of a request that is too long: a smaller one is not to blame.
pub(crate) const LEFT_OUT_RESULT_BYTES: u64 = 2_000;

/// Steps of one turn whose results may be left out. A model that needs more of them has no room to work in.
pub(crate) const LEFT_OUT_STEPS: u32 = 5;

/// How long a turn waits for what the machine says of its workspace: a file or two.
pub(crate) const LOOK_AROUND: Duration = Duration::from_millis(200);

/// How long a session waits before it asks version control what is not committed. A prompt that comes at once
/// is a program's, and the question takes its processor.
pub(crate) const LOOK_LATER: Duration = Duration::from_millis(50);

/// A picture that a call gave and that is shown to clients itself: in base64 it still fits a line beside its
/// path. Larger ones are linked.
pub(crate) const SHOWN_PICTURE_BYTES: usize = 24 * 1024;

/// Attachments above this size leave the row for the blob store.
pub(crate) const INLINE_ATTACHMENT_BYTES: usize = 1024 * 1024;

/// How long an aborted tool may take to clean up: TERM, two seconds, KILL, and a little for the way back.
pub(crate) const TOOL_ABORT: Duration = Duration::from_millis(2_400);

/// How long a cancelled call that only reads may take to end: it leaves nothing behind, and the user waits.
pub(crate) const READ_ABORT: Duration = Duration::from_millis(200);

/// What is kept of a provider's reason for not taking an attachment.
pub(crate) const REJECTION_CHARACTERS: usize = 200;

/// How long a hook may take when nothing is configured: formatters, linters and quick tests do.
pub const HOOK_TIME: Duration = Duration::from_secs(60);

/// The longest that can be configured: somebody waits for it.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(600);

/// How long a turn that was cancelled waits for its hook to be killed; all of it has to be over in half a
/// second.
pub(crate) const HOOK_ABORT: Duration = Duration::from_millis(400);

/// How often the hooks at its end may make one turn go on: one that is never content must not go on for ever.
pub(crate) const HOOK_CONTINUATIONS: u32 = 5;

/// What a hook may say to the model or to people at a time: a page of a linter's complaints.
pub(crate) const HOOK_WORD_BYTES: usize = 8 * 1024;

/// What a hook is told of one text of a call: larger ones are files, which it can read itself.
pub(crate) const HOOK_INPUT_BYTES: usize = 1024 * 1024;

/// Tries of one model call, the first included.
pub(crate) const MODEL_TRIES: u32 = 5;

/// First pause between two tries; doubles each time.
pub const RETRY_BASE: Duration = Duration::from_millis(500);

/// The longest pause a provider may ask for, because the user is watching: beyond it the turn fails and says
/// when to come back.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// What is added to a pause at most; a quarter of it when that is less.
pub(crate) const JITTER_MAX: Duration = Duration::from_secs(1);

/// Chunks of an answer that has not said anything yet: parts that were opened. More of them are an answer too.
pub(crate) const SILENT_CHUNKS: usize = 16;

/// Model calls per turn when nothing is configured.
pub const MAX_STEPS: u32 = 100;

/// Model calls that are left of a turn when the model is told so: enough for a last test and a word.
pub const STEPS_LEFT_WARNED: u32 = 3;

/// The same call this often in a row: the model is told.
pub(crate) const REPEATS_WARNED: u32 = 3;

/// The same call this often in a row: the turn ends.
pub(crate) const REPEATS_STOPPED: u32 = 10;

/// What the model is told of why its last turn failed: a provider may send a page.
pub const END_CHARACTERS: usize = 300;

/// Longest title of a session: what fits a line of a list.
pub const TITLE_CHARACTERS: usize = 80;

/// What a title is made of: this much of the prompt and this much of the answer, so that it costs next to
/// nothing.
pub(crate) const TITLE_EXCERPT_BYTES: usize = 2 * 1024;

/// What is kept of the answer of a model that was asked for a title; some think aloud before they give it.
pub(crate) const TITLE_ANSWER_BYTES: usize = 8 * 1024;

/// How long a title may take: no turn waits for it, and a model that takes longer is not small.
pub(crate) const TITLE_TIME: Duration = Duration::from_secs(60);

/// Sessions that an unknown id is compared with, the latest first: one page of a store; older ones are not
/// meant.
pub(crate) const SESSIONS_COMPARED: usize = 200;

/// Messages that may wait in one session's queue; a prompt beyond it is refused.
pub(crate) const QUEUED_MESSAGES: usize = 1_000;

/// Times a session is opened anew because it was closed in the same moment; more than one is rare, three is a
/// fault.
pub(crate) const OPEN_TRIES: u32 = 3;

/// Events a slow subscriber may fall behind before it loses the oldest. Each has its place in memory from the
/// start on.
pub(crate) const EVENTS_BEHIND: usize = 256;

/// First pause before a session whose store failed is brought into order by itself; doubles each time.
pub(crate) const MEND_BASE: Duration = Duration::from_secs(1);

/// No pause between two such tries is longer: a disk with room again should be noticed within half a minute.
pub(crate) const MEND_MAX: Duration = Duration::from_secs(30);

/// Of what a person says about a call that they reject: what is longer belongs into a prompt.
pub(crate) const REJECTION_CHARS: usize = 2_000;

/// How often is looked whether turns are still under way when the host wants to end: nobody notices the rest
/// of it.
pub(crate) const REST_LOOK: Duration = Duration::from_millis(50);

/// How long `shutdown` waits for runs to settle: the process has to be gone 3 s after its editor.
pub(crate) const SHUTDOWN: Duration = Duration::from_millis(2_700);

/// Longest pattern of a rule somebody wrote: no command or path worth a rule is longer.
pub(crate) const RULE_CHARACTERS: usize = 1_024;

/// What a refusal quotes of a command.
pub(crate) const REFUSED_COMMAND_CHARACTERS: usize = 100;

/// What the title of a call that was not understood says of why.
pub(crate) const CALL_TITLE_CHARACTERS: usize = 120;

/// What the name of an "always" option shows of a long line: more of it is seen in few editors.
pub(crate) const ALWAYS_NAME_CHARACTERS: usize = 100;

/// Ways to read where the words of a command begin behind its options: more options than people write before
/// what a program is to do.
pub(crate) const COMMAND_READINGS: usize = 16;

/// Rules one "always" answer may make: more of them can't be read in the name of an option.
pub(crate) const ALWAYS_RULES: usize = 8;

/// Rewinds of one session that can be taken back one after the other: no user remembers more, and they are
/// kept on its row.
pub const REWINDS_KEPT: usize = 64;

/// Prompts that `/rewind` and `/fork` list: what fits a screen.
pub(crate) const PROMPTS_LISTED: usize = 10;

/// What such a list shows of a prompt.
pub(crate) const LISTED_PROMPT_CHARACTERS: usize = 80;

/// Messages that are looked through for a prompt that is no command; so many commands in a row are a script.
pub(crate) const PROMPTS_LOOKED_AT: usize = 200;

/// Largest content that is kept before a call changes it: larger files are data that something else makes, and
/// copying one takes longer than the change.
pub(crate) const SNAPSHOT_FILE_BYTES: usize = 16 * 1024 * 1024;

/// All contents that are kept for one session: months of edits of source code, and no more than a browser's
/// cache.
pub(crate) const SNAPSHOT_SESSION_BYTES: u64 = 256 * 1024 * 1024;

/// How long contents are kept after the session last kept one: who comes back later finds other files anyway.
pub(crate) const SNAPSHOT_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How much of one part can be searched for: more than a person writes or a model says at a time. What is
/// beyond it is a file that was pasted, and would cost the commit of its message milliseconds.
pub(crate) const SEARCHED_PART_BYTES: usize = 64 * 1024;

/// How much of what a call gave back: its first lines say what it was. All of it would make the index as large
/// as every file that was ever read.
pub(crate) const SEARCHED_OUTPUT_BYTES: usize = 2 * 1024;

/// One line of a file that is imported: an attachment of the largest message that a client can send, in base64.
pub(crate) const IMPORT_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// An id of a session: ours have 30 characters. It becomes the name of a directory, of which file systems take
/// 255 bytes, and each may be written as three.
pub(crate) const SESSION_ID_BYTES: usize = 64;

/// An id of a message or a part of a file that is imported: as long as a client may make its own.
pub(crate) const IMPORTED_ID_BYTES: usize = 4096;

/// A whole file: it is in memory until the one commit that stores it.
pub(crate) const IMPORT_BYTES: u64 = 512 * 1024 * 1024;

/// An export that `/export` makes: it is in memory until it is written. A larger one is made by the command
/// line, page by page.
pub(crate) const EXPORTED_BYTES: usize = 64 * 1024 * 1024;

/// How deep tasks may go: beyond a child of a child of a child of a child of a child no user can follow what
/// happens, and a model that delegates everything it is given would never end.
pub(crate) const TASK_DEPTH: usize = 5;

/// Children of one session that work at once; providers slow down or refuse beyond about that many streams.
pub(crate) const TASKS_AT_ONCE: usize = 8;

/// How long a rewind waits for the background tasks that it ends: a cancel is over in half a second.
pub const TASK_REST: Duration = Duration::from_secs(1);

/// How often it looks whether they have.
pub const TASK_LOOK: Duration = Duration::from_millis(5);

/// What a task gives back to the model: the report of a subagent that was told to be brief. The whole of it is
/// in its own session.
pub(crate) const TASK_RESULT_BYTES: usize = 32 * 1024;

/// What a client is shown of the transcript of a nested child.
pub(crate) const NESTED_TRANSCRIPT_BYTES: usize = 24 * 1024;

/// Calls of a child that its parent's call shows while it runs: what a screen has room for.
pub(crate) const TASK_CALLS_SHOWN: usize = 8;

/// Calls that were denied to a child and are told with its result: a script counts them, nobody reads more.
pub const TASK_DENIED_SHOWN: usize = 20;

/// How often the view of a running child is renewed: as fast as people read, at a small price in the journal.
pub(crate) const TASK_VIEW: Duration = Duration::from_millis(250);

/// How often a child is told that its last message does not fit its schema.
pub const SCHEMA_RETRIES: usize = 2;

/// How many mistakes against a schema are told at once: a model that makes more mends these first.
pub(crate) const SCHEMA_MISTAKES: usize = 10;

/// How deep a JSON Schema may be: checked by recursion, and no answer of a model needs more.
pub const SCHEMA_DEPTH: usize = 64;

/// One text in a span: more than most tools give back, and far below what collectors take in one request. The
/// whole conversation is sent again with every call of a model, so this is also what a call costs at most.
pub(crate) const SPAN_CONTENT_BYTES: usize = 64 * 1024;

/// How long session/new waits for an agent that has modes of its own: clients are told once which there are.
/// One that takes longer shows them as an option.
pub const OWN_MODES_TIME: std::time::Duration = std::time::Duration::from_secs(5);
