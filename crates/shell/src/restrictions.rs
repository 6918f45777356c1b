//! What must not be shown or changed, by the rules of the host. The reader asks about what a command may come
//! across without naming it; what a command names is for the host to judge.

use std::path::{Path, PathBuf};

/// The rules of a host, as far as a reader needs them.
pub trait Restrictions {
    /// Names that private keys have wherever they lie, in lower case.
    fn secret_names(&self) -> &[&str];

    /// Files and directories that are not shown, under every name they have. Not all of them exist.
    fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_>;

    /// Whether a file is not shown.
    fn hides(&self, path: &Path) -> bool;

    /// Whether a file must not be changed; what is hidden must not.
    fn protects(&self, path: &Path) -> bool;

    /// Whether some rule keeps files from being read. If not, `keeps` and `denies` are never true.
    fn has_rules(&self) -> bool;

    /// Whether a rule keeps a file from a command that was let into `directory`: denied, or asked for by
    /// itself.
    fn keeps(&self, file: &Path, directory: &Path) -> bool;

    /// Whether a rule forbids to read it.
    fn denies(&self, file: &Path) -> bool;
}
