//! What a client does for a session instead of this machine: texts and terminals, over its connection. Does not
//! decide what may be touched; the core and the tools decided that before they ask here.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ClientCapabilities, CompleteElicitationNotification, CreateTerminalRequest, CreateTerminalResponse,
    EnvVariable, ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
};
use attache_core::hub::Hub;
use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::ports::delegate::{
    AddressOffer, Delegate, DelegateError, Form, FormAnswer, Lines, Offers, Permit, PermitAnswer, Terminal,
    TerminalCommand, TerminalLoss,
};
use attache_rpc::{Peer, RequestError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::ClientFs;
use super::forwarder::ForwarderCommand;
use super::terminal::ClientTerminal;
use crate::from_wire;
use crate::limits::{FS_DEADLINE, REFUSAL_CHARS, SILENCES, TERMINAL_DEADLINE};
use crate::to_wire::{address_request, foreign_form, permit_request};

/// What the client offered in `initialize` to do itself, as far as we want it.
pub(super) fn offers(capabilities: &ClientCapabilities, wanted: ClientFs) -> Offers {
    let elicitation = capabilities.elicitation.as_ref();
    let forms = elicitation.is_some_and(|elicitation| elicitation.supports_form());
    let addresses = elicitation.is_some_and(|elicitation| elicitation.supports_url());
    match wanted {
        ClientFs::Never => Offers { forms, addresses, ..Offers::default() },
        ClientFs::Auto => Offers {
            reads_texts: capabilities.fs.read_text_file,
            writes_texts: capabilities.fs.write_text_file,
            terminals: capabilities.terminal,
            forms,
            addresses,
        },
    }
}

/// One client's side of one session. Lives as long as the connection's link to the session, across loads, so
/// that what it learned about the client's response times lasts for the session.
#[derive(Clone, Debug)]
pub(super) struct ClientDelegate(Arc<DelegateRequests>);

#[derive(Debug)]
pub(super) struct DelegateRequests {
    peer: Peer,
    hub: Hub,
    session_id: SessionId,
    offers: Offers,
    /// Weak, because the session holds this, and the forwarder keeps it in the session.
    forwarder: mpsc::WeakUnboundedSender<ForwarderCommand>,
    /// How many requests about texts in a row got no answer. At its limit it no longer changes.
    silences: AtomicU32,
    /// Set if we no longer ask for terminals.
    no_terminals: AtomicBool,
}

impl ClientDelegate {
    pub(super) fn new(
        peer: Peer,
        hub: Hub,
        session_id: SessionId,
        offers: Offers,
        forwarder: &mpsc::UnboundedSender<ForwarderCommand>,
    ) -> Self {
        let (forwarder, silences, no_terminals) =
            (forwarder.downgrade(), AtomicU32::new(0), AtomicBool::new(false));
        Self(Arc::new(DelegateRequests { peer, hub, session_id, offers, forwarder, silences, no_terminals }))
    }
}

impl Delegate for ClientDelegate {
    /// A client that has gone offers nothing: the editor's side went with it, and the run continues here.
    fn offers(&self) -> Offers {
        let DelegateRequests { peer, offers, silences, no_terminals, .. } = &*self.0;
        if peer.is_closed() {
            return Offers::default();
        }
        let texts = silences.load(Ordering::Relaxed) < SILENCES;
        Offers {
            reads_texts: offers.reads_texts && texts,
            writes_texts: offers.writes_texts && texts,
            terminals: offers.terminals && !no_terminals.load(Ordering::Relaxed),
            forms: offers.forms,
            addresses: offers.addresses,
        }
    }

    fn fill(&self, form: Form) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let requests = self.0.clone();
        Box::pin(async move {
            let request = foreign_form(&requests.session_id, form)
                .map_err(|error| DelegateError::Refused(format!("the form can't be shown: {error}")))?;
            let response = requests.ask("elicitation/create", &request, None).await?;
            Ok(from_wire::filled(&response))
        })
    }

    fn offer_address(&self, address: AddressOffer) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let requests = self.0.clone();
        Box::pin(async move {
            let request = address_request(&requests.session_id, &address);
            let response = requests.ask("elicitation/create", &request, None).await?;
            Ok(from_wire::filled(&response))
        })
    }

    fn address_done(&self, id: String) -> BoxFuture<'static, ()> {
        let peer = self.0.peer.clone();
        Box::pin(async move {
            let done = CompleteElicitationNotification::new(id);
            if let Err(error) = peer.notify("elicitation/complete", &done).await {
                tracing::debug!(%error, "nobody is told that an address is done");
            }
        })
    }

    fn permit(&self, permit: Permit) -> BoxFuture<'static, Result<PermitAnswer, DelegateError>> {
        let requests = self.0.clone();
        Box::pin(async move {
            let request = permit_request(&requests.session_id, &permit)
                .map_err(|error| DelegateError::Refused(format!("it can't be shown: {error}")))?;
            let response = requests.ask("session/request_permission", &request, None).await?;
            Ok(from_wire::permitted(&response))
        })
    }

    fn read_text(&self, path: &Path, lines: Lines) -> BoxFuture<'static, Result<String, DelegateError>> {
        let request = ReadTextFileRequest::new(self.0.session_id.as_str().to_owned(), path)
            .line(lines.first)
            .limit(lines.count);
        let requests = self.0.clone();
        Box::pin(async move {
            let response = requests.ask_for_text("fs/read_text_file", &request).await?;
            Ok(read::<ReadTextFileResponse>(&response)?.content)
        })
    }

    fn write_text(&self, path: &Path, text: String) -> BoxFuture<'static, Result<(), DelegateError>> {
        let request = WriteTextFileRequest::new(self.0.session_id.as_str().to_owned(), path, text);
        let requests = self.0.clone();
        Box::pin(async move {
            let response = requests.ask_for_text("fs/write_text_file", &request).await?;
            // Any object, or nothing, means that the client wrote the file. A string means that it did not:
            // avante sends its errors that way.
            match serde_json::from_str::<String>(response.get()) {
                Ok(words) => Err(DelegateError::Refused(short(&words))),
                Err(_) => Ok(()),
            }
        })
    }

    fn open_terminal(
        &self,
        command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>> {
        let TerminalCommand { program, arguments, environment, directory, output_bytes } = command;
        let variables = environment.into_iter().map(|(name, value)| EnvVariable::new(name, value));
        let request = CreateTerminalRequest::new(self.0.session_id.as_str().to_owned(), program)
            .args(arguments)
            .env(variables.collect())
            .cwd(directory)
            .output_byte_limit(output_bytes);
        let requests = self.0.clone();
        Box::pin(async move {
            let response = requests.ask("terminal/create", &request, Some(TERMINAL_DEADLINE)).await?;
            let id = read::<CreateTerminalResponse>(&response)?.terminal_id.0.to_string();
            let shown = requests.when_shown(&id);
            Ok(Arc::new(ClientTerminal::new(requests, id, shown)) as Arc<dyn Terminal>)
        })
    }

    fn terminals_lost(&self, loss: TerminalLoss) -> BoxFuture<'static, ()> {
        let requests = self.0.clone();
        Box::pin(async move {
            let is_known = requests.no_terminals.swap(true, Ordering::Relaxed);
            if is_known || loss == TerminalLoss::NotOpened(DelegateError::Gone) {
                return;
            }
            let reason = match loss {
                TerminalLoss::NotOpened(error) => format!("The editor opened no terminal: {error}."),
                TerminalLoss::NotStarted => {
                    "The editor's terminal did not start attache's program (is the editor on \
                                             another machine, or in a container?)."
                        .to_owned()
                }
                TerminalLoss::Unheld => {
                    "The editor ran a command by means of its own, outside of attache's sandbox.".to_owned()
                }
            };
            let title = "Commands are shown without the editor's terminals from now on".to_owned();
            requests
                .notice(
                    title,
                    format!("{reason} They run and are held as before, for the rest of this session."),
                )
                .await;
        })
    }
}

