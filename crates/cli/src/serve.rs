//! `attache serve`: this agent for clients elsewhere, until a signal ends it. Runs that are under way may
//! finish first.

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
    AccessCheck, AccessRules, HttpListener, ListenerAddress, ListenerLimits, PageLogins, QueryToken, behind,
    host_names,
};
use attache_serve::{ACP_PATH, AgentServer, OPEN_PATHS, ServeSettings, WorkspaceHost, limits};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::acp::{OwnAgent, open_trace};
use crate::answer;
use crate::args::{ListenTarget, ServeArgs};
use crate::setup::{Setup, Sources};
use crate::token::{self, HomeToken};

mod holder;

/// Where clients look first, and how many ports from there on are tried.
const FIRST_PORT: u16 = 7766;
const PORTS: u16 = 10;

/// How long the last answers may take once all connections were told.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(crate) async fn run(sources: &Sources, args: &ServeArgs) -> Result<ExitCode> {
    if args.show_token {
        return show_token(sources);
    }
    let setup = Setup::open(sources, args.trace.as_deref(), ModelStandIn::Allowed, People::Present)?;
    let trace = args.trace.as_deref().map(open_trace).transpose()?;
    let (HomeToken::New(token) | HomeToken::Known(token)) = token::open(&sources.dirs.token_file)?;
    let mut signals = EndSignals::listen()?;
    let listener = listen(args.listen.as_ref()).await?;
    let address = listener.address().clone();
    let agent = OwnAgent::start(setup, sources).await;
    let workspaces = workspaces(sources)?;
    let logins = logins(&address);
    let server = AgentServer::new(ServeSettings {
        agent: remote(agent.services(), &workspaces, sources)?,
        store: agent.store(),
        search: agent.store(),
        figures: agent.store(),
        logins: logins.clone(),
        usual_workspace: workspaces.first().cloned().unwrap_or_default(),
        max_message_bytes: sources.config.limits.max_line_bytes.value,
        trace: trace.clone(),
    });
    let check = AccessCheck::of(AccessRules {
        token,
        names: host_names(&address, &sources.config.serve.hosts.value),
        origins: origins(sources),
        open_paths: OPEN_PATHS,
        query_token: QueryToken::OnEventStreams,
        logins: Some(logins.clone()),
    });
    let end = CancellationToken::new();
    let serving = tokio::spawn(listener.serve(behind(check, server.router()), end.clone()));
    tell(&address);
    if args.open {
        tell_page(&address, &logins)?;
    }
    signals.next().await;
    wind_down(&agent, &server, &mut signals, sources.config.serve.drain.value).await;
    end.cancel();
    if tokio::time::timeout(LAST_ANSWERS, serving).await.is_err() {
        tracing::info!("answers were cut");
    }
    agent.end(Vec::new()).await;
    if let Some(trace) = trace {
        trace.flush().await;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_token(sources: &Sources) -> Result<ExitCode> {
    sources.dirs.create()?;
    let (HomeToken::New(token) | HomeToken::Known(token)) = token::open(&sources.dirs.token_file)?;
    answer::write(&format!("{}\n", token.as_str()))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs may finish for so long, or until somebody is in a hurry; then everything ends as when an editor leaves.
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

/// What remote clients are served with: sessions work below the configured directories, and the keys of this
/// machine are nobody's to change from elsewhere.
fn remote(services: AgentServices, workspaces: &[PathBuf], sources: &Sources) -> Result<AgentServices> {
    let host = WorkspaceHost::new(services.host.clone(), workspaces).map_err(|(path, error)| {
        let origin = sources.config.serve.workspaces.as_ref().map(|stated| format!("{}: ", stated.origin));
        let shown = legible_line(&path.display().to_string());
        anyhow!("{}`serve.workspaces`: {shown}: {error}", origin.unwrap_or_default())
    })?;
    Ok(AgentServices { host: Arc::new(host), accounts: None, ..services })
}

/// The configured directories, or the one that the server was started in.
fn workspaces(sources: &Sources) -> Result<Vec<PathBuf>> {
    match &sources.config.serve.workspaces {
        Some(configured) => Ok(configured.value.clone()),
        None => Ok(vec![std::env::current_dir().context("the current directory can't be found")?]),
    }
}

/// Pages of configured hosts are its own, behind a proxy that encrypts as without one.
fn origins(sources: &Sources) -> Vec<String> {
    let settings = &sources.config.serve;
    let own =
        settings.hosts.value.iter().flat_map(|host| [format!("https://{host}"), format!("http://{host}")]);
    settings.origins.value.iter().cloned().chain(own).collect()
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
            HttpListener::bind(*address).await.map_err(|error| {
                let holder =
                    holder::of(*address).map(|holder| format!(", held by {holder}")).unwrap_or_default();
                anyhow!("--listen {address}: {error}{holder}")
            })?
        }
        Some(ListenTarget::Unix(path)) => {
            let shown = legible_line(&path.display().to_string());
            HttpListener::bind_unix(path).await.with_context(|| format!("--listen unix:{shown}"))?
        }
    };
    Ok(listener.with_limits(limits))
}

/// The usual port, or the next that is free.
async fn listen_nearby() -> Result<HttpListener> {
    let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for port in FIRST_PORT..FIRST_PORT + PORTS {
        match HttpListener::bind(address(port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let holder = holder::of(address(port)).unwrap_or_else(|| "somebody".to_owned());
                answer::note(&format!("attache: port {port} is held by {holder}; trying the next"));
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

/// Servers of one machine have cookies of their own.
fn logins(address: &ListenerAddress) -> PageLogins {
    match address {
        ListenerAddress::Tcp(address) => PageLogins::new(&address.port().to_string()),
        ListenerAddress::Unix(_) => PageLogins::new("socket"),
    }
}

/// On stderr alone: the link is as good as the token while it works.
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

/// What asks the server to end.
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
