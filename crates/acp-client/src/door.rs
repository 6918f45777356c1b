//! Ways to an agent that can be gone again: whoever has lost one opens the door a second time and loads its
//! session.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use attache_rpc::json_lines;

use crate::failure::ClientFailure;
use crate::limits::LINE_BYTES;
use crate::process;
use crate::words::words_of;
use crate::{Connected, Introduction, connect};

pub type DoorFuture<'a> = Pin<Box<dyn Future<Output = Result<Connected, ClientFailure>> + Send + 'a>>;

/// Opens connections to one kind of agent.
pub trait AgentDoor: Debug + Send + Sync {
    /// Opens a connection; starts the agent process if there is none.
    fn open(&self, introduction: Introduction) -> DoorFuture<'_>;
}

/// An agent that is a program: each connection starts it anew.
#[derive(Clone, Debug)]
pub struct CommandDoor {
    words: Vec<String>,
    /// Where it is started.
    directory: PathBuf,
    /// On top of our own environment.
    variables: Vec<(OsString, OsString)>,
}

impl CommandDoor {
    /// `line` as it would be typed: "goose acp".
    pub fn new(line: &str, directory: PathBuf) -> Result<Self, ClientFailure> {
        Ok(Self { words: words_of(line)?, directory, variables: Vec::new() })
    }

    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

impl AgentDoor for CommandDoor {
    fn open(&self, introduction: Introduction) -> DoorFuture<'_> {
        Box::pin(async move {
            let (process, stdout, stdin) = process::start(&self.words, &self.directory, &self.variables)?;
            let (source, sink) = json_lines((stdout, stdin), LINE_BYTES);
            connect(source, sink, Some(Arc::new(process)), introduction).await
        })
    }
}