impl DelegateRequests {
    pub(super) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Sends one request of a tool.
    pub(super) async fn ask(
        &self,
        method: &str,
        request: &impl Serialize,
        deadline: Option<Duration>,
    ) -> Result<Box<RawValue>, DelegateError> {
        self.peer.request(method, request, deadline).await.map_err(|error| match error {
            RequestError::Remote(error) => DelegateError::Refused(short(&error.message)),
            RequestError::Deadline => DelegateError::Silent,
            RequestError::Closed => DelegateError::Gone,
            // Only a path that is not Unicode, which we cannot name to a client.
            RequestError::Encode(error) => DelegateError::Refused(short(&error.to_string())),
        })
    }

    /// The same for a text: we stop asking a client that stays silent too often.
    async fn ask_for_text(
        &self,
        method: &str,
        request: &impl Serialize,
    ) -> Result<Box<RawValue>, DelegateError> {
        let answer = self.ask(method, request, Some(FS_DEADLINE)).await;
        match &answer {
            Err(DelegateError::Silent) => self.count_silence().await,
            Err(DelegateError::Gone) => {}
            Ok(_) | Err(DelegateError::Refused(_)) => {
                let heard = |silences| (silences < SILENCES).then_some(0);
                if self.silences.fetch_update(Ordering::Relaxed, Ordering::Relaxed, heard).is_err() {
                    tracing::debug!("an answer of a client that had been silent too often");
                }
            }
        }
        answer
    }

    async fn count_silence(&self) {
        let counted = |silences| (silences < SILENCES).then_some(silences + 1);
        let before = self.silences.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        if before != Ok(SILENCES - 1) {
            return;
        }
        let title = "attache now reads and writes files on disk".to_owned();
        let description = format!(
            "The editor did not answer {SILENCES} file requests in a row. For the rest of this session attache does \
             not see unsaved changes, and its edits skip the editor's review."
        );
        self.notice(title, description).await;
    }

    async fn notice(&self, title: String, description: String) {
        match self.hub.open(&self.session_id).await {
            Ok(handle) => handle.notice("warning", title, Some(description)),
            Err(error) => tracing::warn!(%error, "a notice was lost"),
        }
    }

    /// Resolves when the client has received the terminal in its call, or never will.
    fn when_shown(&self, terminal_id: &str) -> oneshot::Receiver<()> {
        let (go, shown) = oneshot::channel();
        if let Some(forwarder) = self.forwarder.upgrade() {
            // A forwarder that has ended drops the command, which ends the wait.
            drop(forwarder.send(ForwarderCommand::Terminal { terminal_id: terminal_id.to_owned(), go }));
        }
        shown
    }
}

pub(super) fn read<T: DeserializeOwned>(response: &RawValue) -> Result<T, DelegateError> {
    serde_json::from_str(response.get())
        .map_err(|error| DelegateError::Refused(short(&format!("its answer could not be read: {error}"))))
}

/// At most `REFUSAL_CHARS` characters of a client's own words, which the model reads.
fn short(message: &str) -> String {
    match message.char_indices().nth(REFUSAL_CHARS) {
        Some((cut, _)) => format!("{}…", &message[..cut]),
        None => message.to_owned(),
    }
}
