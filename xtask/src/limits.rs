//! Times and sizes the guard works with, each with its reason.

/// Lines of a source file without its tests. Beyond it a reader no longer sees the story at once.
pub(crate) const MAX_FILE_LINES: usize = 400;

/// What one fuzz target gets with every test run: tens of thousands of inputs. Long hunts belong to `cargo xtask soak`.
pub(crate) const FUZZ_SECONDS: u32 = 15;

/// What one fuzz target gets in a soak.
pub(crate) const SOAK_FUZZ_SECONDS: u32 = 300;

/// Seeds of each block of the simulation in a soak; a test run takes a few hundred.
pub(crate) const SOAK_SEEDS: u32 = 20_000;

/// Enough to see that a target builds, starts and is guided by coverage.
pub(crate) const QUICK_FUZZ_SECONDS: u32 = 5;

/// One input that takes longer than this has found something quadratic.
pub(crate) const FUZZ_INPUT_TIMEOUT_SECONDS: u32 = 10;

/// Far above what a bounded parser may need for inputs of a few kilobytes.
pub(crate) const FUZZ_MEMORY_MB: u32 = 2048;

/// Long enough for nested and repeated structure, short enough for many runs a second.
pub(crate) const FUZZ_INPUT_BYTES: u32 = 4096;
