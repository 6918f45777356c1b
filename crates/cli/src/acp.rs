//! `attache acp`: the agent on stdin and stdout, until its editor leaves or a signal ends it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use attache_acp::{AgentServices, Host, SameDirectory, StartFailure, Warning, connect, refuse_all, to_wire};
use attache_core::hub::{Hub, ModelStandIn, People};
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::ports::{BoxFuture, Model};
use attache_core::watchdog::{Containment, HostContainment};
use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Connection, MessageSink, MessageSource, Options, Trace, json_lines, stdio};
use attache_sandbox::check_places;
use attache_store::{FileBlobs, SqliteStore};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::accounts::{StoredKeys, own_login};
use crate::answer;
use crate::args::AcpArgs;
use crate::config::{Config, Thoughts};
use crate::dirs::Dirs;
use crate::setup::{Setup, Sources};
use crate::troubles::Troubles;
use crate::unfinished_imports;
use crate::usage_error::OrWrongUsage;

/// How long we wait to send the last answers; together with the hub's own time, the process ends within 3 s.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How long we wait to send the last spans, and how long the whole end may take: the rest of the 3 s after
/// which editors kill.
const LAST_SPANS: Duration = Duration::from_secs(1);
const WHOLE_END: Duration = Duration::from_millis(2_900);

/// When we remove the place-holders of a killed process: by then the editor has its first answers, and this
/// thread takes no time from them. A command that runs earlier removes those in its own root.
const LOOK_FOR_PLACE_HOLDERS: Duration = Duration::from_secs(1);

/// When we first remove scratch directories of old sessions: after the start. Then daily.
const FIRST_LOOK_AT_SCRATCH: Duration = Duration::from_secs(60);
const NEXT_LOOK_AT_SCRATCH: Duration = Duration::from_secs(24 * 60 * 60);

/// Two interrupts within this time end the process. A single one may be the Ctrl-C of a terminal client, which
/// reaches us too.
const SECOND_INTERRUPT: Duration = Duration::from_secs(2);

/// Serves the editor, or tells it why that is not possible.
pub(crate) async fn run(sources: &Sources, args: &AcpArgs) -> Result<ExitCode> {
    let (stand_in, people) = (ModelStandIn::Allowed, People::Present);
    let ready = Setup::open(sources, args.trace.as_deref(), stand_in, people).and_then(|setup| {
        let trace = args.trace.as_deref().map(open_trace).transpose()?;
        Ok((setup, trace))
    });
    match ready {
        Ok((setup, trace)) => serve(setup, sources, trace).await.map(|()| ExitCode::SUCCESS),
        Err(error) => {
            answer::note(&format!("attache: {error:#}"));
            refuse(&format!("{error:#}")).await;
            Ok(crate::usage_error::exit_code(&error))
        }
    }
}

pub(crate) fn open_trace(path: &Path) -> Result<Trace> {
    Trace::open(path).with_context(|| format!("can't write the trace {}", path.display())).or_wrong_usage()
}

/// The agent cannot start. We tell the editor in answer to its requests, because it may show nothing of stderr.
/// A person at a terminal has read it there.
pub(crate) async fn refuse(reason: &str) {
    if answer::is_typed() {
        return;
    }
    let reason = format!(
        "attache can't start: {reason} (`attache doctor` in a terminal looks at everything it needs)"
    );
    let failure = StartFailure { reason, version: env!("CARGO_PKG_VERSION") };
    let (source, sink) = json_lines(stdio(), MAX_LINE_BYTES);
    let mut connection = refuse_all(failure, source, sink, Options::default());
    connection.wait_closed().await;
    connection.drain(LAST_WORDS).await;
}

/// The same, before there is a runtime.
pub(crate) fn refuse_from_the_start(reason: &str) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(refuse(reason));
            runtime.shutdown_background();
        }
        Err(error) => answer::note(&format!("attache: {error}")),
    }
}

/// The agent of this process, with the tasks it runs beside its clients.
#[derive(Debug)]
pub(crate) struct OwnAgent {
    setup: Setup,
    services: AgentServices,
}

