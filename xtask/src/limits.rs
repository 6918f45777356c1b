//! Times and sizes the guard works with, each with its reason.

/// Lines of a source file without its tests. Beyond it a reader no longer sees the story at once.
pub(crate) const MAX_FILE_LINES: usize = 400;

/// Lines of a function from its name to its closing bracket: one screen.
pub(crate) const MAX_FUNCTION_LINES: usize = 60;

/// What one fuzz target gets with every test run: tens of thousands of inputs. Long hunts belong to `cargo
/// xtask soak`.
pub(crate) const FUZZ_SECONDS: u32 = 15;

/// Tests that are named at the end of a run, the slowest first.
pub(crate) const SLOWEST_TESTS: usize = 10;

/// Minutes of a soak whose length was not given.
pub(crate) const SOAK_MINUTES: u32 = 60;

/// Of a soak of n minutes the fuzz targets get about half: each n of these seconds on two cores.
pub(crate) const SOAK_FUZZ_SECONDS_PER_MINUTE: u32 = 5;

/// Seeds of each block of the simulation, per minute of a soak; a test run takes 320.
pub(crate) const SOAK_SEEDS_PER_MINUTE: u32 = 300;

/// Cases of each property, per minute of a soak; a test run takes 256.
pub(crate) const SOAK_CASES_PER_MINUTE: u32 = 300;

/// Kills, mount plans and real sandboxes are repeated once for each of these minutes.
pub(crate) const SOAK_MINUTES_PER_REPEAT: u32 = 6;

/// Enough to see that a target builds, starts and is guided by coverage.
pub(crate) const QUICK_FUZZ_SECONDS: u32 = 5;

/// One input that takes longer than this has found something quadratic.
pub(crate) const FUZZ_INPUT_TIMEOUT_SECONDS: u32 = 10;

/// Far above what a bounded parser may need for inputs of a few kilobytes.
pub(crate) const FUZZ_MEMORY_MB: u32 = 2048;

/// Long enough for nested and repeated structure, short enough for many runs a second.
pub(crate) const FUZZ_INPUT_BYTES: u32 = 4096;

/// The largest program that is handed out: what people wait for when they try it.
pub(crate) const PROGRAM_BYTES: u64 = 20 * 1024 * 1024;

/// Rows of the glossary: what a newcomer reads in one sitting.
pub(crate) const MAX_GLOSSARY_WORDS: usize = 25;

/// Columns of a comment: two files fit beside each other on a screen.
pub(crate) const MAX_COMMENT_COLUMNS: usize = 112;
