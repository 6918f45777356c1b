//! Defaults and bounds of the settings, each with its reason.

pub(super) use attache_core::limits::USUAL_STEPS as MAX_STEPS;

/// More steps than this cost more than any turn is worth, so a larger number is a mistake.
pub(super) const MAX_MAX_STEPS: u32 = 100_000;

/// A prompt with a 20 MiB attachment in base64 fits.
pub(super) const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Below the minimum even the editor's `initialize` may not fit; above the maximum one line could exhaust the
/// machine's memory.
pub(super) const MAX_LINE_BYTES_RANGE: (usize, usize) = (64 * 1024, 1024 * 1024 * 1024);

/// No model has more tokens. Larger counts could overflow 64-bit sums.
pub(super) const MAX_TOKENS: u64 = 1_000_000_000;

/// No model costs more dollars for a million tokens, so a larger number has the wrong unit.
pub(super) const MAX_PRICE: f64 = 1_000_000.0;

/// Below it a slow network looks like silence, above it users give up.
pub(super) const STREAM_IDLE_RANGE_MS: (u64, u64) = (100, 3_600_000);

/// A configuration is written by hand; anything larger is the wrong file.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Test scripts may contain attachments; we hold the file in memory once.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// How many characters of a wrong value a message repeats.
pub(super) const MAX_SHOWN_CHARACTERS: usize = 60;
