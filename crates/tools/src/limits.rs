//! The limits of this crate in size and time, each with its reason.

use std::time::Duration;

/// Lines of one `read` without a limit: most source files fit.
pub(crate) const READ_LINES: u64 = 2_000;

/// Bytes of one `read`, whatever it asks for: about 15,000 tokens, as much as a model can still use.
pub(crate) const READ_BYTES: usize = 50_000;

/// Characters of a line that `read` shows: a longer line is data or minified code.
pub(crate) const READ_LINE_CHARACTERS: usize = 2_000;

/// Entries of a directory that one `read` lists, their bytes, and how many entries it examines.
pub(crate) const LISTED_ENTRIES: usize = 1_000;
pub(crate) const LISTED_BYTES: usize = 16_000;
pub(crate) const DIRECTORY_ENTRIES: usize = 100_000;

/// Longest path that the kernel accepts.
pub(crate) const PATH_BYTES: usize = 4_096;

/// Characters of a pattern or query that a title shows.
pub(crate) const TITLE_CHARACTERS: usize = 200;

/// How much of a file is examined to decide whether it is text.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// Largest image that a model gets, as the large providers accept.
pub(crate) const IMAGE_BYTES: u64 = 5_000_000;

/// Largest file that `edit` and the preview of `write` load; a larger file is data, not source.
pub(crate) const EDIT_BYTES: u64 = 32 * 1024 * 1024;

/// All files of one change together: they stay in memory until the change is complete, to be restored if it
/// fails.
pub(crate) const CHANGE_BYTES: usize = 64 * 1024 * 1024;

/// Up to this size clients see a replaced file as two whole texts, beyond it as hunks.
pub(crate) const WHOLE_DIFF_BYTES: usize = 16 * 1024;

/// The most diff text of one call: it is stored with the call and sent to every client.
pub(crate) const SHOWN_DIFF_BYTES: usize = 256 * 1024;

/// Lines of context around a change.
pub(crate) const DIFF_CONTEXT: usize = 3;

/// After this time the line diff is completed roughly instead of minimally.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(200);

/// Bytes of the answer to a change of many files.
pub(crate) const ANSWER_BYTES: usize = 16_000;

/// Bytes of a file's line that an error quotes.
pub(crate) const QUOTED_LINE_BYTES: usize = 200;

/// Positions an error lists before it says "and more".
pub(crate) const LISTED_MATCHES: usize = 10;

/// Lines searched for the nearest match of a failed edit.
pub(crate) const NEAREST_LINES: usize = 50_000;

/// Places among them that begin like the match and are compared completely.
pub(crate) const NEAREST_PLACES: usize = 200;

/// Directory entries compared with the name of a missing file, and how many similar names are told.
pub(crate) const NEAREST_ENTRIES: usize = 10_000;
pub(crate) const NEAREST_NAMES: usize = 3;

/// How often to look for a file again when its place changes between finding and opening it.
pub(crate) const RACE_TRIES: usize = 8;

/// Time for a command that sets none, and the most that it may set.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(120);
pub(crate) const COMMAND_TIME_MAX_MS: u64 = 600_000;

/// How much a command's result takes of the model's context, including notes: about 5,000 tokens. Only a
/// quarter of it is the beginning, because errors are at the end.
pub(crate) const OUTPUT_BYTES: usize = 16 * 1024;
pub(crate) const OUTPUT_HEAD_BYTES: usize = OUTPUT_BYTES / 4;

/// The part of it reserved for notes: the exit code, which processes were ended, what to try.
pub(crate) const OUTPUT_NOTES_BYTES: usize = 1024;

/// How far back a redraw can reach in the output: some hundred lines, more than any screen has.
pub(crate) const FOLDED_REACH_BYTES: usize = 32 * 1024;

/// The length up to which a line can still be overwritten; of a longer one only the rest can.
pub(crate) const FOLDED_LINE_BYTES: usize = 16 * 1024;

/// A picture or link sequence for terminals that does not end within this is none.
pub(crate) const FOLDED_SEQUENCE_BYTES: usize = 1024 * 1024;

/// Output kept on disk for reading back; a command with more only floods.
pub(crate) const SPILL_BYTES: u64 = 64 * 1024 * 1024;

/// Output shown when a command has ended, and while it runs.
pub(crate) const SHOWN_OUTPUT_BYTES: usize = 64 * 1024;
pub(crate) const LIVE_OUTPUT_BYTES: usize = 8 * 1024;

/// The most background commands of one session, and how many ended ones are kept until the model was told.
pub(crate) const BACKGROUND_PROCESSES: usize = 8;
pub(crate) const BACKGROUND_ENDED: usize = 32;

/// How long to wait for a background command's failure, so that the call can report an immediate one.
pub(crate) const BACKGROUND_START_TIME: Duration = Duration::from_millis(500);

