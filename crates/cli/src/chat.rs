//! `attache chat`: reads the parts of a prompt, opens the door to the agent, and runs one prompt or the screen.
//! The crate `chat` does the rest.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use attache_acp_client::{AgentDoor, CommandDoor, Introduction, SessionStart};
use attache_chat::one_shot::{
    AnswerSchema, AttachedContent, AttachedFile, CostLimit, Material, OneShot, RunChoices, RunConsole,
    RunOutput, RunReport, SessionChoice, run as run_once,
};
use attache_core::hub::People;
use attache_core::json_schema::Schema;
use attache_core::legible::{legible_line, legible_path};
use attache_core::ports::Model;
use attache_core::ports::store::ModelRef;
use attache_core::prompt::sniff::media_type;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::args::{ChatArgs, ChatOutput};
use crate::connect::ServerDoor;
use crate::limits::{ATTACHED_BYTES, SCHEMA_BYTES};
use crate::setup::Sources;
use crate::usage_error::{INTERRUPTED, OrWrongUsage, WrongUsage};

mod on_screen;
mod own_door;

use own_door::OwnDoor;

/// What `--resume` takes for the session that `--continue` goes on with.
const LATEST: &str = "latest";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// After this time, a run with both a prompt and a pipe says that it waits for the pipe.
const QUIET_PIPE: Duration = Duration::from_secs(3);

/// An interrupted run ends within this time, even if something hangs.
const INTERRUPT_TIME: Duration = Duration::from_millis(2_800);

pub(crate) async fn run(sources: &Sources, args: &ChatArgs) -> Result<ExitCode> {
    if !args.print {
        return on_screen::run(sources, args).await;
    }
    let interrupted = watch_interrupts()?;
    let material = tokio::select! {
        biased;
        () = interrupted.cancelled() => return Ok(ExitCode::from(INTERRUPTED)),
        material = material(args) => material?,
    };
    if material.is_empty() {
        answer::note("attache: there is nothing to ask: give a prompt, or pipe one in");
        return Ok(ExitCode::from(2));
    }
    let task = one_shot(sources, args, material)?;
    let introduction = Introduction::unattended(VERSION);
    let trace = args.trace.as_deref().map(crate::acp::open_trace).transpose()?;
    let mut console = ProcessConsole { answer: Box::new(answer::stream()), audience: audience() };
    let report = match (&args.agent_command, &args.connect) {
        (None, Some(address)) => {
            let door = ServerDoor::new(sources, address)?;
            let introduction = introduction.with_trace(trace.clone());
            let report = talk(&door, introduction, task, &mut console, interrupted).await;
            door.close().await;
            report
        }
        (Some(line), _) => {
            let directory = task.directories.directory.clone();
            match CommandDoor::new(line, directory) {
                Ok(door) => {
                    talk(&door, introduction.with_trace(trace.clone()), task, &mut console, interrupted).await
                }
                Err(wrong) => {
                    answer::note(&format!("attache: --agent-command: {wrong}"));
                    return Ok(ExitCode::from(2));
                }
            }
        }
        (None, None) => {
            let door = OwnDoor::new(sources, args.trace.as_deref(), People::OnlyAProgram);
            let introduction = introduction.with_trace(trace.clone());
            let report = talk(&door, introduction, task, &mut console, interrupted).await;
            door.close().await;
            report
        }
    };
    if let Some(trace) = trace {
        trace.flush().await;
    }
    if let Some(error) = &report.error {
        answer::note(&format!("attache: {}", legible_line(error)));
    }
    Ok(ExitCode::from(report.end.exit_code()))
}

async fn talk(
    door: &dyn AgentDoor,
    introduction: Introduction,
    task: OneShot,
    console: &mut ProcessConsole,
    interrupted: CancellationToken,
) -> RunReport {
    run_once(door, introduction, task, console, interrupted).await
}

/// The first signal ends the turn. A second one ends the process, and so does a run that hangs.
fn watch_interrupts() -> Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let interrupted = CancellationToken::new();
    let first = interrupted.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        first.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = tokio::time::sleep(INTERRUPT_TIME) => {}
        }
        // A reader that no longer takes the answer may block everything else.
        std::process::exit(i32::from(INTERRUPTED));
    });
    Ok(interrupted)
}

fn one_shot(sources: &Sources, args: &ChatArgs, material: Material) -> Result<OneShot> {
    let directory = std::env::current_dir().context("can't find the current directory")?;
    let session = match (&args.resume, args.latest) {
        (Some(id), _) if id.is_empty() => {
            return Err(
                WrongUsage("--resume without an id lets you choose, which -p can't".to_owned()).into()
            );
        }
        (Some(id), _) if id == LATEST => SessionChoice::Latest,
        (Some(id), _) => SessionChoice::ById(id.clone(), args.cwd.as_ref().map(|_| directory.clone())),
        (None, true) => SessionChoice::Latest,
        (None, false) => SessionChoice::New,
    };
    Ok(OneShot {
        material,
        session,
        directories: SessionStart::new(directory),
        output: match args.output {
            ChatOutput::Text => RunOutput::Text,
            ChatOutput::Json => RunOutput::Json,
            ChatOutput::Jsonl => RunOutput::JsonLines,
        },
        schema: args.schema.as_deref().map(schema).transpose().or_wrong_usage()?,
        max_cost: args.max_cost.map(|dollars| cost_limit(sources, args, dollars)).transpose()?,
        choices: RunChoices {
            model: args.model.clone(),
            mode: args.agent.clone(),
            approval: args.approval.clone(),
        },
    })
}

