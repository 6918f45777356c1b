//! What an ACP agent wants done on its client's side: texts and terminals. The client of the session does what
//! it offers, this machine the rest; both within the session's directories. Asks nobody: the agent did.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalResponse, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalResponse, TerminalExitStatus, TerminalId, TerminalOutputResponse,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use attache_acp_client::ClientCall;
use attache_core::ports::Delegate;
use attache_core::ports::delegate::{DelegateError, Lines, Offers, TerminalCommand, TerminalExit};
use attache_core::ports::tool::{Access, Workspace};
use attache_rpc::ErrorObject;
use attache_sandbox::LazySandbox;

use super::terminals::{OwnTerminal, TerminalBook};
use crate::limits::TERMINAL_BYTES;
use crate::session_files::{self, FileAccess};

/// Who works for the agent of one session.
#[derive(Clone, Debug)]
pub(super) struct Services {
    sandbox: Arc<OnceLock<LazySandbox>>,
    pub(super) terminals: TerminalBook,
    /// Of the last turn. Why a lock: each turn brings its own. Held for a look only.
    turn: Arc<Mutex<Option<TurnSide>>>,
}

/// What a turn brings.
#[derive(Clone, Debug)]
pub(super) struct TurnSide {
    pub(super) workspace: Arc<Workspace>,
    pub(super) client: Option<Arc<dyn Delegate>>,
}

impl Services {
    pub(super) fn new(sandbox: Arc<OnceLock<LazySandbox>>) -> Self {
        Self { sandbox, terminals: TerminalBook::default(), turn: Arc::default() }
    }

    pub(super) fn set_turn(&self, side: TurnSide) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(side);
    }

    pub(super) fn set_client(&self, client: Option<Arc<dyn Delegate>>) {
        if let Some(side) = self.turn.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            side.client = client;
        }
    }

    /// Answers one request.
    pub(super) async fn serve(&self, call: ClientCall) {
        match call {
            ClientCall::ReadTextFile(request, reply) => match self.read(request).await {
                Ok(content) => reply.give(&ReadTextFileResponse::new(content)),
                Err(error) => reply.refuse(error),
            },
            ClientCall::WriteTextFile(request, reply) => match self.write(request).await {
                Ok(()) => reply.give(&WriteTextFileResponse::new()),
                Err(error) => reply.refuse(error),
            },
            ClientCall::CreateTerminal(request, reply) => match self.create(request).await {
                Ok(id) => reply.give(&CreateTerminalResponse::new(TerminalId::new(id))),
                Err(error) => reply.refuse(error),
            },
            ClientCall::TerminalOutput(request, reply) => {
                match self.terminals.output(&request.terminal_id.0).await {
                    Ok(output) => {
                        let answer = TerminalOutputResponse::new(output.text, output.truncated);
                        reply.give(&answer.exit_status(output.exit.map(exit_status)));
                    }
                    Err(error) => reply.refuse(refused(error)),
                }
            }
            ClientCall::WaitForTerminalExit(request, reply) => {
                match self.terminals.wait(&request.terminal_id.0).await {
                    Ok(exit) => reply.give(&WaitForTerminalExitResponse::new(exit_status(exit))),
                    Err(error) => reply.refuse(refused(error)),
                }
            }
            ClientCall::KillTerminal(request, reply) => {
                match self.terminals.kill(&request.terminal_id.0).await {
                    Ok(()) => reply.give(&KillTerminalResponse::new()),
                    Err(error) => reply.refuse(refused(error)),
                }
            }
            ClientCall::ReleaseTerminal(request, reply) => {
                match self.terminals.release(&request.terminal_id.0).await {
                    Ok(()) => reply.give(&ReleaseTerminalResponse::new()),
                    Err(error) => reply.refuse(refused(error)),
                }
            }
        }
    }

    /// The client of the turn, if it does this.
    pub(super) fn client(&self, does: impl Fn(&Offers) -> bool) -> Option<Arc<dyn Delegate>> {
        let client = self.turn.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.client.clone()?;
        does(&client.offers()).then_some(client)
    }

    fn workspace(&self) -> Result<Arc<Workspace>, ErrorObject> {
        let side = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let workspace = side.as_ref().map(|side| side.workspace.clone());
        workspace.ok_or_else(|| ErrorObject::invalid_request("the session has had no prompt yet"))
    }

    async fn read(&self, request: ReadTextFileRequest) -> Result<String, ErrorObject> {
        let path = self.within(request.path, Access::ReadPath).await?;
        let lines = Lines { first: request.line, count: request.limit };
        match self.client(|offers| offers.reads_texts) {
            Some(client) => client.read_text(&path, lines).await.map_err(refused),
            None => {
                let workspace = self.workspace()?;
                let text = blocking(move || session_files::read(&workspace, &path)).await?;
                Ok(cut(&text, lines))
            }
        }
    }

    async fn write(&self, request: WriteTextFileRequest) -> Result<(), ErrorObject> {
        let path = self.within(request.path, Access::WritePath).await?;
        match self.client(|offers| offers.writes_texts) {
            Some(client) => client.write_text(&path, request.content).await.map_err(refused),
            None => {
                let workspace = self.workspace()?;
                blocking(move || session_files::write(&workspace, &path, &request.content)).await
            }
        }
    }

    async fn create(&self, request: CreateTerminalRequest) -> Result<String, ErrorObject> {
        let CreateTerminalRequest { command, args, env, cwd, output_byte_limit, .. } = request;
        let directory = match cwd {
            Some(directory) => self.within(directory, Access::ReadPath).await?,
            None => self.workspace()?.root.clone(),
        };
        let command = TerminalCommand {
            program: command,
            arguments: args,
            environment: env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            directory,
            output_bytes: output_byte_limit.unwrap_or(TERMINAL_BYTES).min(TERMINAL_BYTES),
        };
        match self.client(|offers| offers.terminals) {
            Some(client) => {
                let terminal = client.open_terminal(command).await.map_err(refused)?;
                self.terminals.add_of_client(terminal).map_err(refused)
            }
            None => {
                let workspace = self.workspace()?;
                let sandbox = self.sandbox.get().cloned();
                let sandbox = sandbox.ok_or_else(|| ErrorObject::internal("no command can be held yet"))?;
                let command = as_shell_line(command);
                let started = blocking(move || OwnTerminal::start(&workspace, &sandbox, &command)).await?;
                self.terminals.add_own(started).map_err(refused)
            }
        }
    }

    /// The path as it may be touched. What it leads to is judged here for the client, who opens it by its name,
    /// and once more where it is opened.
    async fn within(&self, path: PathBuf, access: FileAccess) -> Result<PathBuf, ErrorObject> {
        if !path.is_absolute() {
            return Err(ErrorObject::invalid_params(format!("the path {} is not absolute", path.display())));
        }
        let workspace = self.workspace()?;
        session_files::permitted(&workspace, &access(path.clone())).map_err(ErrorObject::invalid_params)?;
        let named = path.clone();
        blocking(move || session_files::check(&workspace, &named, access)).await?;
        Ok(path)
    }
}