/// How long a call waits for output of a background command, and how long for the rest once there is some.
pub(crate) const BACKGROUND_WAIT_MAX_MS: u64 = 60_000;
pub(crate) const BACKGROUND_GATHER_TIME: Duration = Duration::from_millis(200);

/// How long to wait for its end when it is stopped (terminated, then killed), and when its session ends.
pub(crate) const BACKGROUND_STOP_TIME: Duration = Duration::from_millis(2_400);
pub(crate) const BACKGROUND_LEAVE_TIME: Duration = Duration::from_millis(300);

/// Time for a background command that sets none: until its session ends.
pub(crate) const BACKGROUND_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// How much output a client keeps of a command in its terminal: enough for us to cut as usual, little enough to
/// send at once.
pub(crate) const TERMINAL_OUTPUT_BYTES: u64 = 1024 * 1024;

/// How long our program may take to start in a terminal that the client has opened: usually milliseconds,
/// longer on a busy machine.
pub(crate) const TERMINAL_CONTACT_TIME: Duration = Duration::from_secs(5);

/// Output that a terminal has yet to show; a slower client gets only the end of it.
pub(crate) const TERMINAL_QUEUE_BYTES: usize = 1024 * 1024;

/// How much of a command line a terminal shows: the kernel accepts no argument over 128 KiB.
pub(crate) const TERMINAL_LINE_BYTES: usize = 64 * 1024;

/// How many names to try for the directory of a terminal.
pub(crate) const TERMINAL_PLACE_TRIES: usize = 8;

/// How long a client may take to show the last output of a command.
pub(crate) const TERMINAL_END_TIME: Duration = Duration::from_secs(2);

/// `.git/HEAD` is one line; a larger file is not one.
pub(crate) const GIT_HEAD_BYTES: u64 = 4 * 1024;

/// Entries of a repository's own directory that are checked for links before git runs without a question: this
/// takes some milliseconds if branches are separate files, less otherwise.
pub(crate) const GIT_LOOK: usize = 16_384;

/// How long `git status` may take for the system prompt: the user is still writing, and for a slower tree the
/// prompt says less.
pub(crate) const GIT_STATUS_TIME: Duration = Duration::from_millis(300);

/// How much of its output is read: thousands of files, which are only counted.
pub(crate) const GIT_STATUS_BYTES: usize = 256 * 1024;

/// Size of one file of instructions; all of them together have less room in a prompt.
pub(crate) const INSTRUCTION_BYTES: u64 = 64 * 1024;

/// Tokens of instructions that one call adds for the directories it visits: half of those for a whole project.
pub(crate) const NESTED_INSTRUCTION_TOKENS: u64 = 4_000;

/// Files of instructions for one workspace, imports included.
pub(crate) const INSTRUCTION_FILES: usize = 64;

/// Size of one `SKILL.md` or one command: a larger one would fill a model's context by itself.
pub(crate) const SKILL_BYTES: u64 = 64 * 1024;

/// Skills of one session, and entries of a directory that are examined for them.
pub(crate) const SKILLS: usize = 1_000;

/// Commands of one session.
pub(crate) const TEMPLATES: usize = 500;

/// Directories below `commands` that become part of a command's name.
pub(crate) const TEMPLATE_DEPTH: usize = 3;

/// How many files a notice names that were left out: a list of hundreds helps no reader.
pub(crate) const LEFT_OUT_TOLD: usize = 10;

/// How deep imports of imports are followed.
pub(crate) const INSTRUCTION_DEPTH: usize = 5;

/// For how many sessions `git status` may run at once.
pub(crate) const GIT_STATUS_AT_ONCE: usize = 2;

/// Files that one `glob` lists, and files that it keeps on disk for reading back; a pattern with more is too
/// wide to be read.
pub(crate) const GLOB_FILES: usize = 1_000;
pub(crate) const GLOB_KEPT_FILES: usize = 20_000;

/// Bytes of the list: enough for that many paths of usual length.
pub(crate) const GLOB_BYTES: usize = 32_000;

/// How long to search ignored files when no other file matches.
pub(crate) const IGNORED_TIME: Duration = Duration::from_secs(2);

/// Matches that one `grep` lists, and their bytes: some 5,000 tokens.
pub(crate) const GREP_MATCHES: usize = 200;
pub(crate) const GREP_BYTES: usize = 16_000;

/// A longer line is shown only around its match: it is data or minified code.
pub(crate) const GREP_LINE_BYTES: usize = 300;

/// How much of a long line is shown before its match.
pub(crate) const GREP_LEAD_BYTES: usize = 80;

/// How much a search keeps in memory, and how much it keeps in a file beyond what it lists.
pub(crate) const SEARCH_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// A search that takes longer was given a whole disk.
pub(crate) const SEARCH_TIME: Duration = Duration::from_secs(60);

