//! What the product is held to, and how much is measured to see it. Only numbers, each with its reason.

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    Below(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Aim {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::Below(aim) => value < aim,
            Self::AtMost(aim) => value <= aim,
            Self::AtLeast(aim) => value >= aim,
        }
    }
}

/// An editor starts its agent before the user can type: below one frame.
pub(crate) const START_MS: Aim = Aim::Below(5.0);
pub(crate) const SESSION_NEW_MS: Aim = Aim::Below(5.0);

/// The smallest of the field needs three times as much.
pub(crate) const RSS_MB: Aim = Aim::Below(20.0);

/// A thousand sessions in one process shall fit where others put one.
pub(crate) const FURTHER_SESSION_KB: Aim = Aim::AtMost(100.0);

pub(crate) const FIRST_UPDATE_MS: Aim = Aim::Below(3.0);
pub(crate) const TURN_MS: Aim = Aim::Below(4.0);
pub(crate) const TOOL_ROUNDS_MS: Aim = Aim::Below(60.0);
pub(crate) const SHORT_STREAM_MS: Aim = Aim::Below(50.0);
pub(crate) const UPDATES_PER_SECOND: Aim = Aim::AtLeast(100_000.0);
pub(crate) const CPU_MICROSECONDS: Aim = Aim::AtMost(8.0);

/// The best of the field needs 214 ms for what lies between the request and the last update.
pub(crate) const WIRE_MS: Aim = Aim::Below(50.0);

/// Storing everything first may cost half as much again as reading, decoding and showing it.
pub(crate) const WIRE_RATIO: Aim = Aim::AtMost(1.5);
pub(crate) const WIRE_CPU_MICROSECONDS: Aim = Aim::AtMost(10.0);

/// Decoding must never be what a stream waits for.
pub(crate) const DECODED_EVENTS: Aim = Aim::AtLeast(1_000_000.0);
pub(crate) const DECODED_MEGABYTES: f64 = 300.0;

/// Ten times the deltas may cost a tenth more than ten times the bytes.
pub(crate) const WRITE_GROWTH: Aim = Aim::AtMost(11.0);

pub(crate) const LOAD_MESSAGES_MS: Aim = Aim::Below(20.0);

/// The same 20 ms for each thousand, on the smaller unit.
pub(crate) const LOAD_PARTS_MS: Aim = Aim::Below(2_000.0);

/// Loading streams: what it takes is bounded, like a stalled reader's 16 MiB on top of an idle process.
pub(crate) const LOAD_PEAK_MB: Aim = Aim::Below(36.0);

/// An idle process, the 32 MiB of conversations that sessions keep for their next turn, and the text of the
/// last turns.
pub(crate) const LONG_SESSION_MB: Aim = Aim::Below(64.0);

pub(crate) const TURN_GROWTH: Aim = Aim::AtMost(1.2);

/// What an agent of another process may cost on top of itself: less than any framework needs for a delta.
pub(crate) const FOREIGN_DELTA_MICROSECONDS: Aim = Aim::AtMost(15.0);

pub(crate) const FOREIGN_DELTAS: u64 = 10_000;

/// `langchain-acp` needs the square of it: ten thousand would take it ten minutes.
pub(crate) const FOREIGN_GRAPH_DELTAS: u64 = 1_000;

/// Starts of programs that take seconds to import what they need.
pub(crate) const FOREIGN_STARTS: usize = 3;

pub(crate) const FOREIGN_TURNS: usize = 500;

/// Turns at each end of them that are compared.
pub(crate) const FOREIGN_WARM_TURNS: usize = 10;

/// Process starts are the noisiest figure.
pub(crate) const STARTS: usize = 41;

pub(crate) const NEW_SESSIONS: usize = 101;
pub(crate) const IDLE_SESSIONS: usize = 1_000;
pub(crate) const FIRST_TURNS: usize = 101;
pub(crate) const ROUND_TRIPS: usize = 201;
pub(crate) const TOOL_TURNS: usize = 9;
pub(crate) const TOOL_ROUNDS: usize = 20;

