//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// Lines of one `read` without a limit: most source files fit whole.
pub(crate) const READ_LINES: u64 = 2_000;

/// Bytes of one `read`, whatever it asks for: about 15,000 tokens, what a model can still use.
pub(crate) const READ_BYTES: usize = 50_000;

/// Characters of a line that `read` shows: what is longer is data or minified code.
pub(crate) const READ_LINE_CHARACTERS: usize = 2_000;

/// Entries of a directory that one `read` lists, their bytes, and how many are looked at.
pub(crate) const LISTED_ENTRIES: usize = 1_000;
pub(crate) const LISTED_BYTES: usize = 16_000;
pub(crate) const DIRECTORY_ENTRIES: usize = 100_000;

/// What the kernel takes for a path.
pub(crate) const PATH_BYTES: usize = 4_096;

/// Characters of a pattern or query that a title shows.
pub(crate) const TITLE_CHARACTERS: usize = 200;

/// How much of a file decides whether it is text.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;

/// Largest image that is shown to a model; what the large providers take.
pub(crate) const IMAGE_BYTES: u64 = 5_000_000;

/// Largest file that `edit` and the preview of `write` load; larger ones are data, not source.
pub(crate) const EDIT_BYTES: u64 = 32 * 1024 * 1024;

/// All files of one change together: they are held in memory until it is made, to be put back if it fails.
pub(crate) const CHANGE_BYTES: usize = 64 * 1024 * 1024;

/// Up to here a replaced file is shown as its two whole texts, beyond as hunks.
pub(crate) const WHOLE_DIFF_BYTES: usize = 16 * 1024;

/// Diff text one call shows at most: it is stored with the call and sent to every client.
pub(crate) const SHOWN_DIFF_BYTES: usize = 256 * 1024;

/// Lines around a change.
pub(crate) const DIFF_CONTEXT: usize = 3;

/// After this the line diff is finished roughly instead of minimally.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(200);

/// What a change of many files answers.
pub(crate) const ANSWER_BYTES: usize = 16_000;

/// Bytes of a file's line that an error repeats.
pub(crate) const QUOTED_LINE_BYTES: usize = 200;

/// Positions an error lists before it says "and more".
pub(crate) const LISTED_MATCHES: usize = 10;

/// Lines searched for the nearest match of a failed edit.
pub(crate) const NEAREST_LINES: usize = 50_000;

/// Places among them that begin like the match and are compared to their end.
pub(crate) const NEAREST_PLACES: usize = 200;

/// Directory entries compared for the nearest names of a missing file, and names told.
pub(crate) const NEAREST_ENTRIES: usize = 10_000;
pub(crate) const NEAREST_NAMES: usize = 3;

/// How often a file is looked for again when its place changes between finding and opening it.
pub(crate) const RACE_TRIES: usize = 8;

/// Time of a command that names none, and the most it may name.
pub(crate) const COMMAND_TIME: Duration = Duration::from_secs(120);
pub(crate) const COMMAND_TIME_MAX_MS: u64 = 600_000;

/// What a command's result takes of the model's context, notes included: about 5,000 tokens. A quarter of it is
/// the beginning: what went wrong is at the end.
pub(crate) const OUTPUT_BYTES: usize = 16 * 1024;
pub(crate) const OUTPUT_HEAD_BYTES: usize = OUTPUT_BYTES / 4;

/// What of it is kept for notes: the exit code, what was ended, what to try.
pub(crate) const OUTPUT_NOTES_BYTES: usize = 1024;

/// Output in which a redraw can still reach: some hundred lines, more than any screen has.
pub(crate) const FOLDED_REACH_BYTES: usize = 32 * 1024;

/// A line that can still be overwritten; of a longer one only the rest.
pub(crate) const FOLDED_LINE_BYTES: usize = 16 * 1024;

/// A picture or a link for terminals ends within this, or it is none.
pub(crate) const FOLDED_SEQUENCE_BYTES: usize = 1024 * 1024;

/// Output kept on disk for reading back; beyond it a command only floods.
pub(crate) const SPILL_BYTES: u64 = 64 * 1024 * 1024;

/// Output shown when a command has ended, and while it runs.
pub(crate) const SHOWN_OUTPUT_BYTES: usize = 64 * 1024;
pub(crate) const LIVE_OUTPUT_BYTES: usize = 8 * 1024;

/// Commands one session may have in the background, and how many that have ended are kept until somebody was
/// told.
pub(crate) const BACKGROUND_PROCESSES: usize = 8;
pub(crate) const BACKGROUND_ENDED: usize = 32;

/// A command in the background that fails at once is told of at once.
pub(crate) const BACKGROUND_START_TIME: Duration = Duration::from_millis(500);

