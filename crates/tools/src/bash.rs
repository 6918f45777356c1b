//! The `bash` tool: one command in a shell of its own, from its start to the end of all it started.

mod capture;
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
    Effect, NetworkGrant, Presentation, Progress, Shown, Site, ToolKind, WriteGrant,
};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use rustix::pipe::{PipeFlags, pipe_with};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::environment;
use crate::fence::{fenced, visible, visible_block};
use crate::limits::{
    COMMAND_PROCESSES, COMMAND_TIME, COMMAND_TIME_MAX_MS, ERROR_BYTES, OUTPUT_BYTES, SHOWN_OUTPUT_BYTES,
};
use crate::outcome::{Call, refused};
use crate::process::{Ended, Sink, Tree, watch};
use crate::programs::Programs;
use crate::sandbox::{Aftermath, Found, Level, cautious};
use crate::shell;

use capture::{Capture, Kept};
use withheld::Held;

/// Runs a command with bash in the workspace root and returns its output and exit code. Each call is a new shell: no
/// state is kept, standard input is empty, there is no terminal, and whatever it leaves in the background is ended
/// with it. Output over 200 KB is cut in the middle and kept in a file. Use read, write and edit for files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    command: String,
    /// Default 120000.
    #[schemars(range(min = 1, max = COMMAND_TIME_MAX_MS))]
    timeout_ms: Option<u64>,
    /// What it is for, in a few words, for the user.
    description: Option<String>,
}

const EXAMPLE: &str = r#"{"command":"cargo test","timeout_ms":300000}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("bash", ToolKind::Execute, Effect::Mutates, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct Bash {
    sandbox: Found,
}

impl Bash {
    pub(crate) fn new(sandbox: Found) -> Self {
        Self { sandbox }
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
            let mut presentation = presentation(&input.command);
            if let Some(description) = input.description.filter(|text| !text.trim().is_empty()) {
                presentation.content = vec![Shown::Text { text: visible(&description) }];
            }
            let home = std::env::home_dir();
            let ground = shell::Ground {
                directory: &directory,
                home: home.as_deref(),
                temporary: is_held.then_some(scratch.as_path()),
                programs: &programs,
                repository: shell::repository,
                guarded: &guarded,
                keys: shell::keys,
                closed: closed.as_ref(),
                links: shell::links,
                elsewhere: shell::elsewhere,
            };
            let accesses = shell::with_real_paths(shell::read(&input.command, &ground).accesses, &directory);
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
            let timeout = input.timeout_ms.map_or(COMMAND_TIME, Duration::from_millis);
            if let Some(client) = terminal::offered(&runtime.site) {
                let (sandbox, presentation) = (Arc::clone(&self.sandbox), call.presentation.clone());
                let command = input.command;
                let job = terminal::Job { client, sandbox, command, time: timeout, runtime, presentation };
                return job.run(call).await;
            }
            // Closed when the call is cancelled, and when this future is dropped.
            let (cancelled, alive) = match pipe_with(PipeFlags::CLOEXEC) {
                Ok(ends) => ends,
                Err(error) => return call.failed(format!("bash: could not be started: {error}")),
            };
            let job = Job {
                sandbox: Arc::clone(&self.sandbox),
                command: input.command,
                site: runtime.site.clone(),
                network: runtime.network,
                writes: runtime.writes,
                timeout,
                live: Live {
                    capture: Capture::new(spill_path(&runtime.site.workspace.scratch, &runtime.call_id)),
                    presentation: call.presentation.clone(),
                    progress: runtime.progress,
                },
            };
            let held = Held::of(runtime.writes, &self.sandbox);
            let mut running = tokio::task::spawn_blocking(move || job.run(&cancelled));
            let finished = tokio::select! {
                finished = &mut running => finished,
                () = runtime.cancel.cancelled() => {
                    drop(alive);
                    running.await
                }
            };
            match finished {
                Ok(Ok((ended, capture, aftermath))) => {
                    outcome(call, ended, &capture, timeout, &held.after(aftermath))
                }
                Ok(Err(error)) => call.failed(format!("bash: could not be started: {error}")),
                Err(error) => call.failed(format!("bash: the command's supervision failed: {error}")),
            }
        })
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

