//! Size limits of the chunk modules, each with its reason.

/// Longest text delta a replay makes: small enough for any reader's queue, large enough that a long text is few
/// chunks.
pub(crate) const REPLAY_DELTA_BYTES: usize = 16 * 1024;
