//! The `bash` tool: runs one command in a shell of its own, and waits for everything that it started.

pub(crate) mod background;
mod capture;
pub(crate) mod fold;
mod granted;
mod plain;
mod removal;
mod result;
mod sandbox_notes;
mod snapshots;
mod terminal;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use attache_core::ids::CallId;
use attache_core::legible::{visible, visible_block};
use attache_core::ports::tool::{Access, Effect, Presentation, Progress, Shown, Site, ToolKind, WriteGrant};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_sandbox::platform::pipe;
use attache_sandbox::process::{CommandEnd, ExitCause, Sink};
use attache_sandbox::programs::Programs;
use attache_sandbox::{LazySandbox, Level};
use attache_shell as shell;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::disk::{DiskOfWorkspace, RestrictionsOfSession, accesses};
use crate::limits::{COMMAND_TIME, COMMAND_TIME_MAX_MS};
use crate::markdown::fenced;
use crate::outcome::{RunningCall, refused};
use crate::roots::gone_workspace;
use crate::tools::bash_background::BackgroundAnswer;

use background::Background;
use capture::Capture;
use granted::GrantedCommand;
use plain::plain;
use result::Finished;
use sandbox_notes::SandboxLimits;
use snapshots::{CommandLife, CommandSnapshots};
use terminal::{Opened, OutputQueue, Screen};

/// Runs a command with bash in the workspace root; gives its output and `[exit N]`. Each call is a new shell:
/// no state is kept, standard input is empty, there is no terminal, and what it leaves running is ended with
/// it. Output over 16 KB is cut in the middle; the note there names the file that has all of it.
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
    /// Returns at once with a name for bash_background; runs until it ends, is stopped or the session ends. A
    /// server needs network too.
    background: Option<bool>,
}

/// Any host: a command that merely asks for the network may reach every host.
const ANY_HOST: &str = "*";

const EXAMPLE: &str = r#"{"command":"cargo test","timeout_ms":300000}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("bash", ToolKind::Execute, Effect::Mutates, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct Bash {
    sandbox: LazySandbox,
    background: Arc<Background>,
}

impl Bash {
    pub(crate) fn new(sandbox: LazySandbox, background: Arc<Background>) -> Self {
        Self { sandbox, background }
    }

    /// What a command would touch, as far as its words show.
    fn accesses(&self, command: &str, site: &Site) -> Vec<Access> {
        let directory = &site.workspace.root;
        let is_held = self.sandbox.level() != Level::None;
        let home = std::env::home_dir();
        let disk = DiskOfWorkspace::new(Programs::of(site));
        let (guarded, closed) = (&site.workspace.guarded, site.closed.as_ref());
        let context = shell::Context {
            directory,
            home: home.as_deref(),
            // The sandbox sets the scratch directory as `TMPDIR` of commands.
            temporary: is_held.then_some(site.workspace.scratch.as_path()),
            disk: &disk,
            restrictions: &RestrictionsOfSession { guarded, closed },
        };
        let touches = shell::read(command, &context).touches;
        accesses(shell::with_real_paths(touches, &disk, directory))
    }

    /// Keeps the files that the command will write. Without permission to write it can't change any.
    async fn keep_before(
        &self,
        input: &Input,
        runtime: &ToolRuntime,
    ) -> Result<Option<CommandSnapshots>, String> {
        let sink = match (runtime.writes, &runtime.snapshots) {
            (WriteGrant::Granted, Some(sink)) => Arc::clone(sink),
            (WriteGrant::Withheld, _) | (WriteGrant::Granted, None) => return Ok(None),
        };
        let life = match input.background {
            Some(true) => CommandLife::Background,
            Some(false) | None => CommandLife::Call,
        };
        let accesses = self.accesses(&input.command, &runtime.site);
        let title = input.shown().title;
        CommandSnapshots::before(sink, title, &accesses, life, &runtime.site).await.map(Some)
    }

