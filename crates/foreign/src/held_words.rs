//! A command that an agent gives, for a sandbox, which starts everything in the session's root. Starts nothing.

use std::ffi::OsString;
use std::path::Path;

/// Runs the rest of its words in the directory that is the first.
const ENTER: &str = r#"cd "$1" && shift && exec "$@""#;

/// What is run, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldCommand<'a> {
    pub(crate) program: &'a str,
    pub(crate) arguments: &'a [String],
    /// What it gets beside the usual variables.
    pub(crate) environment: &'a [(String, String)],
    pub(crate) directory: &'a Path,
}

impl HeldCommand<'_> {
    /// Inside of the sandbox they enter the directory.
    pub(crate) fn words(self, root: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.directory != root {
            words.extend(["/bin/sh", "-c", ENTER, "sh"].map(OsString::from));
            words.push(self.directory.into());
        }
        words.push(self.program.into());
        words.extend(self.arguments.iter().map(OsString::from));
        words
    }

    pub(crate) fn variables(self) -> Vec<(OsString, OsString)> {
        let pairs = self.environment.iter();
        pairs.map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    /// What the sandbox lets through to it.
    pub(crate) fn kept(self) -> Vec<OsString> {
        self.environment.iter().map(|(name, _)| OsString::from(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_in_its_own_directory() {
        let arguments = ["-a b".to_owned()];
        let words = |directory: &str| {
            let directory = Path::new(directory);
            let command = HeldCommand { program: "ls", arguments: &arguments, environment: &[], directory };
            command.words(Path::new("/w"))
        };
        assert_eq!(words("/w"), ["ls", "-a b"]);
        let words = words("/w/a b");
        assert_eq!(words[..2], ["/bin/sh", "-c"]);
        assert_eq!(words[4..], ["/w/a b", "ls", "-a b"]);
    }
}