/// Deltas of one turn, and how often that turn is taken: about the same work for each.
pub(crate) const SHORT_STREAM: Stream = Stream { deltas: 5_000, turns: 15 };
pub(crate) const LONG_STREAM: Stream = Stream { deltas: 100_000, turns: 5 };

/// Over loopback HTTP, once per dialect.
pub(crate) const WIRE_STREAM: Stream = Stream { deltas: 5_000, turns: 15 };

/// What is decoded to see how fast it goes.
pub(crate) const DECODED_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) deltas: u64,
    pub(crate) turns: usize,
}

/// What is written for so many, and for ten times as many.
pub(crate) const WRITTEN_DELTAS: u64 = 10_000;

/// One token as models send them: a short word with its blank.
pub(crate) const DELTA: &str = "token ";

/// A user message and an answer each: 1,000 messages.
pub(crate) const LOADED_TURNS: usize = 500;
pub(crate) const LOADS: usize = 9;

/// 100 turns of 1,000 parts: many parts per message, as tools and thoughts make them, and many messages.
pub(crate) const PART_TURNS: usize = 100;
pub(crate) const PARTS_PER_TURN: usize = 1_000;
pub(crate) const PART_LOADS: usize = 3;

pub(crate) const HISTORY_TURNS: usize = 1_000;

/// Answers of 64 KiB that make a history of 10 MB: as many as a long day of reading files leaves.
pub(crate) const LARGE_TURNS: usize = 160;
pub(crate) const LARGE_ANSWER_DELTAS: usize = 1_024;
pub(crate) const LARGE_ANSWER_DELTA: &str =
    "sixty-four bytes of an answer that is as long as a large file is. ";

/// A session that people work in for days: 1,000 answers of 20 KB.
pub(crate) const LONG_SESSION_TURNS: usize = 1_000;
pub(crate) const LONG_SESSION_DELTAS: usize = 320;

/// Turns compared at the start and at the end of a long history. Odd, so that the median is one of them.
pub(crate) const COMPARED_TURNS: usize = 51;

/// What one write of the raw writer carries: what a pipe takes at once.
pub(crate) const RAW_WRITE_BYTES: usize = 64 * 1024;

/// What the client reads at once: several pipes full, and more than the longest line (48 KiB).
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// What a turn leaves to be written after its answer is given this long before CPU and bytes are read.
pub(crate) const SETTLE_MS: u64 = 50;

/// All of it takes about a minute; a process that no longer answers must not keep us for ever.
pub(crate) const DEADLINE_SECONDS: u64 = 600;

/// A search by a tool may cost a fifth more than one by the program it is measured against.
pub(crate) const SEARCH_RATIO: Aim = Aim::AtMost(1.2);

/// Calls of each tool, and the tree they work on: 50,000 files of about 2 KB.
pub(crate) const TOOL_CALLS: usize = 9;
pub(crate) const TREE_DIRECTORIES: usize = 500;
pub(crate) const TREE_FILES_EACH: usize = 100;
pub(crate) const TREE_LINES: usize = 45;

/// A command is judged before anything is shown of it; a tenth of a millisecond is not noticed, even twenty
/// times a turn.
pub(crate) const VERDICT_MICROSECONDS: Aim = Aim::AtMost(100.0);

/// The user waits for the model anyway: what we add must not be felt.
pub(crate) const COMPACTION_MS: Aim = Aim::Below(5.0);
pub(crate) const COMPACTED_MESSAGES: usize = 10_000;
pub(crate) const COMPACTIONS: usize = 21;

/// Verdicts on each command of the corpus. Odd, so that the median is one of them.
pub(crate) const VERDICTS: usize = 9;

/// Holding a command must not be felt: below one frame, where most commands take longer by themselves.
pub(crate) const SANDBOXED_TRUE_MS: Aim = Aim::AtMost(15.0);

/// Commands that are run; each starts half a dozen processes, the noisiest figure.
pub(crate) const COMMANDS: usize = 41;

