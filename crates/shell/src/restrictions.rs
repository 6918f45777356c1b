//! What a command must not show or change, by the rules of the host. The reader asks about what a command may
//! come across without naming it; the host judges what a command names.

use std::path::{Path, PathBuf};

/// The rules of a host, as far as a reader needs them.
pub trait Restrictions {
    /// Names that private keys have in any directory, in lower case.
    fn secret_names(&self) -> &[&str];

    /// Hidden files and directories, under every name they have. Some of them may not exist.
    fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_>;

    /// Whether a file is hidden.
    fn hides(&self, path: &Path) -> bool;

    /// Whether a file must not be changed; hidden files must not.
    fn protects(&self, path: &Path) -> bool;

    /// Whether some rule keeps files from being read. If not, `keeps` and `denies` are never true.
    fn has_rules(&self) -> bool;

    /// Whether a rule keeps a file from a command that may read `directory`: the rule denies it, or asks for it
    /// separately.
    fn keeps(&self, file: &Path, directory: &Path) -> bool;

    /// Whether a rule forbids reading it.
    fn denies(&self, file: &Path) -> bool;
}
