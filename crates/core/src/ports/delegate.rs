//! What a client does for a session instead of this machine: the texts of its editor, the terminals it shows.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::BoxFuture;
use crate::ids::CallId;

/// What the client said it can do. Nothing else is asked of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Gives texts as its editor has them.
    pub reads_texts: bool,
    /// Writes texts through its editor.
    pub writes_texts: bool,
    /// Shows commands in terminals of its own.
    pub terminals: bool,
    /// Puts forms to its user.
    pub forms: bool,
    /// Shows its user addresses to visit.
    pub addresses: bool,
}

/// What somebody else than the agent wants to know of the user, in the middle of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The call that wants to know.
    pub call_id: CallId,
    /// What is asked, in words for the user.
    pub message: String,
    /// JSON Schema of a flat object.
    pub schema: Value,
}

/// What came of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// With the fields of the form.
    Filled(Value),
    /// The user would not fill it in.
    Declined,
    /// Put aside without an answer.
    Dismissed,
}

/// An address that somebody else than the agent wants the user to visit. Nobody but the user opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressOffer {
    /// `None`: no call wants it, but somebody who typed a command.
    pub call_id: Option<CallId>,
    /// Of this offer, among all of this client.
    pub id: String,
    /// Who wants it, where it leads and why.
    pub message: String,
    /// The whole address.
    pub url: String,
}

/// Something that a call does only with the user's word for this once, whatever rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The call that would do it.
    pub call_id: CallId,
    /// What it would do, in a line.
    pub title: String,
    /// All that it is about.
    pub text: String,
}

/// What came of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitAnswer {
    /// This once.
    Allowed,
    /// Not this time.
    Refused,
}

/// The lines wanted of a text; `first` is 1-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// From 1 on; `None`: the first.
    pub first: Option<u32>,
    /// How many; `None`: all that follow.
    pub count: Option<u32>,
}

/// Why a client did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum DelegateError {
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    Silent,
    /// In the client's own words.
    #[error("the client refused: {0}")]
    Refused(String),
    /// The client has left.
    #[error("the client is gone")]
    Gone,
}

/// A command for a terminal of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCommand {
    /// What is started.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What it is told beside the usual variables.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// The client keeps the end of the output from here on.
    pub output_bytes: u64,
}

/// How what ran in a terminal ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its exit code, where it had one.
    pub code: Option<u32>,
    /// The signal that ended it, where one did.
    pub signal: Option<String>,
}

/// What a terminal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The text.
    pub text: String,
    /// There was more at the beginning.
    pub truncated: bool,
    /// `None` while the command runs.
    pub exit: Option<TerminalExit>,
}

/// The client's side of a session. Every method has its own dead-line and ends with `Silent`; dropping a future
/// withdraws the request.
pub trait Delegate: Send + Sync + Debug {
    /// What may be asked now; a client that fell silent too often offers no texts any more, and no terminals
    /// one whose were lost.
    fn offers(&self) -> Offers;
    /// The text as its editor has it, unsaved changes included.
    fn read_text(&self, path: &Path, lines: Lines) -> BoxFuture<'static, Result<String, DelegateError>>;
    /// Replaces a text through the editor.
    fn write_text(&self, path: &Path, text: String) -> BoxFuture<'static, Result<(), DelegateError>>;
    /// Starts a program in a terminal of the client.
    fn open_terminal(
        &self,
        command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>>;
    /// What the user says to a form; waits for as long as that takes.
    fn fill(&self, _form: Form) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it puts no forms to its user".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// What the user says to an address: a filled answer has no fields and means that they will go there.
    fn offer_address(&self, _address: AddressOffer) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it shows its user no addresses".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// What an address was for is done.
    fn address_done(&self, _id: String) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    /// What the user says to one more thing that a call would do; waits for as long as that takes.
    fn permit(&self, _permit: Permit) -> BoxFuture<'static, Result<PermitAnswer, DelegateError>> {
        let refused = DelegateError::Refused("it puts no such question to its user".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }
    /// From now on it offers no terminals; the user is told.
    fn terminals_lost(&self, loss: TerminalLoss) -> BoxFuture<'static, ()>;
}

/// Why commands are not shown in terminals of the client any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalLoss {
    /// It opened none.
    NotOpened(DelegateError),
    /// It opened one, but our program did not begin there.
    NotStarted,
    /// It ran a command by means of its own, outside of the sandbox.
    Unheld,
}

/// A terminal that the client has opened. Whoever opened it releases it, however the call ends.
pub trait Terminal: Send + Sync + Debug {
    /// As the client named it.
    fn id(&self) -> &str;
    /// What it shows now.
    fn output(&self) -> BoxFuture<'static, Result<TerminalOutput, DelegateError>>;
    /// Waits as long as it takes.
    fn wait_for_exit(&self) -> BoxFuture<'static, Result<TerminalExit, DelegateError>>;
    /// Ends what runs there; the terminal stays.
    fn kill(&self) -> BoxFuture<'static, Result<(), DelegateError>>;
    /// Gives the terminal back: its id means nothing any more.
    fn release(&self) -> BoxFuture<'static, Result<(), DelegateError>>;
}
