//! The port to the host's credentials: how a user can log in, and what logging in and out does. Keeps no key
//! itself.

use std::fmt::Debug;

use attache_core::ports::BoxFuture;

/// One way to log in, as clients offer it to their users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// What `authenticate` is called with; unique among the ways of a host.
    pub id: String,
    /// As people read it.
    pub name: String,
    /// What the user has to do; empty when the name says it all.
    pub description: String,
    /// How it is done.
    pub way: LoginWay,
}

/// How somebody logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginWay {
    /// `authenticate` does it: the key is found, or the answer tells what to do.
    Agent,
    /// The client runs this very program in a terminal, with these arguments behind its own. Offered only to
    /// clients that can.
    Terminal {
        /// Behind those that the agent was started with.
        arguments: Vec<String>,
        /// The same as a whole, for clients that are told what to run.
        command: CommandLine,
    },
}

/// A program as a client can start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Beside what the client's terminal has.
    pub environment: Vec<(String, String)>,
}

/// The credentials of a host that manages them; a host without has no such port.
pub trait Accounts: Send + Sync + Debug {
    /// All ways to log in, in the order to offer them.
    fn logins(&self) -> Vec<Login>;
    /// Looks for the credentials of one of them again. The error tells the user what to do.
    fn authenticate(&self, id: &str) -> BoxFuture<'static, Result<(), String>>;
    /// Forgets every stored credential; what the environment says stays. The error tells what is left.
    fn logout(&self) -> BoxFuture<'static, Result<(), String>>;
}
