//! The port to the host's credentials: how a user can log in, and what login and logout do. Keeps no key
//! itself.

use std::fmt::Debug;

use attache_core::ports::BoxFuture;

/// One way to log in, as clients offer it to their users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The id that clients pass to `authenticate`; unique among a host's logins.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What the user has to do; empty if the name says everything.
    pub description: String,
    /// How it is done.
    pub way: LoginWay,
}

/// How a user logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginWay {
    /// Through `authenticate`: it finds the key, or its answer tells the user what to do.
    Agent,
    /// The client runs this program in a terminal, with these arguments after its own. Offered only to clients
    /// that can do this.
    Terminal {
        /// Arguments to add to those that the agent was started with.
        arguments: Vec<String>,
        /// The whole command line, for clients that want it complete.
        command: CommandLine,
    },
}

/// A program in a form that a client can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables to add to those of the client's terminal.
    pub environment: Vec<(String, String)>,
}

/// The credentials of a host that manages them; other hosts have no such port.
pub trait Accounts: Send + Sync + Debug {
    /// All ways to log in, in the order to offer them.
    fn logins(&self) -> Vec<Login>;
    /// Looks again for the credentials of one login. The error tells the user what to do.
    fn authenticate(&self, id: &str) -> BoxFuture<'static, Result<(), String>>;
    /// Forgets every stored credential; does not touch variables of the environment. The error tells what is
    /// left.
    fn logout(&self) -> BoxFuture<'static, Result<(), String>>;
}