/// How long a call waits for what a command in the background prints, and how long for the rest of it once it
/// prints.
pub(crate) const BACKGROUND_WAIT_MAX_MS: u64 = 60_000;
pub(crate) const BACKGROUND_GATHER_TIME: Duration = Duration::from_millis(200);

/// How long its end is awaited when it is stopped (asked, then killed), and when its session ends.
pub(crate) const BACKGROUND_STOP_TIME: Duration = Duration::from_millis(2_400);
pub(crate) const BACKGROUND_LEAVE_TIME: Duration = Duration::from_millis(300);

/// Time of a command in the background that names none: until its session ends.
pub(crate) const BACKGROUND_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a client shall keep of the output of a command in its terminal: enough to be cut as ours is, little to
/// be sent at once.
pub(crate) const TERMINAL_OUTPUT_BYTES: u64 = 1024 * 1024;

/// How long our program may take to begin in a terminal that the client has opened: it takes milliseconds, a
/// busy machine more.
pub(crate) const TERMINAL_CONTACT_TIME: Duration = Duration::from_secs(5);

/// Output that a terminal has still to show; a client that is slower gets the end of it.
pub(crate) const TERMINAL_QUEUE_BYTES: usize = 1024 * 1024;

/// What is shown of a command line there: the kernel takes no argument over 128 KiB.
pub(crate) const TERMINAL_LINE_BYTES: usize = 64 * 1024;

/// Names tried for the directory of a terminal.
pub(crate) const TERMINAL_PLACE_TRIES: usize = 8;

/// How long a client may take to show the last output of a command.
pub(crate) const TERMINAL_END_TIME: Duration = Duration::from_secs(2);

/// `.git/HEAD` is one line; what is longer is none.
pub(crate) const GIT_HEAD_BYTES: u64 = 4 * 1024;

/// Entries of a repository's own directory that are looked at for links before git runs unasked: some
/// milliseconds where branches lie in files of their own, a fraction of one elsewhere.
pub(crate) const GIT_LOOK: usize = 16_384;

/// How long `git status` may take for the system prompt: the user is still writing, and a tree that takes
/// longer is told less of.
pub(crate) const GIT_STATUS_TIME: Duration = Duration::from_millis(300);

/// What of its output is read: thousands of files, counted only.
pub(crate) const GIT_STATUS_BYTES: usize = 256 * 1024;

/// Of one file of instructions; all of them together have less room in a prompt.
pub(crate) const INSTRUCTION_BYTES: u64 = 64 * 1024;

/// Of all that one call tells of the directories it goes through: half of what a whole project has.
pub(crate) const NESTED_INSTRUCTION_TOKENS: u64 = 4_000;

/// Files of instructions for one workspace, imports included.
pub(crate) const INSTRUCTION_FILES: usize = 64;

/// Of one `SKILL.md` or one command: more would fill a model's context by itself.
pub(crate) const SKILL_BYTES: u64 = 64 * 1024;

/// Skills of one session, and entries of a directory that are looked at for them.
pub(crate) const SKILLS: usize = 1_000;

/// Commands of one session.
pub(crate) const TEMPLATES: usize = 500;

/// Directories below `commands` that become part of a command's name.
pub(crate) const TEMPLATE_DEPTH: usize = 3;

/// Files that are named in a notice about what was left out: a list of hundreds helps no reader.
pub(crate) const LEFT_OUT_TOLD: usize = 10;

/// How far imports of imports are followed.
pub(crate) const INSTRUCTION_DEPTH: usize = 5;

/// Sessions whose status is looked for at once.
pub(crate) const GIT_STATUS_AT_ONCE: usize = 2;

/// Files one `glob` tells of, and files it keeps on disk for reading back; beyond it a pattern is too wide to
/// be read.
pub(crate) const GLOB_FILES: usize = 1_000;
pub(crate) const GLOB_KEPT_FILES: usize = 20_000;

/// Bytes of them: paths of usual length fit, however many there are.
pub(crate) const GLOB_BYTES: usize = 32_000;

/// How long ignored files are looked for when no other matches.
pub(crate) const IGNORED_TIME: Duration = Duration::from_secs(2);

/// Matches one `grep` tells of, and their bytes: some 5,000 tokens.
pub(crate) const GREP_MATCHES: usize = 200;
pub(crate) const GREP_BYTES: usize = 16_000;

/// A line of a match beyond this is shown around the match only: it is data or minified code.
pub(crate) const GREP_LINE_BYTES: usize = 300;

/// What a long line shows in front of its match.
pub(crate) const GREP_LEAD_BYTES: usize = 80;

/// What a search keeps in memory, and in a file beyond what it tells.
pub(crate) const SEARCH_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// A search that takes longer has been given a whole disk.
pub(crate) const SEARCH_TIME: Duration = Duration::from_secs(60);

