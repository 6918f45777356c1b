//! The official servers over HTTP and WebSocket, with the smallest agent there is: it has its updates at once
//! and stores nothing. Knows no figure.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::super::Place;
use super::super::aims::{DELTA, SERVED_DELTAS};
use super::Served;

#[derive(Clone, Copy, Debug)]
pub(super) enum Rival {
    RustCrate,
    TypeScriptSdk,
}

pub(super) const RIVALS: [Rival; 2] = [Rival::RustCrate, Rival::TypeScriptSdk];

impl Rival {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RustCrate => "agent-client-protocol-http 5.0",
            Self::TypeScriptSdk => "the TypeScript SDK 2.4",
        }
    }

    /// What has to be there: `cargo xtask bench` builds the one, `cargo xtask peers` installs the other.
    fn program(self, place: &Place) -> PathBuf {
        match self {
            Self::RustCrate => place.target().join("acp-http/release/attache-bench-acp-http"),
            Self::TypeScriptSdk => place.target().join("peers/acp-sdk/serve.mjs"),
        }
    }

    /// Node keeps the head of an answer until there is something of its body.
    fn stream_start(self) -> Option<&'static [u8]> {
        match self {
            Self::RustCrate => Some(b"\r\n\r\n"),
            Self::TypeScriptSdk => None,
        }
    }

    /// `None` where it is not installed.
    pub(super) fn start(self, place: &Place) -> Result<Option<Served>> {
        let program = self.program(place);
        if !program.is_file() {
            return Ok(None);
        }
        let mut command = match self {
            Self::RustCrate => Command::new(program),
            Self::TypeScriptSdk => {
                let mut command = Command::new("node");
                command.arg(program);
                command
            }
        };
        command.args([&SERVED_DELTAS.to_string(), DELTA]);
        let (child, mut told) = Served::child(command.stdout(std::process::Stdio::piped()))?;
        match told.next() {
            Some(address) => {
                let (token, workspace) = (String::new(), "/".to_owned());
                let stream_start = self.stream_start();
                Ok(Some(Served { child, address: address?, token, workspace, stream_start }))
            }
            None => bail!("{} has ended", self.name()),
        }
    }
}
