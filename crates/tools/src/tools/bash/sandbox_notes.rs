//! What a model has to know about the sandbox after a command's output: why something could not be written or
//! reached, and what was undone. Enforces nothing itself.

use std::path::PathBuf;

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};
use attache_core::watchdog::Commands;

use attache_sandbox::temporary::{TEMPORARY_IS_PRIVATE, misses_hidden};
use attache_sandbox::{Aftermath, Level};

use super::granted::GrantedCommand;

/// What programs print if everything is read-only.
const UNWRITABLE: [&str; 2] = ["Read-only file system", "EROFS"];

/// What they print if a file is full.
const FULL: [&str; 2] = ["File too large", "EFBIG"];

/// In addition to the first: what they print when they replace, move or remove something that a mount holds.
const BUSY: [&str; 2] = ["Device or resource busy", "EBUSY"];

/// In addition to both: what they print when they create something where a place-holder is.
const IN_THE_WAY: [&str; 6] =
    ["File exists", "file already exists", "EEXIST", "Not a directory", "not a directory", "ENOTDIR"];

/// What they print if they may write a file but do not own it.
const REFUSED: [&str; 2] = ["Permission denied", "EACCES"];

/// What they print without a network: the C library, curl, git, pip, npm, cargo, go, wget, apt, and what they
/// are made with.
const OFFLINE: [&str; 18] = [
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Temporary failure resolving",
    "Name or service not known",
    "nodename nor servname provided",
    "Could not resolve host",
    "Couldn't resolve host",
    "could not resolve proxy",
    "unable to resolve host address",
    "failed to lookup address information",
    "Failed to establish a new connection",
    "getaddrinfo EAI_AGAIN",
    "getaddrinfo ENOTFOUND",
    "ENETUNREACH",
    "dial tcp: lookup",
    "connect: network is unreachable",
    "UnknownHostException",
    "spurious network error",
];

/// What they print if no server listens.
const UNANSWERED: [&str; 5] = [
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "Couldn't connect to server",
    "Could not connect to server",
];

const READ_ONLY_NOTE: &str = "this command ran without a question because it seems to only read, so it could write to \
                              $TMPDIR only. To write elsewhere, say so in the command line (a redirect, tee, cp): the user is asked then";

/// The same for an agent whose commands may only read: no other wording helps it.
const ONLY_READS_NOTE: &str = "your commands may only read, so this one could write to $TMPDIR only. Say what would have to be written, and leave \
                               it to the user or to an agent that may";

const FULL_NOTE: &str = "this command ran without a question because it seems to only read, so a file in $TMPDIR can have 64 MiB. \
                         To write more, write to the workspace: the user is asked then";

/// The same for an agent whose commands may only read.
const ONLY_READS_FULL_NOTE: &str =
    "your commands may only read, so a file in $TMPDIR can have 64 MiB: keep less of the output";

const OUTSIDE_NOTE: &str =
    "commands can write to the workspace, to directories that the user granted and to $TMPDIR only";

const OFFLINE_NOTE: &str =
    "this command ran without network; if it needs one, call it again with network: true";

const UNANSWERED_NOTE: &str = "this command ran without network, on a localhost of its own, where no server of another command is: \
                               start the server and what connects to it in one command (`server & client; kill $!`). Where the network can be granted, both \
                               with network: true meet, too";

/// Returned when a background command starts.
const UNREACHABLE_NOTE: &str = "it runs without network: no other command can reach its ports. Start a server and what connects to it \
                                in one command instead (`server & client; kill $!`); where the network can be granted, both with network: true meet, too";

/// Appended to the reason why a file in `/tmp` is missing.
const KEEP_IN_SCRATCH: &str = "Keep files for later commands in $TMPDIR";

/// What the sandbox denies to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SandboxLimits {
    is_held: bool,
    is_read_only: bool,
    commands: Commands,
    is_offline: bool,
    /// The command has its own `/tmp`, in which only these directories are the machine's.
    own_temporary: Option<Vec<PathBuf>>,
    /// Whether its words name localhost.
    reaches_itself: bool,
    aftermath: Aftermath,
}

impl SandboxLimits {
    pub(super) fn of(granted: &GrantedCommand) -> Self {
        let level = granted.sandbox.level();
        let is_held = match level {
            Level::Full | Level::Reduced => true,
            Level::None => false,
        };
        Self {
            is_held,
            is_read_only: is_held && granted.writes == WriteGrant::Withheld,
            commands: granted.commands,
            is_offline: is_held && granted.network == NetworkGrant::Withheld,
            reaches_itself: ["localhost", "127.0.0.1", "[::1]"]
                .iter()
                .any(|name| granted.command.contains(name)),
            own_temporary: (level == Level::Full).then(|| visible_directories(&granted.site)),
            aftermath: Aftermath::default(),
        }
    }

    /// Adds what is known after it has run.
    pub(super) fn after(self, aftermath: Aftermath) -> Self {
        Self { aftermath, ..self }
    }