impl OwnAgent {
    pub(crate) async fn start(setup: Setup, sources: &Sources) -> Self {
        let config = &sources.config;
        begin_upkeep(&setup, sources).await;
        let keys = StoredKeys::new(sources.credentials.clone(), setup.providers.clone(), own_login());
        let services = AgentServices {
            hub: setup.hub.clone(),
            accounts: Some(Arc::new(keys)),
            clock: setup.clock.clone(),
            host: Arc::new(Machine::of(sources, &setup)),
            version: env!("CARGO_PKG_VERSION"),
            thoughts: match config.thoughts.value {
                Thoughts::Show => to_wire::ThoughtUpdates::Show,
                Thoughts::Drop => to_wire::ThoughtUpdates::Drop,
            },
            client_fs: config.client_fs.value,
        };
        Self { setup, services }
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.setup.hub
    }

    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        Arc::new(self.setup.store.clone())
    }

    /// For servers that reach their clients in another way.
    pub(crate) fn services(&self) -> AgentServices {
        self.services.clone()
    }

    /// Serves one more client.
    pub(crate) fn connect(
        &self,
        source: impl MessageSource,
        sink: impl MessageSink,
        options: Options,
    ) -> Connection {
        connect(self.services.clone(), source, sink, options)
    }

    /// Ends its runs, then its connections, and sends the last messages; all within 3 s.
    pub(crate) async fn end(self, connections: Vec<Connection>) {
        let ending = Instant::now();
        self.setup.hub.shutdown().await;
        for connection in connections {
            connection.drain(LAST_WORDS).await;
        }
        if let Some(telemetry) = &self.setup.telemetry {
            telemetry.finish(LAST_SPANS.min(WHOLE_END.saturating_sub(ending.elapsed()))).await;
        }
        self.setup.store.shutdown();
    }
}

async fn serve(setup: Setup, sources: &Sources, trace: Option<Trace>) -> Result<()> {
    let options = Options { trace: trace.clone(), ..Options::default() };
    let agent = OwnAgent::start(setup, sources).await;
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (source, sink) = json_lines(stdio(), sources.config.limits.max_line_bytes.value);
    let mut connection = agent.connect(source, sink, options);
    tokio::select! {
        () = connection.wait_closed() => tracing::info!("the client has left"),
        _ = terminated.recv() => tracing::info!("terminated"),
        () = interrupted_twice(&mut interrupted, &agent.setup.hub) => tracing::info!("interrupted"),
    }
    agent.end(vec![connection]).await;
    if let Some(trace) = trace {
        trace.flush().await;
    }
    Ok(())
}

/// Starts what a process does beside its sessions, as long as it serves them.
pub(crate) async fn begin_upkeep(setup: &Setup, sources: &Sources) {
    look_for_models(setup, &sources.config).await;
    tokio::spawn(remove_place_holders(sources.dirs.scratch.clone()));
    tokio::spawn(keep_scratch_small(setup.hub.clone()));
    tokio::spawn(forget_killed_imports(
        sources.dirs.clone(),
        sources.config.store.value.clone(),
        setup.store.clone(),
    ));
}

/// Cancels the running turns at each interrupt; returns at the second of two in a row.
pub(crate) async fn interrupted_twice(interrupts: &mut Signal, hub: &Hub) {
    let mut last: Option<Instant> = None;
    while interrupts.recv().await.is_some() {
        if last.is_some_and(|last| last.elapsed() <= SECOND_INTERRUPT) {
            return;
        }
        last = Some(Instant::now());
        tracing::info!("interrupted: turns are cancelled");
        hub.cancel_all();
    }
    // No more signals can arrive, so wait for ever.
    std::future::pending().await
}

/// If there is a model, starts at once and asks the configured servers in the background. If there is none, or
/// only its server knows its sizes, waits a moment for the server.
async fn look_for_models(setup: &Setup, config: &Config) {
    let unasked = setup.providers.unasked();
    let usual = setup.providers.available().first().map(|info| info.model.provider_id.clone());
    let first = config.model.as_ref().map(|model| model.value.provider_id.clone()).or(usual);
    if first.is_none_or(|provider| unasked.contains(&provider)) {
        setup.hub.refresh_choices().await;
    } else if !unasked.is_empty() {
        let hub = setup.hub.clone();
        tokio::spawn(async move { hub.refresh_choices().await });
    }
}