/// Largest ignore file: those of the largest repositories have some tens of KB. A matcher needs many times the
/// size of the lines.
pub(crate) const IGNORE_FILE_BYTES: usize = 256 * 1024;

/// Largest `.git` file: one line with a path.
pub(crate) const GIT_POINTER_BYTES: usize = 8 * 1024;

/// Memory for a compiled pattern, and for its cache in each thread; the libraries' own limits assume a person
/// as the author.
pub(crate) const REGEX_BYTES: usize = 10 * 1024 * 1024;

/// How much of a page a model gets: as much as of a file.
pub(crate) const WEB_TEXT_BYTES: usize = 50_000;

/// How much of a page is read: more is a download.
pub(crate) const WEB_BYTES: usize = 5_000_000;

/// Time for a page with all redirects, and for one connection.
pub(crate) const WEB_TIME: Duration = Duration::from_secs(30);
pub(crate) const WEB_CONNECT_TIME: Duration = Duration::from_secs(10);

/// How many redirects to follow; browsers follow twenty, honest sites need three.
pub(crate) const WEB_HOPS: usize = 10;

/// How deep the elements of a page may be nested, and the stack for converting it: the converters are
/// recursive.
pub(crate) const WEB_NESTING: usize = 500;
pub(crate) const WEB_STACK_BYTES: usize = 32 * 1024 * 1024;

/// How much of a page is parsed between two checks of time and nesting, and how long all of it may take. The
/// largest honest page takes a tenth of a second.
pub(crate) const WEB_PIECE_BYTES: usize = 1024;
pub(crate) const WEB_PARSE_TIME: Duration = Duration::from_secs(10);

/// How many searches one session may make, and for how many sessions searches are counted: services cost money,
/// and memory must not grow.
pub(crate) const SEARCH_CALLS: usize = 25;
pub(crate) const SEARCH_SESSIONS: usize = 4_096;

/// Time for one search in all; services answer in one or two seconds.
pub(crate) const WEB_SEARCH_TIME: Duration = Duration::from_secs(15);

/// How much of an answer is read: enough for a hundred hits of a talkative server.
pub(crate) const SEARCH_ANSWER_BYTES: usize = 2_000_000;

/// Hits if the call sets no number. The maximum is in the tool's schema: 10.
pub(crate) const SEARCH_RESULTS: usize = 5;

/// The longest query that all services accept.
pub(crate) const SEARCH_QUERY_CHARACTERS: usize = 400;

/// How much of one hit is shown: enough to decide whether to read the page. Longer addresses consist of session
/// data.
pub(crate) const SEARCH_TITLE_CHARACTERS: usize = 200;
pub(crate) const SEARCH_SNIPPET_CHARACTERS: usize = 500;
pub(crate) const SEARCH_URL_BYTES: usize = 2_000;

/// Enough for ten hits of usual length.
pub(crate) const SEARCH_OUTPUT_BYTES: usize = 16_000;

/// How much an error quotes of a service's own message.
pub(crate) const SEARCH_SAID_CHARACTERS: usize = 200;

/// The most questions of one call, and options of one question: people do not fill in more.
pub(crate) const QUESTIONS: usize = 10;
pub(crate) const QUESTION_OPTIONS: usize = 20;

/// Largest picture that every provider accepts: 5 MiB in base64, the smallest limit of all.
pub(crate) const PICTURE_BYTES: usize = 3_900_000;

/// Its longer side: every provider accepts this, also beside twenty others, and all scale down larger ones.
pub(crate) const PICTURE_SIDE: u32 = 2_000;

/// The most pixels of a picture to decode: a camera has 50 million, and each needs four bytes of memory.
pub(crate) const PICTURE_PIXELS: u64 = 64_000_000;

/// Memory for decoding a picture; only one is decoded at a time.
pub(crate) const PICTURE_MEMORY: u64 = 320 * 1024 * 1024;

/// How long a prompt waits for a picture to be scaled or converted: the largest takes about a second.
pub(crate) const PICTURE_TIME: Duration = Duration::from_secs(5);

/// How many files are kept before a command writes them: as many as a line names by hand. More come from a
/// pattern, and reading them would delay the command.
pub(crate) const COMMAND_SNAPSHOT_FILES: usize = 64;

/// How often the top of a scratch directory is traversed until it is empty, once for each level: deeper than a
/// command can nest directories in its time.
pub(crate) const SCRATCH_LEVELS: usize = 10_000_000;

/// How much of a hook's output is read: a page of JSON, or of complaints.
pub(crate) const HOOK_OUTPUT_BYTES: usize = 64 * 1024;
pub(crate) const HOOK_ERROR_BYTES: usize = 16 * 1024;

/// The time between asking a hook to end and killing it: together with the time to see it end, a cancelled hook
/// is gone within half a second.
pub(crate) const HOOK_TIME_TO_END: Duration = Duration::from_millis(100);
