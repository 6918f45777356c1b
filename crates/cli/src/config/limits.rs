//! Defaults and bounds of the settings, each with its reason.

pub(super) use attache_core::limits::USUAL_STEPS as MAX_STEPS;

/// More steps than this cost more than any turn is worth; a larger number is a slip.
pub(super) const MAX_MAX_STEPS: u32 = 100_000;

/// A prompt with a 20 MiB attachment in base64 fits.
pub(super) const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Below it not even the editor's `initialize` is sure to fit, above it one line could take the whole machine.
pub(super) const MAX_LINE_BYTES_RANGE: (usize, usize) = (64 * 1024, 1024 * 1024 * 1024);

/// Token counts above this are no model's; they would overflow sums kept as 64-bit numbers.
pub(super) const MAX_TOKENS: u64 = 1_000_000_000;

/// No model costs more dollars for a million tokens; a larger number is a slip of the unit.
pub(super) const MAX_PRICE: f64 = 1_000_000.0;

/// Below it a slow network looks like silence, above it users give up.
pub(super) const STREAM_IDLE_RANGE_MS: (u64, u64) = (100, 3_600_000);

/// A configuration is written by hand; anything larger is the wrong file.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Scripts of tests may carry attachments; held in memory once.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// How much of a wrong value a message repeats.
pub(super) const MAX_SHOWN_CHARACTERS: usize = 60;