    /// For the model, after the output: what was undone, and why the command probably failed.
    pub(super) fn notes(&self, output: &str) -> Vec<String> {
        let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let mut notes = self.aftermath.told.clone();
        let (read_only, full) = match self.commands {
            Commands::Any => (READ_ONLY_NOTE, FULL_NOTE),
            Commands::OnlyReading => (ONLY_READS_NOTE, ONLY_READS_FULL_NOTE),
        };
        notes.extend((self.is_read_only && says(&UNWRITABLE)).then(|| read_only.to_owned()));
        notes.extend((self.is_read_only && says(&FULL)).then(|| full.to_owned()));
        if !self.is_read_only {
            notes.extend(self.protected_in(output));
        }
        if says(&UNWRITABLE) || says(&REFUSED) {
            notes.extend(self.aftermath.held.iter().cloned());
        }
        if says(&UNWRITABLE) && notes.is_empty() {
            notes.extend(self.is_held.then(|| OUTSIDE_NOTE.to_owned()));
        }
        let temporary_note = || format!("{TEMPORARY_IS_PRIVATE}. {KEEP_IN_SCRATCH}");
        notes.extend(self.misses_temporary(output).then(temporary_note));
        notes.extend((self.is_offline && says(&OFFLINE)).then(|| OFFLINE_NOTE.to_owned()));
        // `curl -s` prints nothing.
        let is_unanswered = says(&UNANSWERED) || self.reaches_itself && output.trim().is_empty();
        notes.extend((self.is_offline && is_unanswered).then(|| UNANSWERED_NOTE.to_owned()));
        notes
    }

    /// Whether a program failed to find a file of the machine's `/tmp`, or of an earlier command's.
    fn misses_temporary(&self, output: &str) -> bool {
        self.own_temporary.as_deref().is_some_and(|visible| misses_hidden(output, visible))
    }

    /// The protected name at which a program failed: the longest one that its output mentions.
    fn protected_in(&self, output: &str) -> Option<String> {
        let Aftermath { protected, absent, .. } = &self.aftermath;
        // A missing directory may have a place-holder without write permission.
        let unwritable = || UNWRITABLE.iter().chain(&BUSY).chain(&REFUSED).copied();
        if let Some(name) = failed_at(absent, output, unwritable().chain(IN_THE_WAY)) {
            return Some(format!(
                "{name} does not exist, and no command can make it: a place-holder stands there while one runs, because the \
                 user's own programs run or obey what is in it. Tell the user what to put there"
            ));
        }
        let name = failed_at(protected, output, unwritable())?;
        Some(format!(
            "{name} is protected: commands can't change it, because the user's own programs run or obey what is in it. \
             Tell the user what to do there"
        ))
    }

    /// For the model, when the command starts in the background. A command known to only read is no server.
    pub(super) fn note_at_start(&self) -> Option<&'static str> {
        (self.is_offline && !self.is_read_only).then_some(UNREACHABLE_NOTE)
    }
}

/// The longest of these names in a line that also has one of these signs.
fn failed_at<'a>(
    names: &'a [String],
    output: &str,
    signs: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'a String> {
    let failures = || output.lines().filter(|line| signs.clone().any(|sign| line.contains(sign)));
    let is_meant = |name: &&String| failures().any(|line| speaks_of(line, name));
    names.iter().filter(is_meant).max_by_key(|name| name.len())
}

/// As a whole name: `.vscodeignore` does not mention `.vscode`.
fn speaks_of(line: &str, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    line.match_indices(name).any(|(place, _)| {
        !line[..place].ends_with(is_of_name) && !line[place + name.len()..].starts_with(is_of_name)
    })
}