/// A call of a server's tool may cost a third more than with a bare `rmcp`, and than writing its line and
/// reading its answer.
pub(crate) const MCP_RATIO: Aim = Aim::AtMost(1.3);
pub(crate) const MCP_CALLS: usize = 1_001;

/// A model waits for it in the middle of its work: nothing beside its own time.
pub(crate) const TOOL_SEARCH_MS: Aim = Aim::Below(2.0);
pub(crate) const SEARCHED_TOOLS: usize = 5_000;
pub(crate) const TOOL_SEARCHES: usize = 101;

/// As many servers as a developer with everything has, and how often a session is started with them.
pub(crate) const MCP_SERVERS: usize = 10;
pub(crate) const MCP_STARTS: usize = 9;

/// Words in 100,000 messages, found while a key is pressed.
pub(crate) const SEARCH_MS: Aim = Aim::Below(20.0);
pub(crate) const SEARCHED_SESSIONS: usize = 50;
pub(crate) const SEARCHED_TURNS: usize = 1_000;
pub(crate) const SEARCHES: usize = 21;

/// Going back has to feel like a key press, whatever lies behind.
pub(crate) const REWIND_MS: Aim = Aim::Below(20.0);
pub(crate) const FORK_MS: Aim = Aim::Below(20.0);

/// An editor that opens the same session draws more slowly than this.
pub(crate) const LOADED_PER_SECOND: Aim = Aim::AtLeast(300_000.0);

/// Prompts of the session that is rewound and copied; as many answers.
pub(crate) const REWOUND_TURNS: usize = 5_000;
pub(crate) const REWINDS: usize = 5;

/// Nobody may notice that what a file held is kept before an edit.
pub(crate) const SNAPSHOT_MS: Aim = Aim::Below(0.5);

/// Turns of two edits each, with snapshots and without.
pub(crate) const SNAPSHOT_TURNS: usize = 200;

/// One answer over each way of a server, and how often.
pub(crate) const SERVED_DELTAS: u64 = SHORT_STREAM.deltas;
pub(crate) const SERVED_TURNS: usize = 15;

/// Frames, events and a socket may cost what is left.
pub(crate) const SERVED_SHARE: f64 = 0.6;

/// As many editors as a company has on one machine, and as many answers as its models give at once.
pub(crate) const SILENT_CLIENTS: usize = 1_000;
pub(crate) const STREAMING_CLIENTS: usize = 100;
pub(crate) const CONNECTION_KB: Aim = Aim::AtMost(60.0);

/// Small requests by which their slowest hundredth is known, and what that may have on top: below one frame.
pub(crate) const STATUS_REQUESTS: usize = 1_000;
pub(crate) const ADDED_MS: Aim = Aim::AtMost(10.0);

/// A page is there before one has looked up from the link.
pub(crate) const FIRST_PAINT_MS: Aim = Aim::Below(300.0);

/// As long as a session of some weeks.
pub(crate) const PAGE_TURNS: usize = 4;
pub(crate) const PAGE_PARTS: usize = 25_000;

/// A chat is there before one has looked up from the keys.
pub(crate) const FIRST_PROMPT_MS: Aim = Aim::Below(30.0);

/// Showing an answer may take half of what the better of the others takes.
pub(crate) const CHAT_CPU_RATIO: Aim = Aim::AtMost(0.5);

/// One frame at 60 a second, above the pause between two.
pub(crate) const FRAME_MS: Aim = Aim::AtMost(16.0);
pub(crate) const CHAT_RSS_MB: Aim = Aim::Below(30.0);
pub(crate) const ECHO_MS: Aim = Aim::Below(10.0);
pub(crate) const MENTION_MS: Aim = Aim::Below(30.0);

/// How often a chat is started, and how many keys are pressed while an answer streams.
pub(crate) const CHAT_STARTS: usize = 7;
pub(crate) const CHAT_KEYS: usize = 200;

/// An answer at the pace of a fast model, line by line as models write.
pub(crate) const CHAT_DELTAS: u64 = 5_000;
pub(crate) const CHAT_LINES: u64 = 100_000;
pub(crate) const MENTIONED_FILES: usize = 100_000;