/// We do not know the prices of another agent's models.
fn cost_limit(sources: &Sources, args: &ChatArgs, dollars: f64) -> Result<CostLimit> {
    if args.agent_command.is_some() {
        return Ok(CostLimit { dollars, has_price: None });
    }
    let live = sources.live()?;
    let has_price = move |model: &str| {
        let named = model.split_once('/').map(|(provider, name)| ModelRef::new(provider, name));
        named.and_then(|model| live.describe(&model)).is_some_and(|info| info.price.is_some())
    };
    Ok(CostLimit { dollars, has_price: Some(Arc::new(has_price)) })
}

/// The words, the piped input, and the attached files.
async fn material(args: &ChatArgs) -> Result<Material> {
    let mut attachments = Vec::new();
    for path in &args.attach {
        attachments.push(attachment(path).or_wrong_usage()?);
    }
    let piped = match answer::is_typed() {
        true => None,
        false => piped(args.prompt.as_deref()).await?,
    };
    Ok(Material { words: args.prompt.clone(), piped, attachments })
}

/// All of standard input. If a pipe beside a prompt stays open and silent, waits for it and says so: ignoring
/// late input would be worse.
async fn piped(prompt: Option<&str>) -> Result<Option<AttachedContent>> {
    let mut reading = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(ATTACHED_BYTES + 1).read_to_end(&mut bytes);
        read.map(|_| bytes)
    });
    let read = match prompt {
        Some(_) => match tokio::time::timeout(QUIET_PIPE, &mut reading).await {
            Ok(read) => read,
            Err(_) => {
                answer::note(
                    "attache: waiting for the end of standard input (`< /dev/null` if there is none)",
                );
                reading.await
            }
        },
        None => reading.await,
    };
    let bytes = read?.context("can't read standard input")?;
    if bytes.is_empty() {
        return Ok(None);
    }
    content(bytes, "standard input").map(Some)
}

fn attachment(path: &Path) -> Result<AttachedFile> {
    let shown = legible_path(path);
    let path = std::path::absolute(path).with_context(|| format!("--attach {shown}"))?;
    let read = || -> std::io::Result<Option<Vec<u8>>> {
        if std::fs::metadata(&path)?.is_dir() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        std::fs::File::open(&path)?.take(ATTACHED_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    let content = match read().with_context(|| format!("can't read --attach {shown}"))? {
        Some(bytes) => content(bytes, &shown)?,
        None => AttachedContent::Place,
    };
    Ok(AttachedFile { path, content })
}

/// Decides by the content, not by the name.
fn content(bytes: Vec<u8>, name: &str) -> Result<AttachedContent> {
    if bytes.len() as u64 > ATTACHED_BYTES {
        bail!(
            "{name} is larger than {} MiB, the most that a prompt can hold",
            ATTACHED_BYTES / (1024 * 1024)
        );
    }
    if let Some(found) = media_type(&bytes) {
        return Ok(AttachedContent::Bytes(bytes, found));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => AttachedContent::Text(text),
        Err(error) => AttachedContent::Bytes(error.into_bytes(), "application/octet-stream"),
    })
}

fn schema(path: &Path) -> Result<AnswerSchema> {
    let shown = legible_path(path);
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("can't read --schema {shown}"))?;
    file.take(SCHEMA_BYTES)
        .read_to_string(&mut text)
        .with_context(|| format!("can't read --schema {shown}"))?;
    let schema: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("--schema {shown} is not JSON"))?;
    if let Err(reason) = Schema::read(&schema) {
        bail!("--schema {shown}: {reason}");
    }
    let check = move |value: &serde_json::Value| match Schema::read(&schema) {
        Ok(schema) => schema.check(value),
        Err(reason) => Err(vec![reason]),
    };
    Ok(AnswerSchema { text, check: Arc::new(check) })
}

fn audience() -> Audience {
    match std::io::stderr().is_terminal() {
        true => Audience::Person,
        false => Audience::Nobody,
    }
}

/// Who reads stderr: a person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Person,
    Nobody,
}

/// stdout and stderr of this process.
struct ProcessConsole {
    answer: Box<dyn Write + Send>,
    audience: Audience,
}

impl RunConsole for ProcessConsole {
    fn answer(&mut self) -> &mut (dyn Write + Send) {
        &mut *self.answer
    }

    fn progress(&mut self, line: &str) {
        match self.audience {
            Audience::Person => answer::note(&format!("· {}", legible_line(line))),
            Audience::Nobody => {}
        }
    }

    fn remark(&mut self, line: &str) {
        answer::note(&format!("attache: {}", legible_line(line)));
    }
}