fn visible_directories(site: &Site) -> Vec<PathBuf> {
    site.workspace.roots().chain(site.granted.iter()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_for_want_of_a_network_is_known_in_the_words_of_each_program() {
        let offline = SandboxLimits { is_offline: true, ..SandboxLimits::default() };
        for said in [
            "curl: (6) Could not resolve host: crates.io",
            "wget: unable to resolve host address 'x'",
            "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
            "WARNING: Retrying … NewConnectionError('<…>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')",
            "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
            "warning: spurious network error (3 tries remaining): [6] Could not resolve hostname",
            "go: x: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: no such host",
            "W: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'",
            "java.net.UnknownHostException: repo.maven.apache.org",
            "error: error sending request for url: dns error: failed to lookup address information: x",
        ] {
            assert_eq!(offline.notes(said), [OFFLINE_NOTE], "{said}");
            assert!(SandboxLimits::default().notes(said).is_empty(), "{said}");
        }
        for said in [
            "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server",
            "ConnectionRefusedError: [Errno 111] Connection refused",
            "Error: connect ECONNREFUSED 127.0.0.1:8000",
            "dial tcp 127.0.0.1:8000: connect: connection refused",
        ] {
            assert_eq!(offline.notes(said), [UNANSWERED_NOTE], "{said}");
            assert!(SandboxLimits::default().notes(said).is_empty(), "{said}");
        }
        assert!(offline.notes("error: expected `;`").is_empty() && offline.notes("").is_empty());
        let silent = SandboxLimits { reaches_itself: true, ..offline.clone() };
        assert_eq!(silent.notes("\n"), [UNANSWERED_NOTE]);
        assert!(silent.notes("<html>").is_empty());
        assert!(offline.notes("touch: Read-only file system").is_empty());
        let read_only = SandboxLimits { is_read_only: true, ..offline };
        assert_eq!(read_only.notes("touch: Read-only file system"), [READ_ONLY_NOTE]);
        assert_eq!(read_only.notes("cat: write error: File too large"), [FULL_NOTE]);
        let only_reads = SandboxLimits { commands: Commands::OnlyReading, ..read_only };
        assert_eq!(only_reads.notes("touch: Read-only file system"), [ONLY_READS_NOTE]);
        assert_eq!(only_reads.notes("cat: write error: File too large"), [ONLY_READS_FULL_NOTE]);
        let held = SandboxLimits { is_held: true, ..SandboxLimits::default() };
        assert_eq!(held.notes("OSError: [Errno 30] Read-only file system: '/etc/x'"), [OUTSIDE_NOTE]);
    }

    #[test]
    fn what_is_missing_in_a_tmp_of_its_own_is_explained() {
        let own_temporary = Some(vec!["/tmp/project".into()]);
        let own = SandboxLimits { own_temporary, ..SandboxLimits::default() };
        for said in [
            "python3: can't open file '/tmp/x.py': [Errno 2] No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: '/var/tmp/a/b.json'",
            "bash: line 1: /tmp/x.sh: No such file or directory",
            "Error: Cannot find module '/tmp/x.js'",
            "Error: ENOENT: no such file or directory, open '/tmp/x'",
            "cc1: fatal error: /tmp/x.c: No such file or directory",
        ] {
            assert_eq!(own.notes(said), [format!("{TEMPORARY_IS_PRIVATE}. {KEEP_IN_SCRATCH}")], "{said}");
            assert!(SandboxLimits::default().notes(said).is_empty(), "{said}");
        }
        for said in [
            "cat: /tmp/project/x: No such file or directory",
            "cat: x/tmp/y: No such file or directory",
            "cat: /tmpfs: No such file or directory",
            "/tmp/x: syntax error",
        ] {
            assert!(own.notes(said).is_empty(), "{said}");
        }
    }

    #[test]
    fn only_what_may_be_a_server_is_told_that_no_one_reaches_it() {
        let server = SandboxLimits { is_offline: true, ..SandboxLimits::default() };
        assert_eq!(server.note_at_start(), Some(UNREACHABLE_NOTE));
        assert_eq!(SandboxLimits { is_read_only: true, ..server }.note_at_start(), None);
    }

    #[test]
    fn a_failure_at_a_protected_name_says_so() {
        let protected = [".git/config", ".git/hooks", ".git", ".vscode"].map(str::to_owned).into();
        let held = SandboxLimits {
            aftermath: Aftermath { protected, ..Aftermath::default() },
            ..SandboxLimits::default()
        };
        for (said, name) in [
            ("error: could not write config file .git/config: Device or resource busy", ".git/config"),
            ("fatal: x/../.git/hooks/pre-commit: Read-only file system", ".git/hooks"),
            ("mv: cannot move '.vscode' to 'x': Device or resource busy", ".vscode"),
            ("Error: EROFS: read-only file system, open '/w/.vscode/a.json'", ".vscode"),
            ("bash: .vscode/x: Permission denied", ".vscode"),
        ] {
            let notes = held.notes(said);
            assert!(
                notes.len() == 1 && notes[0].starts_with(&format!("{name} is protected:")),
                "{said}: {notes:?}"
            );
        }
        let absent = [".vscode", ".git/config.worktree"].map(str::to_owned).into();
        let missing = SandboxLimits {
            aftermath: Aftermath { absent, ..Aftermath::default() },
            ..SandboxLimits::default()
        };
        for (said, name) in [
            ("mkdir: cannot create directory '.vscode': File exists", ".vscode"),
            ("bash: line 1: .vscode/settings.json: Not a directory", ".vscode"),
            ("bash: line 1: .git/config.worktree: Read-only file system", ".git/config.worktree"),
        ] {
            let notes = missing.notes(said);
            assert!(
                notes.len() == 1 && notes[0].starts_with(&format!("{name} does not exist")),
                "{said}: {notes:?}"
            );
        }
        assert!(missing.notes("mkdir: cannot create directory '.vscode-test': File exists").is_empty());
        for said in [
            "umount: /mnt: Device or resource busy",
            "cat .git/config\ntouch: /x: Read-only file system",
            "bash: .vscode-server/x: Permission denied",
            "bash: a.git: Permission denied",
        ] {
            assert!(held.notes(said).is_empty(), "{said}");
        }
    }
}
