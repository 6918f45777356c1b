//! The `bash` tool: one command in a shell of its own, from its start to the end of all it started.

pub(crate) mod background;
mod capture;
pub(crate) mod fold;
mod plain;
mod result;
mod terminal;
mod withheld;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use attache_core::ids::CallId;
use attache_core::ports::tool::{
    Access, Effect, NetworkGrant, Presentation, Progress, Shown, Site, ToolKind, WriteGrant,
};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use rustix::pipe::{PipeFlags, pipe_with};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::bash_background::Told;
use crate::environment;
use crate::fence::{fenced, visible, visible_block};
use crate::limits::{COMMAND_TIME, COMMAND_TIME_MAX_MS};
use crate::outcome::{Call, refused};
use crate::process::{End, Ended, Sink, Tree, watch};
use crate::programs::Programs;
use crate::sandbox::{Aftermath, Found, Level, cautious};
use crate::shell;

use background::Background;
use capture::Capture;
use plain::plain;
use result::Finished;
use terminal::{Opened, Queue, Screen};
use withheld::Held;

/// Runs a command with bash in the workspace root; gives its output and `[exit N]`. Each call is a new shell: no state is
/// kept, standard input is empty, there is no terminal, and what it leaves running is ended with it. Output over 16 KB
/// is cut in the middle; the note there names the file that has all of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    /// Default 120000.
    #[schemars(range(min = 1, max = COMMAND_TIME_MAX_MS))]
    timeout_ms: Option<u64>,
    /// What it is for, in a few words, for the user.
    description: Option<String>,
    /// Asks for the network, which a command does not have otherwise.
    network: Option<bool>,
    /// Returns at once with a name for bash_background; runs until it ends, is stopped or the session ends. A server needs network too.
    background: Option<bool>,
}

/// Nobody can say which hosts a command reaches that only asks for the network.
const ANY_HOST: &str = "*";

const EXAMPLE: &str = r#"{"command":"cargo test","timeout_ms":300000}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("bash", ToolKind::Execute, Effect::Mutates, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct Bash {
    sandbox: Found,
    background: Arc<Background>,
}

impl Bash {
    pub(crate) fn new(sandbox: Found, background: Arc<Background>) -> Self {
        Self { sandbox, background }
    }

    async fn start_in_background(
        &self,
        order: Order,
        time: Option<Duration>,
        runtime: &ToolRuntime,
        call: Call,
    ) -> ToolOutcome {
        let note = Held::of(order.writes, order.network, &order.sandbox).note_at_start();
        match self.background.start(order, time, runtime).await {
            Ok(process) => {
                let mut told = Told::news(&process);
                let log = told.news.as_ref().map(|news| news.log.display().to_string()).unwrap_or_default();
                told.text = format!(
                    "Started {0} in the background. Read its output with bash_background, or in {log}\n{1}",
                    process.name, told.text
                );
                if let Some(note) = note.filter(|_| process.is_running()) {
                    told.text.push_str(&format!("\n[{note}]"));
                }
                told.outcome(call)
            }
            Err(text) => call.failed(format!("bash: {text}")),
        }
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let input = parse(input);
        let directory = site.workspace.root.clone();
        let (guarded, closed) = (Arc::clone(&site.workspace.guarded), site.closed.clone());
        let (programs, scratch) = (Programs::of(site), site.workspace.scratch.clone());
        Box::pin(async move {
            let input = input?;
            // The sandbox gives commands the scratch as their `TMPDIR`.
            let is_held = self.sandbox.level() != Level::None;
            let home = std::env::home_dir();
            let ground = shell::Ground {
                directory: &directory,
                home: home.as_deref(),
                temporary: is_held.then_some(scratch.as_path()),
                programs: &programs,
                repository: shell::repository,
                tracked: shell::tracked,
                guarded: &guarded,
                keys: shell::keys,
                closed: closed.as_ref(),
                links: shell::links,
                elsewhere: shell::elsewhere,
            };
            let mut accesses =
                shell::with_real_paths(shell::read(&input.command, &ground).accesses, &directory);
            if input.network == Some(true) && !accesses.iter().any(is_of_network) {
                accesses.push(Access::Network { host: ANY_HOST.to_owned() });
            }
            let presentation = input.presentation(&accesses);
            Ok(ToolPlan::new(accesses, presentation))
        })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let input = match parse(&input) {
                Ok(input) => input,
                Err(text) => return refused(text),
            };
            let call = Call::started(presentation(&input.command));
            if runtime.cancel.is_cancelled() {
                return call.failed("bash: cancelled before it was started");
            }
            let order = Order {
                sandbox: Arc::clone(&self.sandbox),
                command: input.command.clone(),
                site: runtime.site.clone(),
                network: runtime.network,
                writes: runtime.writes,
            };
            let time = input.timeout_ms.map(Duration::from_millis);
            if input.background == Some(true) {
                return self.start_in_background(order, time, &runtime, call).await;
            }
            let timeout = time.unwrap_or(COMMAND_TIME);
            let opened = match terminal::offered(&runtime.site) {
                None => Opened::None,
                Some(client) => {
                    let presentation = &call.presentation;
                    terminal::open(client, &self.sandbox, &input.command, &runtime, presentation).await
                }
            };
            match opened {
                Opened::Cancelled => call.failed("bash: cancelled before it was started"),
                Opened::None => run_here(order, timeout, runtime, call, None).await,
                Opened::Screen(screen) => run_here(order, timeout, runtime, call, Some(screen)).await,
                Opened::ByClient(word) => word.outcome(timeout, &runtime, call).await,
            }
        })
    }
}

