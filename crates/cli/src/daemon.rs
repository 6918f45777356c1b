//! `--shared`: the one server of this home, for all editors and terminals of its user. The first process that
//! needs it starts it; it ends after a time without use.

mod place;

use std::pin::pin;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use attache_core::hub::Hub;
use attache_core::legible::legible;
use attache_rpc::{json_lines, stdio};
use attache_serve::AgentServer;
use attache_serve::client::{ReachedServer, ServerAddress, bridge};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acp::{self, refuse};
use crate::answer;
use crate::args::AcpArgs;
use crate::connect;
use crate::limits::{DAEMON_LOG_SHOWN, DAEMON_LOOK, DAEMON_START};
use crate::setup::Sources;
pub(crate) use place::DaemonPlace;
use place::{DaemonRecord, SharedFiles, StartLock};

/// A running server, or why this process gets its own agent.
#[derive(Debug)]
enum SharedServer {
    Server(ServerAddress),
    /// A server of another program or configuration runs, which we must not end.
    Other(String),
}

/// Bridges an editor to the shared server until one of them leaves. If there is no shared server, starts an
/// agent for this editor, or tells it why that failed.
pub(crate) async fn run(sources: &Sources, args: &AcpArgs) -> Result<ExitCode> {
    let server = match reach(sources).await {
        Ok(Ok(server)) => server,
        Ok(Err(other)) => {
            answer::note(&format!("attache: {other}; this process starts its own agent"));
            return acp::run(sources, args).await;
        }
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
        () = keep_alive(sources) => {}
        _ = terminated.recv() => {
            tracing::info!("terminated");
            end.cancel();
            bridging.await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The server's address, for a chat that connects itself. `None` if the chat gets its own agent.
pub(crate) async fn address(sources: &Sources) -> Result<Option<ServerAddress>> {
    let files = SharedFiles::of(sources);
    let _starting = lock_start(&files).await?;
    match find_or_start(sources, &files).await? {
        SharedServer::Server(address) => Ok(Some(address)),
        SharedServer::Other(why) => {
            answer::note(&format!("attache: {why}; this process starts its own agent"));
            Ok(None)
        }
    }
}

/// Connects before it releases the lock: either a server that is about to end sees us, or we start the next
/// one.
async fn reach(sources: &Sources) -> Result<Result<ReachedServer, String>> {
    let files = SharedFiles::of(sources);
    let _starting = lock_start(&files).await?;
    match find_or_start(sources, &files).await? {
        SharedServer::Server(address) => Ok(Ok(connect::connector(sources, &address)?.reach().await?)),
        SharedServer::Other(why) => Ok(Err(why)),
    }
}

/// Starts a killed server again; the bridge then finds it.
async fn keep_alive(sources: &Sources) {
    let files = SharedFiles::of(sources);
    loop {
        tokio::time::sleep(DAEMON_LOOK).await;
        if !files.is_free() {
            continue;
        }
        let started = async {
            let _starting = lock_start(&files).await?;
            find_or_start(sources, &files).await
        };
        if let Err(error) = started.await {
            tracing::warn!("the shared server could not be started again: {error:#}");
        }
    }
}

async fn lock_start(files: &SharedFiles) -> Result<StartLock> {
    let begun = Instant::now();
    loop {
        if let Some(lock) = files.lock_start()? {
            return Ok(lock);
        }
        if begun.elapsed() > DAEMON_START {
            return Err(anyhow!("another process has been starting the shared server for too long"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs under the lock, so that no other process starts a server meanwhile.
async fn find_or_start(sources: &Sources, files: &SharedFiles) -> Result<SharedServer> {
    let begun = Instant::now();
    while !files.is_free() {
        // The server is alive. Without a record it is ending, and its place will be free soon.
        if let Some(record) = files.record() {
            return Ok(judged(&record, files));
        }
        if begun.elapsed() > DAEMON_START {
            return Err(anyhow!(
                "the shared server does not end; kill the process that holds {}",
                files.lock_name()
            ));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    start(sources, files).await
}

fn judged(record: &DaemonRecord, files: &SharedFiles) -> SharedServer {
    let wanted = files.wanted_record();
    let pid = record.pid;
    if record.version != wanted.version {
        let version = &record.version;
        return SharedServer::Other(format!(
            "the shared server (process {pid}) is of version {version}, and ends when its clients have left"
        ));
    }
    if (&record.config, &record.store) != (&wanted.config, &wanted.store) {
        return SharedServer::Other(format!(
            "the shared server (process {pid}) works with {} and {}",
            record.config.display(),
            record.store.display()
        ));
    }
    SharedServer::Server(ServerAddress::Unix(files.socket()))
}

async fn start(sources: &Sources, files: &SharedFiles) -> Result<SharedServer> {
    sources.dirs.create()?;
    let (log_file, log) = files.open_log().context("the log of the shared server can't be written")?;
    let program = std::env::current_exe().context("this program can't be found")?;
    let mut command = Command::new(program);
    command.args(["serve", "--daemon"]).args(files.options());
    // In its own process group, so that signals of our terminal do not reach it.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
    let mut child = command.current_dir("/").spawn().context("the shared server can't be started")?;
    let begun = Instant::now();
    loop {
        if let Some(record) = files.record().filter(|record| Some(record.pid) == child.id()) {
            tell_of_schedules(sources);
            return Ok(judged(&record, files));
        }
        let ended = child.try_wait().context("the shared server can't be watched")?;
        if ended.is_some() || begun.elapsed() > DAEMON_START {
            let said = std::fs::read_to_string(&log_file).unwrap_or_default();
            let said = said.trim();
            let from = said.floor_char_boundary(said.len().saturating_sub(DAEMON_LOG_SHOWN));
            return Err(anyhow!(
                "the shared server did not start: {}",
                legible(said.get(from..).filter(|said| !said.is_empty()).unwrap_or("it said nothing"))
            ));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server that comes and goes with its editors would keep a schedule now and then.
fn tell_of_schedules(sources: &Sources) {
    if !sources.config.schedules.is_empty() {
        answer::note("attache: the shared server keeps no schedule: run `attache serve` for `[[schedule]]`");
    }
}

impl DaemonPlace {
    /// Returns after the server was unused for that long; by then no client can find it.
    pub(crate) async fn until_idle(&self, server: &AgentServer, hub: &Hub, patience: Duration) {
        let mut needed = Instant::now();
        loop {
            tokio::time::sleep(DAEMON_LOOK.min(patience / 4)).await;
            let at_rest = tokio::time::timeout(DAEMON_LOOK, hub.wait_until_at_rest()).await.is_ok();
            if server.connections() > 0 || !at_rest {
                needed = Instant::now();
                continue;
            }
            if needed.elapsed() < patience {
                continue;
            }
            // A process that holds the start lock may be about to connect to this server.
            let Ok(Some(_starting)) = self.files().lock_start() else { continue };
            if server.connections() == 0 {
                self.withdraw();
                return;
            }
        }
    }
}