/// Agents send whole lines for a shell as the command.
fn as_shell_line(command: TerminalCommand) -> TerminalCommand {
    match command.arguments.is_empty() {
        true => {
            let arguments = vec!["-c".to_owned(), command.program];
            TerminalCommand { program: "sh".to_owned(), arguments, ..command }
        }
        false => command,
    }
}

/// Lines are counted from 1.
fn cut(text: &str, lines: Lines) -> String {
    let skipped = lines.first.unwrap_or(1).saturating_sub(1) as usize;
    let count = lines.count.map_or(usize::MAX, |count| count as usize);
    text.split_inclusive('\n').skip(skipped).take(count).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ErrorObject> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Err(ErrorObject::resource_not_found(error.to_string(), serde_json::json!({})))
        }
        Ok(Err(error)) => Err(ErrorObject::internal(error.to_string())),
        Err(error) => Err(ErrorObject::internal(error.to_string())),
    }
}

fn refused(error: DelegateError) -> ErrorObject {
    match error {
        DelegateError::Refused(words) => ErrorObject::internal(words),
        error @ (DelegateError::Silent | DelegateError::Gone) => ErrorObject::internal(error.to_string()),
    }
}

fn exit_status(exit: TerminalExit) -> TerminalExitStatus {
    TerminalExitStatus::new().exit_code(exit.code).signal(exit.signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_as_the_agent_asks() {
        let text = "one\ntwo\nthree";
        for (first, count, expected) in [
            (None, None, text),
            (Some(1), Some(1), "one\n"),
            (Some(2), None, "two\nthree"),
            (Some(2), Some(1), "two\n"),
            (Some(0), Some(2), "one\ntwo\n"),
            (Some(9), None, ""),
            (None, Some(0), ""),
        ] {
            assert_eq!(cut(text, Lines { first, count }), expected, "{first:?} {count:?}");
        }
    }
}
