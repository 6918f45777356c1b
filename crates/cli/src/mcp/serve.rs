//! `attache mcp serve`: this agent as an MCP server, on stdin and stdout or on an address of this machine,
//! until its client leaves or a signal ends it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use attache_acp::{Host, SameDirectory};
use attache_core::hub::{ModelStandIn, People};
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::ports::BoxFuture;
use attache_http::{AccessCheck, BearerToken, HttpListener, behind, loopback_names};
use attache_mcp_server::{MCP_PATH, McpHost, McpServices, converse, mcp_router, options};
use attache_rpc::{json_lines, stdio};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::acp::{Machine, begin_upkeep, interrupted_twice};
use crate::answer;
use crate::args::McpServeArgs;
use crate::setup::{Setup, Sources};
use crate::token::{self, HomeToken};

/// How long we wait to send the last answers.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How long we wait to send the last spans, and how long the whole end may take: clients kill their servers
/// after 3 s.
const LAST_SPANS: Duration = Duration::from_secs(1);
const WHOLE_END: Duration = Duration::from_millis(2_900);

pub(super) async fn run(sources: &Sources, args: &McpServeArgs) -> Result<ExitCode> {
    let setup = Setup::open(sources, None, ModelStandIn::Refused, People::Present)?;
    let usual = std::env::current_dir().context("the current directory can't be found")?;
    let host = ServedMachine { machine: Arc::new(Machine::of(sources, &setup)), usual };
    let (store, search) = (Arc::new(setup.store.clone()), Arc::new(setup.store.clone()));
    let version = env!("CARGO_PKG_VERSION");
    let services = McpServices::new(setup.hub.clone(), store, search, Arc::new(host), version);
    match args.listen {
        None => over_stdio(&setup, sources, services).await?,
        Some(address) => over_http(&setup, sources, services, address).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn over_stdio(setup: &Setup, sources: &Sources, services: McpServices) -> Result<()> {
    if answer::is_typed() {
        answer::note(ON_A_TERMINAL);
    }
    begin_upkeep(setup, sources).await;
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (source, sink) = json_lines(stdio(), sources.config.limits.max_line_bytes.value);
    let mut connection = converse(services, source, sink, options());
    tokio::select! {
        () = connection.wait_closed() => tracing::info!("the client has left"),
        _ = terminated.recv() => tracing::info!("terminated"),
        () = interrupted_twice(&mut interrupted, &setup.hub) => tracing::info!("interrupted"),
    }
    let ending = Instant::now();
    setup.hub.shutdown().await;
    connection.drain(LAST_WORDS).await;
    finish(setup, ending).await;
    Ok(())
}

async fn over_http(
    setup: &Setup,
    sources: &Sources,
    services: McpServices,
    address: SocketAddr,
) -> Result<()> {
    if !address.ip().is_loopback() {
        bail!(
            "--listen {address}: only addresses of this machine itself (127.0.0.1 or [::1]) are served, because what is said is \
             not encrypted; for others use a tunnel, such as `ssh -L`"
        );
    }
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let token = home_token(sources)?;
    let listener = HttpListener::bind(address).await.with_context(|| format!("--listen {address}"))?;
    answer::note(&format!("attache: MCP at http://{}{MCP_PATH}", listener.address()));
    begin_upkeep(setup, sources).await;
    let check = AccessCheck::new(token, loopback_names(listener.address()));
    let end = CancellationToken::new();
    let serving = tokio::spawn(listener.serve(behind(check, mcp_router(services)), end.clone()));
    tokio::select! {
        _ = terminated.recv() => tracing::info!("terminated"),
        _ = interrupted.recv() => tracing::info!("interrupted"),
    }
    let ending = Instant::now();
    end.cancel();
    // This ends the turns and sends their answers, which the listener waits for.
    setup.hub.shutdown().await;
    let left = WHOLE_END.saturating_sub(ending.elapsed());
    if tokio::time::timeout(left, serving).await.is_err() {
        tracing::info!("answers were cut");
    }
    finish(setup, ending).await;
    Ok(())
}

/// Prints the token when it creates it, and never again.
fn home_token(sources: &Sources) -> Result<BearerToken> {
    let file = &sources.dirs.token_file;
    Ok(match token::open(file)? {
        HomeToken::New(token) => {
            let shown = file.display();
            answer::note(&format!("attache: the token for clients, kept in {shown}: {}", token.as_str()));
            token
        }
        HomeToken::Known(token) => {
            answer::note(&format!("attache: the token for clients is in {}", file.display()));
            token
        }
    })
}

async fn finish(setup: &Setup, ending: Instant) {
    if let Some(telemetry) = &setup.telemetry {
        telemetry.finish(LAST_SPANS.min(WHOLE_END.saturating_sub(ending.elapsed()))).await;
    }
    setup.store.shutdown();
}

/// A user who types this command by hand most likely wanted another one.
const ON_A_TERMINAL: &str = "\
attache mcp serve is what another agent starts: it waits for MCP messages, one JSON object per line, on standard input.
  attache mcp serve --listen 127.0.0.1:7733    the same over HTTP
Ctrl-D ends it.";

/// What the MCP server needs from this machine.
#[derive(Debug)]
struct ServedMachine {
    machine: Arc<Machine>,
    /// The directory in which the user started this process.
    usual: PathBuf,
}

impl McpHost for ServedMachine {
    fn usual_workspace(&self) -> PathBuf {
        self.usual.clone()
    }

    fn check_directory(&self, directory: PathBuf) -> BoxFuture<'static, Result<(), String>> {
        self.machine.check_directory(&directory)
    }

    fn check_session(
        &self,
        session: SessionId,
        root: PathBuf,
        named: Option<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let machine = self.machine.clone();
        Box::pin(async move {
            let named = named.filter(|named| *named != root);
            if let Some(named) = named
                && machine.compare_directories(&root, &named).await == SameDirectory::Different
            {
                let [root, named] = [root, named].map(|path| legible_line(&path.display().to_string()));
                return Err(format!("session {session} works in {root}, not in {named}"));
            }
            machine.check_directory(&root).await?;
            machine.check_places(&session, vec![root]).await
        })
    }
}
