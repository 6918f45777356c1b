//! What a client does for a session instead of this machine: the texts of its editor, the terminals that it
//! shows.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::BoxFuture;
use crate::ids::CallId;

/// What the client said it can do. attache asks nothing else of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Returns texts from its editor.
    pub reads_texts: bool,
    /// Writes texts through its editor.
    pub writes_texts: bool,
    /// Shows commands in terminals of its own.
    pub terminals: bool,
    /// Shows forms to its user.
    pub forms: bool,
    /// Shows its user addresses to visit.
    pub addresses: bool,
}

/// Something that a party other than the agent, such as an MCP server, wants to know from the user during a
/// call.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The call during which it asks.
    pub call_id: CallId,
    /// The question, for the user.
    pub message: String,
    /// JSON Schema of a flat object.
    pub schema: Value,
}

/// The outcome of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The user filled in the fields.
    Filled(Value),
    /// The user refused to fill it in.
    Declined,
    /// The user closed it without an answer.
    Dismissed,
}

/// An address that a party other than the agent wants the user to visit. Only the user opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressOffer {
    /// `None`: a command of the user needs it, not a call.
    pub call_id: Option<CallId>,
    /// The id of this offer among all offers of this client.
    pub id: String,
    /// Who wants it, where it leads and why.
    pub message: String,
    /// The whole address.
    pub url: String,
}

/// Something that a call may do only if the user permits it this once, whatever rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The call that would do it.
    pub call_id: CallId,
    /// What it would do, in one line.
    pub title: String,
    /// The full details.
    pub text: String,
}

/// The outcome of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitAnswer {
    /// This once.
    Allowed,
    /// Not this time.
    Refused,
}

/// Which lines of a text to read; `first` counts from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// From 1 on; `None`: the first.
    pub first: Option<u32>,
    /// How many; `None`: all the rest.
    pub count: Option<u32>,
}

/// Why a client did not do what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum DelegateError {
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    Silent,
    /// The client refused, in its own words.
    #[error("the client refused: {0}")]
    Refused(String),
    /// The client has left.
    #[error("the client is gone")]
    Gone,
}

/// A command for a terminal of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The program to start.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables beside the usual ones.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// The client keeps only this much of the end of the output.
    pub output_bytes: u64,
}

/// How the command in a terminal ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its exit code, if it had one.
    pub code: Option<u32>,
    /// The signal that ended it, if one did.
    pub signal: Option<String>,
}

/// What a terminal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The text.
    pub text: String,
    /// The beginning of the output was cut.
    pub truncated: bool,
    /// `None` while the command runs.
    pub exit: Option<TerminalExit>,
}

/// The client's side of a session. Every method has its own deadline and then fails with `Silent`; dropping a
/// future withdraws the request.
pub trait Delegate: Send + Sync + Debug {
    /// What may be asked now. A client that did not answer too often no longer offers texts, and one whose
    /// terminals were lost no longer offers terminals.
    fn offers(&self) -> Offers;
    /// The text from its editor, unsaved changes included.
    fn read_text(&self, path: &Path, lines: Lines) -> BoxFuture<'static, Result<String, DelegateError>>;
    /// Replaces a text through the editor.
    fn write_text(&self, path: &Path, text: String) -> BoxFuture<'static, Result<(), DelegateError>>;
    /// Starts a program in a terminal of the client.
    fn open_terminal(
        &self,
        command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>>;
    /// The user's answer to a form; waits for it without a time limit.
    fn fill(&self, _form: Form) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it puts no forms to its user".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// The user's answer to an address: a filled answer has no fields and means that they will visit it.
    fn offer_address(&self, _address: AddressOffer) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it shows its user no addresses".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// The purpose of an address is fulfilled.
    fn address_done(&self, _id: String) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    /// The user's answer to one more thing that a call would do; waits for it without a time limit.
    fn permit(&self, _permit: Permit) -> BoxFuture<'static, Result<PermitAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it puts no such question to its user".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// From now on the client offers no terminals; the user learns so.
    fn terminals_lost(&self, loss: TerminalLoss) -> BoxFuture<'static, ()>;
}

/// Why commands are no longer shown in terminals of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalLoss {
    /// The client opened none.
    NotOpened(DelegateError),
    /// The client opened one, but our program did not start in it.
    NotStarted,
    /// The client ran a command in its own way, outside of the sandbox.
    Unheld,
}

/// A terminal that the client has opened. The code that opened it has to release it, however the call ends.
pub trait Terminal: Send + Sync + Debug {
    /// The id that the client gave it.
    fn id(&self) -> &str;
    /// What it shows now.
    fn output(&self) -> BoxFuture<'static, Result<TerminalOutput, DelegateError>>;
    /// Waits without a time limit.
    fn wait_for_exit(&self) -> BoxFuture<'static, Result<TerminalExit, DelegateError>>;
    /// Ends the command in it; the terminal stays.
    fn kill(&self) -> BoxFuture<'static, Result<(), DelegateError>>;
    /// Releases the terminal: its id becomes invalid.
    fn release(&self) -> BoxFuture<'static, Result<(), DelegateError>>;
}
