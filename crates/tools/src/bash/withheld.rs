//! Why a command that nobody was asked about failed: it could not write. Says so; holds nothing itself.

use attache_core::ports::tool::WriteGrant;

use crate::sandbox::{Level, Sandbox};

/// What programs print when they find everything read-only, or no network.
const SIGNS: [&str; 6] = [
    "Read-only file system",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "EROFS",
    "ENETUNREACH",
];

const NOTE: &str = "\n[this command passed without a question because it only reads: it ran without network, and could \
                    write to $TMPDIR only. A command line that says what it changes or reaches is asked for.]";

/// Whether a command runs without the right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    ReadOnly,
    No,
}

impl Held {
    pub(super) fn of(writes: WriteGrant, sandbox: &Sandbox) -> Self {
        match (writes, sandbox.level()) {
            (WriteGrant::Withheld, Level::Full | Level::Reduced) => Self::ReadOnly,
            (WriteGrant::Withheld, Level::None) | (WriteGrant::Granted, _) => Self::No,
        }
    }

    /// For the model, behind the output of a command that seems to have failed for it.
    pub(super) fn note(self, output: &str) -> &'static str {
        match self {
            Self::ReadOnly if SIGNS.iter().any(|sign| output.contains(sign)) => NOTE,
            Self::ReadOnly | Self::No => "",
        }
    }
}