/// From the start of the command to the end of all it started; a terminal shows what it prints, or the call does.
async fn run_here(
    order: Order,
    timeout: Duration,
    runtime: ToolRuntime,
    call: Call,
    screen: Option<Screen>,
) -> ToolOutcome {
    // Closed when the call is cancelled, and when this future is dropped.
    let (cancelled, alive) = match pipe_with(PipeFlags::CLOEXEC) {
        Ok(ends) => ends,
        Err(error) => return call.failed(format!("bash: could not be started: {error}")),
    };
    let view = match &screen {
        Some(screen) => View::Terminal(Arc::clone(&screen.queue)),
        None => View::Call { presentation: Box::new(call.presentation.clone()), progress: runtime.progress },
    };
    let capture = Capture::new(spill_path(&runtime.site.workspace.scratch, &runtime.call_id));
    let job = Job { order, timeout, live: Live { capture, view } };
    let mut running = tokio::task::spawn_blocking(move || job.run(&cancelled));
    let mut finished = tokio::select! {
        finished = &mut running => finished,
        () = runtime.cancel.cancelled() => {
            drop(alive);
            running.await
        }
        () = terminal::lost(screen.as_ref()) => {
            drop(alive);
            let mut finished = running.await;
            if let Ok(Ok(Finished { end: End { how: how @ Ended::Cancelled, .. }, .. })) = &mut finished {
                *how = Ended::TerminalClosed;
            }
            finished
        }
    };
    let ended =
        finished.as_mut().ok().and_then(|finished| finished.as_ref().ok()).map(|finished| finished.end.how);
    let outcome = match finished {
        Ok(Ok(finished)) => finished.outcome(call),
        Ok(Err(error)) => {
            let text = format!("could not be started: {error}");
            if let Some(screen) = &screen {
                screen.queue.push(format!("[{text}]\n").as_bytes());
            }
            call.failed(format!("bash: {text}"))
        }
        Err(error) => call.failed(format!("bash: the command's supervision failed: {error}")),
    };
    match screen {
        None => outcome,
        Some(screen) => {
            let terminal_id = screen.terminal_id.clone();
            screen.close(ended).await;
            terminal::shown_in(terminal_id, outcome)
        }
    }
}

fn parse(input: &Value) -> Result<Input, String> {
    let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
    let problem = if input.command.trim().is_empty() {
        "field `command` must not be empty"
    } else if input.command.contains('\0') {
        "field `command` must not contain a NUL character"
    } else {
        return Ok(input);
    };
    Err(arguments::rejected(&SPEC, EXAMPLE, problem))
}

fn is_of_network(access: &Access) -> bool {
    match access {
        Access::Network { .. } => true,
        Access::ReadPath(_) | Access::WritePath(_) | Access::Command(_) => false,
    }
}

