//! `attache serve`: this agent for clients elsewhere, until a signal ends it. Running turns may finish first.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use attache_acp::AgentServices;
use attache_core::hub::{ModelStandIn, People};
use attache_core::legible::legible_line;
use attache_http::{
    HttpListener, ListenerAddress, ListenerLimits, Observation, PageLogins, RequestObserver, behind, observed,
};
use attache_rpc::Trace;
use attache_serve::{
    ACP_PATH, AgentServer, STATIC_PATHS, ServeSettings, ServerMetrics, Triggers, WorkspaceHost, limits,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::acp::{OwnAgent, open_trace};
use crate::answer;
use crate::args::{ListenTarget, ServeArgs};
use crate::config::AccessLogTarget;
use crate::daemon::DaemonPlace;
use crate::platform;
use crate::setup::{Setup, Sources};
use crate::token::{self, HomeToken};

mod access;
mod access_log;
mod metered;
mod triggers;

use access_log::AccessLog;
pub(crate) use metered::MeteredModel;
use triggers::ScheduleKeeper;

/// Where clients look first, and how many ports from there on we try.
const FIRST_PORT: u16 = 7766;
const PORTS: u16 = 10;

/// How long the last answers may take after we told all connections.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(crate) async fn run(sources: &Sources, args: &ServeArgs) -> Result<ExitCode> {
    if args.show_token {
        return show_token(sources);
    }
    if args.new_token {
        access::make_token(&sources.config.file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let metrics = ServerMetrics::default();
    let sources = &Sources { metrics: Some(metrics.clone()), ..sources.clone() };
    let setup = Setup::open(sources, args.trace.as_deref(), ModelStandIn::Allowed, People::Present)?;
    let trace = args.trace.as_deref().map(open_trace).transpose()?;
    let (HomeToken::New(token) | HomeToken::Known(token)) = token::open(&sources.dirs.token_file)?;
    let place = args.daemon.then(|| DaemonPlace::take(sources)).transpose()?;
    let log = access_log(sources, place.as_ref())?;
    access::raise_open_files();
    let mut signals = EndSignals::listen()?;
    let target = place.as_ref().map(|place| ListenTarget::Unix(place.socket()));
    let listener = listen(target.as_ref().or(args.listen.as_ref())).await?;
    let address = listener.address().clone();
    let agent = OwnAgent::start(setup, sources).await;
    let logins = logins(&address);
    let settings =
        settings(sources, &agent, place.as_ref(), logins.clone(), trace.clone(), metrics.clone()).await?;
    let server = AgentServer::new(settings)?;
    let mut observers: Vec<Arc<dyn RequestObserver>> = vec![Arc::new(metrics)];
    observers.extend(log.clone().map(|log| log as Arc<dyn RequestObserver>));
    let observation = Observation { observers, proxies: sources.config.serve.proxies.value.clone() };
    let check = access::check(&token, &address, &sources.config.serve, logins.clone());
    let routes = observed(observation, behind(check, server.router()));
    let end = CancellationToken::new();
    let serving = tokio::spawn(listener.serve(routes, end.clone()));
    tell(&address);
    if args.open {
        tell_page(&address, &logins)?;
    }
    until_end(sources, &agent, &server, place.as_ref(), &mut signals).await?;
    wind_down(&agent, &server, &mut signals, sources.config.serve.drain.value).await;
    end.cancel();
    if tokio::time::timeout(LAST_ANSWERS, serving).await.is_err() {
        tracing::info!("answers were cut");
    }
    if let Some(log) = log {
        log.finish().await;
    }
    agent.end(Vec::new()).await;
    if let Some(trace) = trace {
        trace.flush().await;
    }
    Ok(ExitCode::SUCCESS)
}

/// How to serve the agent: to everybody, or to this user's own editors.
async fn settings(
    sources: &Sources,
    agent: &OwnAgent,
    place: Option<&DaemonPlace>,
    logins: PageLogins,
    trace: Option<Trace>,
    metrics: ServerMetrics,
) -> Result<ServeSettings> {
    let workspaces = workspaces(sources)?;
    let keeper = ScheduleKeeper::open(sources, place)?;
    let (served, triggers) = match place {
        // Only this user can reach the socket, and may work wherever the user may.
        Some(_) => (agent.services(), Triggers::default()),
        None => {
            let served = remote(agent.services(), &workspaces, sources)?;
            let triggers = triggers::read(sources, &served, &keeper).await?;
            (served, triggers)
        }
    };
    Ok(ServeSettings {
        agent: served,
        store: agent.store(),
        search: agent.store(),
        figures: agent.store(),
        logins,
        usual_workspace: workspaces.first().cloned().unwrap_or_default(),
        triggers,
        trigger_host: keeper,
        limits: access::limits(&sources.config.serve),
        metrics,
        max_message_bytes: sources.config.limits.max_line_bytes.value,
        trace,
    })
}

/// Returns when a signal asks it to end, or when it has been unused long enough.
async fn until_end(
    sources: &Sources,
    agent: &OwnAgent,
    server: &AgentServer,
    place: Option<&DaemonPlace>,
    signals: &mut EndSignals,
) -> Result<()> {
    let Some(place) = place else {
        signals.next().await;
        return Ok(());
    };
    place.register()?;
    tokio::select! {
        () = signals.next() => {}
        () = place.until_idle(server, agent.hub(), sources.config.serve.idle.value) => {
            tracing::info!("no client has used the server for a while; it ends");
        }
    }
    place.withdraw();
    Ok(())
}

/// The shared server has no terminal, so it keeps a log only if the configuration names a file.
fn access_log(sources: &Sources, place: Option<&DaemonPlace>) -> Result<Option<Arc<AccessLog>>> {
    match (&sources.config.serve.access_log.value, place) {
        (AccessLogTarget::Stderr, Some(_)) => Ok(None),
        (target, _) => AccessLog::open(target),
    }
}

fn show_token(sources: &Sources) -> Result<ExitCode> {
    sources.dirs.create()?;
    let (HomeToken::New(token) | HomeToken::Known(token)) = token::open(&sources.dirs.token_file)?;
    answer::write(&format!("{}\n", token.as_str()))?;
    Ok(ExitCode::SUCCESS)
}

/// Lets runs finish for that time, or until a second signal; then ends everything as when an editor leaves.
async fn wind_down(agent: &OwnAgent, server: &AgentServer, signals: &mut EndSignals, patience: Duration) {
    server.begin_to_end();
    let seconds = patience.as_secs();
    answer::note(&format!("attache: ending; runs may finish for {seconds} s (a second signal ends at once)"));
    tokio::select! {
        () = agent.hub().wait_until_at_rest() => {}
        () = tokio::time::sleep(patience) => tracing::info!("runs are aborted"),
        () = signals.next() => tracing::info!("ended at once"),
    }
    agent.hub().shutdown().await;
    server.end().await;
}

/// What remote clients get: sessions work below the configured directories, and no client can change the keys
/// of this machine.
fn remote(services: AgentServices, workspaces: &[PathBuf], sources: &Sources) -> Result<AgentServices> {
    let host = WorkspaceHost::new(services.host.clone(), workspaces).map_err(|(path, error)| {
        let origin = sources.config.serve.workspaces.as_ref().map(|stated| format!("{}: ", stated.origin));
        let shown = legible_line(&path.display().to_string());
        anyhow!("{}`serve.workspaces`: {shown}: {error}", origin.unwrap_or_default())
    })?;
    Ok(AgentServices { host: Arc::new(host), accounts: None, ..services })
}

/// The configured directories, or the one in which the user started the server.
fn workspaces(sources: &Sources) -> Result<Vec<PathBuf>> {
    match &sources.config.serve.workspaces {
        Some(configured) => Ok(configured.value.clone()),
        None => Ok(vec![std::env::current_dir().context("the current directory can't be found")?]),
    }
}

async fn listen(target: Option<&ListenTarget>) -> Result<HttpListener> {
    let limits = ListenerLimits { connections: limits::SOCKETS, ..ListenerLimits::default() };
    let listener = match target {
        None => listen_nearby().await?,
        Some(ListenTarget::Tcp(address)) => {
            if !address.ip().is_loopback() {
                answer::alarm(&format!(
                    "attache: {address} can be reached from other machines, and what is said there is not encrypted: put a \
                     proxy with TLS in front of it (docs/remote.md)"
                ));
            }
            match HttpListener::bind(*address).await {
                Ok(listener) => listener,
                Err(error) => {
                    return Err(cant_listen(&address.to_string(), &error, || platform::holder_of(*address)));
                }
            }
        }
        Some(ListenTarget::Unix(path)) => {
            let shown = legible_line(&path.display().to_string());
            match HttpListener::bind_unix(path).await {
                Ok(listener) => listener,
                Err(error) => {
                    let holder = platform::holder_of_socket(path).await;
                    return Err(cant_listen(&format!("unix:{shown}"), &error, || holder));
                }
            }
        }
    };
    Ok(listener.with_limits(limits))
}

fn cant_listen(
    place: &str,
    error: &std::io::Error,
    holder: impl FnOnce() -> Option<String>,
) -> anyhow::Error {
    let reason = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let holder = holder().map(|holder| format!(", held by {holder}")).unwrap_or_default();
            format!("it is in use{holder}: end that one, or listen elsewhere")
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: `127.0.0.1` is itself, `0.0.0.0` all that it has".to_owned()
        }
        std::io::ErrorKind::NotFound => "there is no such directory: make it first".to_owned(),
        _ => error.to_string(),
    };
    anyhow!("--listen {place}: {reason}")
}

