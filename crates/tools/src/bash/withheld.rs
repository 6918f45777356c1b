//! What a model has to know of the sandbox behind a command's output: why something could not be written, and what was
//! undone. Holds nothing itself.

use attache_core::ports::tool::WriteGrant;

use crate::sandbox::{Aftermath, Level, Sandbox};

/// What programs print when they find something read-only, or no network.
const SIGNS: [&str; 6] = [
    "Read-only file system",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Could not resolve host",
    "EROFS",
    "ENETUNREACH",
];

const UNASKED: &str = "this command passed without a question because it only reads: it ran without network, and could \
                       write to $TMPDIR only. A command line that says what it changes or reaches is asked for.";

/// How a command was held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held(Aftermath);

impl Held {
    /// Before it runs.
    pub(super) fn of(writes: WriteGrant, sandbox: &Sandbox) -> Self {
        match (writes, sandbox.level()) {
            (WriteGrant::Withheld, Level::Full | Level::Reduced) => {
                Self(Aftermath { held: vec![UNASKED.to_owned()], told: Vec::new() })
            }
            (WriteGrant::Withheld, Level::None) | (WriteGrant::Granted, _) => Self::default(),
        }
    }

    /// Once it has run.
    pub(super) fn after(mut self, aftermath: Aftermath) -> Self {
        self.0.held.extend(aftermath.held);
        self.0.told.extend(aftermath.told);
        self
    }

    /// For the model, behind the output: what was undone, and why the command seems to have failed.
    pub(super) fn note(&self, output: &str) -> String {
        let Aftermath { held, told } = &self.0;
        let has_failed = SIGNS.iter().any(|sign| output.contains(sign));
        let held = held.iter().filter(|_| has_failed);
        told.iter().chain(held).map(|line| format!("\n[{line}]")).collect()
    }
}
