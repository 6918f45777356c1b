//! The connection of an agent that could not start: the handshake succeeds, and every other request gets the
//! reason as its error. Editors show a request's error, but rarely what a process wrote to stderr before it
//! ended.

use std::sync::Arc;

use attache_rpc::{
    Connection, ErrorObject, Handler, IncomingRequest, MessageSink, MessageSource, Notification, Options,
    Peer,
};

use crate::from_wire;
use crate::to_wire::failed_start_response;

/// Why the agent cannot work, in words for its user.
#[derive(Clone, Debug)]
pub struct StartFailure {
    /// What is wrong and what to do about it.
    pub reason: String,
    /// Our own version, as clients display it.
    pub version: &'static str,
}

/// Serves the client of an agent that could not start, until the client hangs up.
pub fn refuse_all(
    failure: StartFailure,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
) -> Connection {
    let (_, connection) = Peer::start(source, sink, options, |_| Arc::new(Refuser(failure)));
    connection
}

#[derive(Debug)]
struct Refuser(StartFailure);

impl Handler for Refuser {
    fn request(&self, incoming: IncomingRequest) {
        let IncomingRequest { method, params, responder } = incoming;
        if method != "initialize" {
            return responder.error(ErrorObject::internal(&self.0.reason));
        }
        let answer = from_wire::protocol_version(params).map_err(ErrorObject::from).and_then(|version| {
            failed_start_response(version, self.0.version)
                .map_err(|error| ErrorObject::internal(error.to_string()))
        });
        match answer {
            Ok(response) => responder.ok(&response),
            Err(error) => responder.error(error),
        }
    }

    fn notification(&self, notification: Notification) {
        tracing::debug!(method = notification.method, "a notification was ignored: the agent did not start");
    }

    fn closed(&self) {}
}