/// The usual port, or the next that is free.
async fn listen_nearby() -> Result<HttpListener> {
    let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for port in FIRST_PORT..FIRST_PORT + PORTS {
        match HttpListener::bind(address(port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let holder =
                    platform::holder_of(address(port)).unwrap_or_else(|| "another program".to_owned());
                answer::note(&format!("attache: {holder} uses port {port}; trying the next"));
            }
            Err(error) => return Err(error).with_context(|| format!("can't listen on {}", address(port))),
        }
    }
    let last = FIRST_PORT + PORTS - 1;
    Err(anyhow!("the ports {FIRST_PORT} to {last} are all taken: name another with --listen 127.0.0.1:PORT"))
}

fn tell(address: &ListenerAddress) {
    let place = match address {
        ListenerAddress::Tcp(address) => format!("http://{address}{ACP_PATH}"),
        ListenerAddress::Unix(_) => format!("{address}, {ACP_PATH}"),
    };
    answer::note(&format!(
        "attache: ACP at {place} (WebSocket or HTTP); clients need the token: attache serve --show-token"
    ));
}

/// Servers on the same machine must not share cookies.
fn logins(address: &ListenerAddress) -> PageLogins {
    match address {
        ListenerAddress::Tcp(address) => PageLogins::new(&address.port().to_string(), STATIC_PATHS),
        ListenerAddress::Unix(_) => PageLogins::new("socket", STATIC_PATHS),
    }
}

/// Only on stderr: while it works, the link gives the same access as the token.
fn tell_page(address: &ListenerAddress, logins: &PageLogins) -> Result<()> {
    let link = logins.new_link().context("a link can't be made")?;
    match address {
        ListenerAddress::Tcp(address) => {
            let name = match address.ip().is_unspecified() {
                true => format!("localhost:{}", address.port()),
                false => address.to_string(),
            };
            answer::note(&format!("attache: the page, once and within a minute: http://{name}{link}"));
        }
        ListenerAddress::Unix(_) => answer::note(&format!(
            "attache: the page, once and within a minute, at the address that leads to this socket: {link}"
        )),
    }
    Ok(())
}

/// The signals that ask the server to end.
struct EndSignals {
    terminated: Signal,
    interrupted: Signal,
}

impl EndSignals {
    fn listen() -> Result<Self> {
        let terminated = signal(SignalKind::terminate())?;
        Ok(Self { terminated, interrupted: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminated.recv() => tracing::info!("terminated"),
            _ = self.interrupted.recv() => tracing::info!("interrupted"),
        }
    }
}
