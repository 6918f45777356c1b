//! What a model has to know of the sandbox behind a command's output: why something could not be written or reached, and what
//! was undone. Holds nothing itself.

use attache_core::ports::tool::{NetworkGrant, WriteGrant};

use crate::sandbox::{Aftermath, Level, Sandbox};

/// What programs print when they find everything read-only.
const UNWRITABLE: [&str; 2] = ["Read-only file system", "EROFS"];

/// What they print when a file that they were let write is not theirs.
const REFUSED: [&str; 2] = ["Permission denied", "EACCES"];

/// What they print without a network: the C library, curl, git, pip, npm, cargo, go, wget, apt, and what they are made with.
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

/// What they print when nothing listens.
const UNANSWERED: [&str; 5] = [
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "Couldn't connect to server",
    "Could not connect to server",
];

const READ_ONLY_NOTE: &str = "this command ran without a question because it seems to only read, so it could write to \
                              $TMPDIR only. To write elsewhere, say so in the command line (a redirect, tee, cp): the user is asked then";

const OFFLINE_NOTE: &str =
    "this command ran without network; if it needs one, call it again with network: true";

const UNANSWERED_NOTE: &str = "this command ran without network, on a localhost of its own: to reach a server in the background, \
                               start both with network: true";

/// For the start of a command in the background.
const UNREACHABLE_NOTE: &str = "it runs without network: no other command can reach its ports. For a server, start it and what \
                                connects to it with network: true";

/// What the sandbox keeps from a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    is_read_only: bool,
    is_offline: bool,
    aftermath: Aftermath,
}

impl Held {
    pub(super) fn of(writes: WriteGrant, network: NetworkGrant, sandbox: &Sandbox) -> Self {
        let is_held = match sandbox.level() {
            Level::Full | Level::Reduced => true,
            Level::None => false,
        };
        Self {
            is_read_only: is_held && writes == WriteGrant::Withheld,
            is_offline: is_held && network == NetworkGrant::Withheld,
            aftermath: Aftermath::default(),
        }
    }

    /// Once it has run.
    pub(super) fn after(self, aftermath: Aftermath) -> Self {
        Self { aftermath, ..self }
    }

    /// For the model, behind the output: what was undone, and why the command seems to have failed.
    pub(super) fn notes(&self, output: &str) -> Vec<String> {
        let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
        let mut notes = self.aftermath.told.clone();
        if says(&UNWRITABLE) {
            notes.extend(self.is_read_only.then(|| READ_ONLY_NOTE.to_owned()));
        }
        if says(&UNWRITABLE) || says(&REFUSED) {
            notes.extend(self.aftermath.held.iter().cloned());
        }
        notes.extend((self.is_offline && says(&OFFLINE)).then(|| OFFLINE_NOTE.to_owned()));
        notes.extend((self.is_offline && says(&UNANSWERED)).then(|| UNANSWERED_NOTE.to_owned()));
        notes
    }

    /// For the model, when it starts in the background.
    pub(super) fn note_at_start(&self) -> Option<&'static str> {
        self.is_offline.then_some(UNREACHABLE_NOTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_for_want_of_a_network_is_known_in_the_words_of_each_program() {
        let offline = Held { is_offline: true, ..Held::default() };
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
            assert!(Held::default().notes(said).is_empty(), "{said}");
        }
        for said in [
            "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server",
            "ConnectionRefusedError: [Errno 111] Connection refused",
            "Error: connect ECONNREFUSED 127.0.0.1:8000",
            "dial tcp 127.0.0.1:8000: connect: connection refused",
        ] {
            assert_eq!(offline.notes(said), [UNANSWERED_NOTE], "{said}");
            assert!(Held::default().notes(said).is_empty(), "{said}");
        }
        assert!(offline.notes("error: expected `;`").is_empty());
        assert!(offline.notes("touch: Read-only file system").is_empty());
        let read_only = Held { is_read_only: true, ..offline };
        assert_eq!(read_only.notes("touch: Read-only file system"), [READ_ONLY_NOTE]);
    }
}
