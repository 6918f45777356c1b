//! What an agent wants done on its client's side, files and terminals, each answered exactly once. Does none of
//! it.

use std::marker::PhantomData;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse, SessionId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
    WriteTextFileRequest, WriteTextFileResponse,
};
use attache_rpc::{ErrorObject, Responder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::introduction::ServedCalls;

/// A request of the agent, with its answer to give.
#[derive(Debug)]
pub enum ClientCall {
    ReadTextFile(ReadTextFileRequest, CallReply<ReadTextFileResponse>),
    WriteTextFile(WriteTextFileRequest, CallReply<WriteTextFileResponse>),
    CreateTerminal(CreateTerminalRequest, CallReply<CreateTerminalResponse>),
    TerminalOutput(TerminalOutputRequest, CallReply<TerminalOutputResponse>),
    WaitForTerminalExit(WaitForTerminalExitRequest, CallReply<WaitForTerminalExitResponse>),
    KillTerminal(KillTerminalRequest, CallReply<KillTerminalResponse>),
    ReleaseTerminal(ReleaseTerminalRequest, CallReply<ReleaseTerminalResponse>),
}

/// The answer to one request. Dropped, it is an error.
#[derive(Debug)]
pub struct CallReply<R> {
    responder: Responder,
    answer: PhantomData<fn(R)>,
}

impl<R: Serialize> CallReply<R> {
    pub fn give(self, answer: &R) {
        self.responder.ok(answer);
    }

    pub fn refuse(self, error: ErrorObject) {
        self.responder.error(error);
    }

    /// Fires when the agent does not wait for the answer any more.
    pub fn withdrawn(&self) -> CancellationToken {
        self.responder.cancelled()
    }
}

impl ClientCall {
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::ReadTextFile(request, _) => &request.session_id,
            Self::WriteTextFile(request, _) => &request.session_id,
            Self::CreateTerminal(request, _) => &request.session_id,
            Self::TerminalOutput(request, _) => &request.session_id,
            Self::WaitForTerminalExit(request, _) => &request.session_id,
            Self::KillTerminal(request, _) => &request.session_id,
            Self::ReleaseTerminal(request, _) => &request.session_id,
        }
    }

    pub fn refuse(self, error: ErrorObject) {
        match self {
            Self::ReadTextFile(_, reply) => reply.refuse(error),
            Self::WriteTextFile(_, reply) => reply.refuse(error),
            Self::CreateTerminal(_, reply) => reply.refuse(error),
            Self::TerminalOutput(_, reply) => reply.refuse(error),
            Self::WaitForTerminalExit(_, reply) => reply.refuse(error),
            Self::KillTerminal(_, reply) => reply.refuse(error),
            Self::ReleaseTerminal(_, reply) => reply.refuse(error),
        }
    }
}

/// A request that was read, or why not, with its responder.
pub(crate) type TakenCall = Result<ClientCall, Box<(ErrorObject, Responder)>>;

/// `None` for a method that is not served: the responder is given back.
pub(crate) fn read_call(
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
    served: ServedCalls,
) -> Result<TakenCall, Responder> {
    let read = match method {
        "fs/read_text_file" if served.read_text_file => call(params, responder, ClientCall::ReadTextFile),
        "fs/write_text_file" if served.write_text_file => call(params, responder, ClientCall::WriteTextFile),
        "terminal/create" if served.terminal => call(params, responder, ClientCall::CreateTerminal),
        "terminal/output" if served.terminal => call(params, responder, ClientCall::TerminalOutput),
        "terminal/wait_for_exit" if served.terminal => {
            call(params, responder, ClientCall::WaitForTerminalExit)
        }
        "terminal/kill" if served.terminal => call(params, responder, ClientCall::KillTerminal),
        "terminal/release" if served.terminal => call(params, responder, ClientCall::ReleaseTerminal),
        _ => return Err(responder),
    };
    Ok(read)
}

fn call<P: DeserializeOwned, R>(
    params: Option<&RawValue>,
    responder: Responder,
    make: fn(P, CallReply<R>) -> ClientCall,
) -> TakenCall {
    let Some(params) = params else {
        return Err(Box::new((ErrorObject::invalid_params("the parameters are missing"), responder)));
    };
    match serde_json::from_str(params.get()) {
        Ok(request) => Ok(make(request, CallReply { responder, answer: PhantomData })),
        Err(error) => Err(Box::new((ErrorObject::invalid_params(error.to_string()), responder))),
    }
}