#[derive(Debug)]
struct Job {
    sandbox: Found,
    command: String,
    site: Site,
    network: NetworkGrant,
    writes: WriteGrant,
    timeout: Duration,
    live: Live,
}

impl Job {
    fn run(mut self, cancel: &OwnedFd) -> io::Result<(Ended, Capture, Aftermath)> {
        let first = self.attempt(self.writes, cancel);
        // Something has changed while the sandbox was built: without anything to be written that does not matter.
        let (ended, aftermath) = match (first, self.writes, self.sandbox.level()) {
            (Err(error), WriteGrant::Granted, Level::Full) => {
                let (ended, mut aftermath) = self.attempt(WriteGrant::Withheld, cancel)?;
                aftermath.told.push(cautious(&error));
                (ended, aftermath)
            }
            (first, _, _) => first?,
        };
        Ok((ended, self.live.capture, aftermath))
    }

    fn attempt(&mut self, writes: WriteGrant, cancel: &OwnedFd) -> io::Result<(Ended, Aftermath)> {
        let directory = &self.site.workspace.root;
        if !directory.is_dir() {
            let text = format!("the workspace root {} is not a directory", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let programs = Programs::of(&self.site);
        let line = vec![find_shell(&programs)?, "-c".into(), (&self.command).into()];
        // Lives until the whole tree is gone.
        let confined = self.sandbox.confine_for_us(&self.site, self.network, writes, line)?;
        let environment = environment::for_call(std::env::vars_os(), writes, &programs);
        let directory = confined.directory.as_deref().unwrap_or(directory);
        let tree = Tree::start(&confined.line(), directory, environment.into_iter())?;
        let ended = watch(tree, cancel, self.timeout, &mut self.live)?;
        Ok((ended, confined.aftermath()))
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
    presentation: Presentation,
    progress: Arc<dyn Progress>,
}

impl Sink for Live {
    fn output(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
    }

    fn show(&mut self) {
        let mut presentation = self.presentation.clone();
        presentation.content = vec![Shown::Text { text: fenced(&visible_block(&self.capture.latest()), "") }];
        self.progress.show(presentation);
    }
}

fn outcome(mut call: Call, ended: Ended, capture: &Capture, timeout: Duration, held: &Held) -> ToolOutcome {
    let bounded = capture.bounded();
    call.truncated = bounded.is_cut();
    call.output_path = capture.spilled().map(|(path, _)| path.to_owned());
    let mut output = bounded.into_text();
    output.push_str(&spill_note(capture));
    output.push_str(&held.note(&output));
    let problem = match ended {
        Ended::Exited(code) => {
            call.presentation.content = shown(&output, &format!("exit status {code}"));
            return call.done(json!({ "output": output, "exit_code": code }));
        }
        Ended::Signalled(signal) => format!("the shell was killed by signal {signal}"),
        Ended::TimedOut => format!("timed out after {} ms and was ended", timeout.as_millis()),
        Ended::Cancelled => "cancelled and ended".to_owned(),
        Ended::TooMuchMemory => "its processes used more memory than a command may have, and were ended; \
                                 do the work in smaller parts"
            .to_owned(),
        Ended::TooManyProcesses => format!("it had more than {COMMAND_PROCESSES} processes and was ended"),
        Ended::Lost => "ended from outside, how is not known".to_owned(),
    };
    let text = match output.as_str() {
        "" => format!("bash: {problem}; there was no output"),
        output => format!("bash: {problem}; output until then:\n{output}"),
    };
    call.failed_within(text, OUTPUT_BYTES + ERROR_BYTES)
}

/// For the model: where the rest is.
fn spill_note(capture: &Capture) -> String {
    match capture.spilled() {
        None => String::new(),
        Some((path, Kept::All)) => format!("\n[the whole output is in {}]", path.display()),
        Some((path, Kept::Beginning(bytes))) => {
            format!("\n[the first {bytes} bytes of the output are in {}]", path.display())
        }
    }
}

fn shown(output: &str, status: &str) -> Vec<Shown> {
    let text = match output {
        "" => status.to_owned(),
        output => {
            let output = Bounded::whole(visible_block(output), SHOWN_OUTPUT_BYTES);
            format!("{}\n\n{status}", fenced(output.text(), ""))
        }
    };
    vec![Shown::Text { text }]
}