    async fn start_in_background(
        &self,
        granted: GrantedCommand,
        time: Option<Duration>,
        runtime: &ToolRuntime,
        call: RunningCall,
    ) -> ToolOutcome {
        let note = SandboxLimits::of(&granted).note_at_start();
        match self.background.start(granted, time, runtime).await {
            Ok(process) => {
                let mut told = BackgroundAnswer::news(&process);
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

    fn tells_changes(&self) -> bool {
        true
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let input = parse(input);
        let site = site.clone();
        let gone = gone_workspace(&site.workspace);
        Box::pin(async move {
            let input = input?;
            if let Some(gone) = gone {
                return Err(format!("bash: {gone}"));
            }
            let mut accesses = self.accesses(&input.command, &site);
            if input.network == Some(true) && !accesses.iter().any(is_of_network) {
                accesses.push(Access::Network { host: ANY_HOST.to_owned() });
            }
            let presentation = input.presentation(&accesses);
            match removal::refusal(&accesses, &self.sandbox, &site) {
                // Impossible, whatever rules and people say.
                Some(problem) => Err(format!("bash: {problem}")),
                None => Ok(ToolPlan::new(accesses, presentation)),
            }
        })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let input = match parse(&input) {
                Ok(input) => input,
                Err(text) => return refused(text),
            };
            let call = RunningCall::started(input.shown());
            if runtime.cancel.is_cancelled() {
                return call.failed("bash: cancelled before it was started");
            }
            let granted = GrantedCommand {
                sandbox: Arc::clone(&self.sandbox),
                command: input.command.clone(),
                site: runtime.site.clone(),
                network: runtime.network,
                writes: runtime.writes,
                commands: runtime.commands,
            };
            let kept = match self.keep_before(&input, &runtime).await {
                Ok(kept) => kept,
                Err(reason) => return call.failed(format!("bash: {reason}; nothing was run")),
            };
            let time = input.timeout_ms.map(Duration::from_millis);
            if input.background == Some(true) {
                return self.start_in_background(granted, time, &runtime, call).await;
            }
            let timeout = time.unwrap_or(COMMAND_TIME);
            let opened = match terminal::offered(&runtime.site) {
                None => Opened::None,
                Some(client) => {
                    let presentation = &call.presentation;
                    terminal::open(client, &self.sandbox, &input.command, &runtime, presentation).await
                }
            };
            let outcome = match opened {
                Opened::Cancelled => call.failed("bash: cancelled before it was started"),
                Opened::None => run_here(granted, timeout, runtime, call, None).await,
                Opened::Screen(screen) => run_here(granted, timeout, runtime, call, Some(screen)).await,
                Opened::ByClient(word) => word.outcome(timeout, &runtime, call).await,
            };
            if let Some(kept) = kept {
                kept.after().await;
            }
            outcome
        })
    }
}

/// From the start of the command until everything that it started has ended; a terminal or the call shows its
/// output.
async fn run_here(
    granted: GrantedCommand,
    timeout: Duration,
    runtime: ToolRuntime,
    call: RunningCall,
    screen: Option<Screen>,
) -> ToolOutcome {
    // Closed when the call is cancelled, and when this future is dropped.
    let (cancelled, alive) = match pipe() {
        Ok(ends) => ends,
        Err(error) => return call.failed(format!("bash: could not be started: {error}")),
    };
    let view = match &screen {
        Some(screen) => View::Terminal(Arc::clone(&screen.queue)),
        None => View::Call { presentation: Box::new(call.presentation.clone()), progress: runtime.progress },
    };
    let capture = Capture::new(spill_path(&runtime.site.workspace.scratch, &runtime.call_id));
    let job = Job { granted, timeout, live: LiveOutput { capture, view } };
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
            if let Ok(Ok(Finished { end: CommandEnd { how: how @ ExitCause::Cancelled, .. }, .. })) = &mut finished {
                *how = ExitCause::TerminalClosed;
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
    /// Adds the command's purpose and facts that it does not show: a person who allows network access has to
    /// know.
    fn presentation(&self, accesses: &[Access]) -> Presentation {
        let mut shown = self.shown();
        if accesses.iter().any(is_of_network) {
            shown.content.push(Shown::Text { text: "With access to the network.".to_owned() });
        }
        shown
    }

    /// What clients always see: the command and its purpose. The output follows below.
    fn shown(&self) -> Presentation {
        let description = self.description.as_deref().filter(|text| !text.trim().is_empty());
        Presentation {
            title: visible(&self.command),
            kind: Some(ToolKind::Execute),
            content: description.map(|text| Shown::Text { text: visible(text) }).into_iter().collect(),
            ..Presentation::default()
        }
    }
}

/// The call's id comes from a model: only its harmless characters become part of the name.
fn spill_path(scratch: &Path, call_id: &CallId) -> PathBuf {
    static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let id: String = call_id.as_str().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    scratch.join(format!("bash-{id}-{}-{count}.txt", std::process::id()))
}

#[derive(Debug)]
struct Job {
    granted: GrantedCommand,
    timeout: Duration,
    live: LiveOutput,
}

impl Job {
    fn run(mut self, cancel: &OwnedFd) -> io::Result<Finished> {
        let (end, aftermath) = self.granted.run(cancel, self.timeout, &mut self.live)?;
        let mut capture = self.live.capture;
        capture.settle();
        let held = SandboxLimits::of(&self.granted).after(aftermath);
        Ok(Finished { end, capture, time: self.timeout, held })
    }
}

#[derive(Debug)]
struct LiveOutput {
    capture: Capture,
    view: View,
}

/// Where people see a command's output.
#[derive(Debug)]
enum View {
    Call { presentation: Box<Presentation>, progress: Arc<dyn Progress> },
    Terminal(Arc<OutputQueue>),
}

impl Sink for LiveOutput {
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
                let mut shown = (**presentation).clone();
                shown.content.push(Shown::Text { text });
                progress.show(shown);
            }
        }
    }
}