impl Input {
    /// Before it runs: what it is for, and what cannot be seen from the command. Whoever allows a call that reaches the
    /// network must know it, also where the model did not ask for it.
    fn presentation(&self, accesses: &[Access]) -> Presentation {
        let description = self.description.as_deref().filter(|text| !text.trim().is_empty()).map(visible);
        let reaches = accesses.iter().any(is_of_network);
        let network = reaches.then(|| "With access to the network.".to_owned());
        let lines: Vec<String> = description.into_iter().chain(network).collect();
        let content = (!lines.is_empty()).then(|| Shown::Text { text: lines.join("\n\n") });
        Presentation { content: content.into_iter().collect(), ..presentation(&self.command) }
    }
}

fn presentation(command: &str) -> Presentation {
    Presentation { title: visible(command), kind: Some(ToolKind::Execute), ..Presentation::default() }
}

/// The call's id comes from a model: it becomes part of a name only as far as it is harmless.
fn spill_path(scratch: &Path, call_id: &CallId) -> PathBuf {
    static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let id: String = call_id.as_str().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    scratch.join(format!("bash-{id}-{}-{count}.txt", std::process::id()))
}

/// A command to be started, and what it was granted.
#[derive(Debug)]
struct Order {
    sandbox: Found,
    command: String,
    site: Site,
    network: NetworkGrant,
    writes: WriteGrant,
}

impl Order {
    /// From its start to the end of all it started. Blocks.
    fn run(&self, cancel: &OwnedFd, time: Duration, sink: &mut dyn Sink) -> io::Result<(End, Aftermath)> {
        match (self.attempt(self.writes, cancel, time, sink), self.writes, self.sandbox.level()) {
            // Something has changed while the sandbox was built: without anything to be written that does not matter.
            (Err(error), WriteGrant::Granted, Level::Full) => {
                let (end, mut aftermath) = self.attempt(WriteGrant::Withheld, cancel, time, sink)?;
                aftermath.told.push(cautious(&error));
                Ok((end, aftermath))
            }
            (first, _, _) => first,
        }
    }

    fn attempt(
        &self,
        writes: WriteGrant,
        cancel: &OwnedFd,
        time: Duration,
        sink: &mut dyn Sink,
    ) -> io::Result<(End, Aftermath)> {
        let directory = &self.site.workspace.root;
        if !directory.is_dir() {
            let text = format!("the workspace root {} is not a directory", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let programs = Programs::of(&self.site);
        let line = vec![find_shell(&programs)?, "-c".into(), (&self.command).into()];
        // Lives until the whole tree is gone.
        let confined = self.sandbox.confine(&self.site, self.network, writes, line)?;
        let environment = environment::for_call(std::env::vars_os(), writes, &programs);
        let directory = confined.directory.as_deref().unwrap_or(directory);
        let tree = Tree::start(&confined.line(), directory, environment.into_iter())?;
        let end = watch(tree, cancel, time, sink)?;
        Ok((end, confined.aftermath()))
    }
}

#[derive(Debug)]
struct Job {
    order: Order,
    timeout: Duration,
    live: Live,
}

impl Job {
    fn run(mut self, cancel: &OwnedFd) -> io::Result<Finished> {
        let (end, aftermath) = self.order.run(cancel, self.timeout, &mut self.live)?;
        let mut capture = self.live.capture;
        capture.settle();
        let held = Held::of(self.order.writes, self.order.network, &self.order.sandbox).after(aftermath);
        Ok(Finished { end, capture, time: self.timeout, held })
    }
}

/// By its whole path, and never one of the project.
fn find_shell(programs: &Programs) -> io::Result<OsString> {
    let found = programs.helper("bash").or_else(|| programs.helper("sh"));
    found.map(PathBuf::into_os_string).ok_or_else(|| {
        let text = "No such file: neither bash nor sh is in PATH outside of the session's directories";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

#[derive(Debug)]
struct Live {
    capture: Capture,
    view: View,
}

/// Where people see what a command prints.
#[derive(Debug)]
enum View {
    Call { presentation: Box<Presentation>, progress: Arc<dyn Progress> },
    Terminal(Arc<Queue>),
}

impl Sink for Live {
    fn output(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        match &self.view {
            View::Terminal(queue) => queue.push(bytes),
            View::Call { .. } => {}
        }
    }

    fn show(&mut self) {
        match &self.view {
            View::Terminal(_) => {}
            View::Call { presentation, progress } => {
                let text = fenced(&visible_block(&plain(&self.capture.latest())), "");
                progress
                    .show(Presentation { content: vec![Shown::Text { text }], ..(**presentation).clone() });
            }
        }
    }
}