/// Removes the place-holders that commands of a killed process left. A command takes the same locks, so it may
/// run meanwhile.
async fn remove_place_holders(scratch: PathBuf) {
    tokio::time::sleep(LOOK_FOR_PLACE_HOLDERS).await;
    let looked = tokio::task::spawn_blocking(move || attache_sandbox::remove_left_behind(&scratch)).await;
    if let Err(error) = looked {
        tracing::warn!(%error, "place-holders of a killed process may stay");
    }
}

/// Cleans up now and then, but not while an editor waits for its first answers.
async fn keep_scratch_small(hub: Hub) {
    tokio::time::sleep(FIRST_LOOK_AT_SCRATCH).await;
    loop {
        if let Err(error) = hub.remove_old_scratch().await {
            tracing::warn!(%error, "old scratch directories stay");
        }
        if let Err(error) = hub.remove_old_snapshots().await {
            tracing::warn!(%error, "old snapshots of files stay");
        }
        tokio::time::sleep(NEXT_LOOK_AT_SCRATCH).await;
    }
}

/// Removes attachments that killed imports left, but not while an editor waits for its first answers.
async fn forget_killed_imports(dirs: Dirs, database: PathBuf, store: SqliteStore) {
    tokio::time::sleep(FIRST_LOOK_AT_SCRATCH).await;
    let blobs = FileBlobs::new(dirs.blobs.clone());
    if let Err(error) = unfinished_imports::clean_up(&dirs, &database, &store, &blobs).await {
        tracing::warn!(%error, "attachments of a killed import stay");
    }
}

/// What the ACP adapter needs from this machine.
#[derive(Debug)]
pub(crate) struct Machine {
    troubles: Troubles,
    /// The scratch directory of all sessions.
    scratch: PathBuf,
    containment: HostContainment,
}

impl Machine {
    pub(crate) fn of(sources: &Sources, setup: &Setup) -> Self {
        Self {
            troubles: sources.troubles.clone(),
            scratch: sources.dirs.scratch.clone(),
            containment: setup.containment.clone(),
        }
    }
}

impl Host for Machine {
    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory> {
        let names = [one.to_owned(), other.to_owned()];
        Box::pin(async move {
            let looked =
                tokio::task::spawn_blocking(move || names.map(|name| std::fs::metadata(name).ok())).await;
            match looked {
                Ok([Some(one), Some(other)])
                    if one.is_dir() && (one.dev(), one.ino()) == (other.dev(), other.ino()) =>
                {
                    SameDirectory::Same
                }
                Ok(_) | Err(_) => SameDirectory::Different,
            }
        })
    }

    fn check_places(
        &self,
        session: &SessionId,
        directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let scratch = self.scratch.join(session.directory_name());
        Box::pin(async move {
            let checked = tokio::task::spawn_blocking(move || check_places(&scratch, &directories)).await;
            checked.map_err(|error| error.to_string())?.map_err(|error| legible_line(&error.to_string()))
        })
    }

    fn take_warnings(&self) -> Vec<Warning> {
        self.troubles.take()
    }

    fn containment(&self) -> BoxFuture<'static, Option<Containment>> {
        let found = self.containment.clone();
        Box::pin(async move { tokio::task::spawn_blocking(move || found.get()).await.ok() })
    }

    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>> {
        let path = path.to_owned();
        let shown = legible_line(&path.display().to_string());
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || std::fs::metadata(path)).await;
            match looked {
                Ok(Ok(metadata)) if metadata.is_dir() => Ok(()),
                Ok(Ok(_)) => Err(format!("{shown} is not a directory")),
                Ok(Err(error)) => Err(match error.kind() {
                    std::io::ErrorKind::NotFound => format!("{shown} does not exist"),
                    _ => format!("{shown} can't be opened: {error}"),
                }),
                Err(_) => Err(format!("{shown} could not be looked at")),
            }
        })
    }
}