/// An ignore file: those of the largest repositories have some tens of KB. Each line becomes a part of a
/// matcher that takes many times its room.
pub(crate) const IGNORE_FILE_BYTES: usize = 256 * 1024;

/// A `.git` that is a file: one line with a path.
pub(crate) const GIT_POINTER_BYTES: usize = 8 * 1024;

/// What a compiled pattern may take, and its cache in each thread; the libraries' own limits are meant for
/// people.
pub(crate) const REGEX_BYTES: usize = 10 * 1024 * 1024;

/// What a model gets of a page: as much as of a file.
pub(crate) const WEB_TEXT_BYTES: usize = 50_000;

/// What is read of a page: more is a download.
pub(crate) const WEB_BYTES: usize = 5_000_000;

/// A page with all its hops, and one connection of them.
pub(crate) const WEB_TIME: Duration = Duration::from_secs(30);
pub(crate) const WEB_CONNECT_TIME: Duration = Duration::from_secs(10);

/// Redirects followed; browsers follow twenty, honest sites need three.
pub(crate) const WEB_HOPS: usize = 10;

/// Elements within elements that a page may have, and the stack its conversion gets: the converters recurse.
pub(crate) const WEB_NESTING: usize = 500;
pub(crate) const WEB_STACK_BYTES: usize = 32 * 1024 * 1024;

/// What is parsed of a page between two looks at the clock and at its levels, and how long all of it may take.
/// The largest honest page takes a tenth of a second.
pub(crate) const WEB_PIECE_BYTES: usize = 1024;
pub(crate) const WEB_PARSE_TIME: Duration = Duration::from_secs(10);

/// Searches one session may make, and sessions whose searches are counted: services cost money, memory does not
/// grow.
pub(crate) const SEARCH_CALLS: usize = 25;
pub(crate) const SEARCH_SESSIONS: usize = 4_096;

/// One search with everything; services answer in one or two seconds.
pub(crate) const WEB_SEARCH_TIME: Duration = Duration::from_secs(15);

/// What is read of an answer: a hundred hits of a talkative server fit.
pub(crate) const SEARCH_ANSWER_BYTES: usize = 2_000_000;

/// Hits where no number is asked for. The most is in the schema of the tool: 10.
pub(crate) const SEARCH_RESULTS: usize = 5;

/// The longest question that all services take.
pub(crate) const SEARCH_QUERY_CHARACTERS: usize = 400;

/// What is told of one hit: enough to decide whether to read the page. Longer addresses are made of session
/// data.
pub(crate) const SEARCH_TITLE_CHARACTERS: usize = 200;
pub(crate) const SEARCH_SNIPPET_CHARACTERS: usize = 500;
pub(crate) const SEARCH_URL_BYTES: usize = 2_000;

/// Ten hits of usual length fit.
pub(crate) const SEARCH_OUTPUT_BYTES: usize = 16_000;

/// What an error repeats of a service's own words.
pub(crate) const SEARCH_SAID_CHARACTERS: usize = 200;

/// Questions of one call, and options of one question: people do not fill in more.
pub(crate) const QUESTIONS: usize = 10;
pub(crate) const QUESTION_OPTIONS: usize = 20;

/// A picture as every provider takes it: 5 MiB in base64, the smallest limit there is.
pub(crate) const PICTURE_BYTES: usize = 3_900_000;

/// Its longer side: no provider refuses this, also beside twenty others, and all scale down what is larger.
pub(crate) const PICTURE_SIDE: u32 = 2_000;

/// Pixels of a picture that is decoded: a camera has 50 million, and each takes four bytes of memory.
pub(crate) const PICTURE_PIXELS: u64 = 64_000_000;

/// Memory for decoding one; they are decoded one at a time.
pub(crate) const PICTURE_MEMORY: u64 = 320 * 1024 * 1024;

/// How long a prompt waits for a picture to be scaled or converted: the largest takes about a second.
pub(crate) const PICTURE_TIME: Duration = Duration::from_secs(5);

/// Files that are kept before a command writes them: what a line names by hand. More come from a pattern, and
/// reading them would hold the command up.
pub(crate) const COMMAND_SNAPSHOT_FILES: usize = 64;

/// How often the top of a scratch directory is looked through until it is empty, once for each level: deeper
/// than anyone makes one in the time of a command.
pub(crate) const SCRATCH_LEVELS: usize = 10_000_000;

/// What a hook may print that is read: a page of JSON, or of complaints.
pub(crate) const HOOK_OUTPUT_BYTES: usize = 64 * 1024;
pub(crate) const HOOK_ERROR_BYTES: usize = 16 * 1024;

/// Between asking a hook to end and killing it: with the time to see it dead, a cancelled one is gone within
/// half a second.
pub(crate) const HOOK_TIME_TO_END: Duration = Duration::from_millis(100);
