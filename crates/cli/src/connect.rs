//! `--connect`: connects an editor's stdin and stdout, or the chat, to a server elsewhere.

use std::os::unix::fs::MetadataExt;
use std::pin::pin;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use attache_acp_client::{AgentDoor, ClientFailure, DoorFuture, Introduction, connect};
use attache_http::BearerToken;
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{duplex, json_lines, stdio};
use attache_serve::client::{ServerAddress, ServerConnector, bridge};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::acp::refuse;
use crate::answer;
use crate::limits::CHAT_PIPE_BYTES;
use crate::platform;
use crate::setup::{BearerText, Sources};
use crate::token;

/// Holds the token of a server elsewhere, instead of this home's own.
pub(crate) const TOKEN_VARIABLE: &str = "ATTACHE_TOKEN";

/// Bridges an editor to a server until one of them leaves for good. If there is no server, tells the editor.
pub(crate) async fn run(sources: &Sources, address: &ServerAddress) -> Result<ExitCode> {
    let reached = match connector(sources, address) {
        Ok(connector) => connector.reach().await.map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    let server = match reached {
        Ok(server) => server,
        Err(error) => {
            answer::note(&format!("attache: {error:#}"));
            refuse(&format!("{error:#}")).await;
            return Ok(ExitCode::FAILURE);
        }
    };
    let (source, sink) = json_lines(stdio(), sources.config.limits.max_line_bytes.value);
    let mut terminated = signal(SignalKind::terminate())?;
    let end = CancellationToken::new();
    let mut bridging = pin!(bridge(server, source, sink, end.clone()));
    tokio::select! {
        () = &mut bridging => {}
        _ = terminated.recv() => {
            tracing::info!("terminated");
            end.cancel();
            bridging.await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the token from the environment, or that of this home, which this home's own server uses: it leaves the
/// machine only if its user says so, since whoever has it may do everything here.
pub(crate) fn connector(sources: &Sources, address: &ServerAddress) -> Result<ServerConnector> {
    let token = match &sources.token {
        Some(BearerText(text)) => match BearerToken::parse(text) {
            Some(token) => token,
            None => bail!("environment {TOKEN_VARIABLE}: this is no token of `attache serve --show-token`"),
        },
        None if !is_ours(address) => bail!(
            "there is no token for {address}: set {TOKEN_VARIABLE} to the one that its owner gave you (this \
             home's own token goes to no other machine and to no other user)"
        ),
        None => token::kept(&sources.dirs.token_file)?.with_context(|| {
            format!("there is no token for {address}: set {TOKEN_VARIABLE}, or start `attache serve` with this home")
        })?,
    };
    if address.is_readable_on_the_way() {
        answer::alarm(&format!(
            "attache: what is said to {address} is not encrypted, and the token is sent there"
        ));
    }
    Ok(ServerConnector::new(address.clone(), token))
}

/// Whether this can be a server of our own user.
fn is_ours(address: &ServerAddress) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let is_anothers = match address {
        ServerAddress::Unix(path) => path.metadata().is_ok_and(|found| found.uid() != us && found.uid() != 0),
        ServerAddress::Http(_) => {
            !address.is_near() || address.port().is_some_and(platform::is_held_by_another_user)
        }
    };
    !is_anothers
}

/// The door to the agent of a server.
#[derive(Debug)]
pub(crate) struct ServerDoor {
    connector: ServerConnector,
    bridges: TaskTracker,
    /// Fires when who came through the door has left.
    end: CancellationToken,
}

impl ServerDoor {
    pub(crate) fn new(sources: &Sources, address: &ServerAddress) -> Result<Self> {
        let connector = connector(sources, address)?;
        Ok(Self { connector, bridges: TaskTracker::new(), end: CancellationToken::new() })
    }

    /// Waits until the server has what was said last.
    pub(crate) async fn close(self) {
        self.end.cancel();
        self.bridges.close();
        self.bridges.wait().await;
    }
}

impl AgentDoor for ServerDoor {
    fn open(&self, introduction: Introduction) -> DoorFuture<'_> {
        Box::pin(async move {
            let reached = self.connector.clone().reach().await;
            let server = reached.map_err(|failure| ClientFailure::Own(failure.to_string()))?;
            let (ours, theirs) = duplex(CHAT_PIPE_BYTES);
            let (source, sink) = json_lines(theirs, MAX_LINE_BYTES);
            self.bridges.spawn(bridge(server, source, sink, self.end.clone()));
            let (source, sink) = json_lines(ours, MAX_LINE_BYTES);
            connect(source, sink, None, introduction).await
        })
    }
}
