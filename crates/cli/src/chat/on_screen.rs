//! `attache chat` without `-p`: sets up the screen, and turns its end into an exit code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use attache_acp_client::{AgentDoor, CommandDoor, Introduction, SessionStart};
use attache_chat::screen::{
    ChatFailure, ChatStart, ComposerKeys, FirstChoices, FirstSession, ScreenStyle, ScreenTheme,
    TerminalFailure, run as run_screen,
};
use attache_core::hub::People;
use sha2::{Digest, Sha256};

use super::own_door::OwnDoor;
use super::{LATEST, VERSION};
use crate::answer;
use crate::args::ChatArgs;
use crate::config::ChatKeys;
use crate::connect::ServerDoor;
use crate::setup::Sources;

pub(super) async fn run(sources: &Sources, args: &ChatArgs) -> Result<ExitCode> {
    if !answer::is_typed() || !answer::is_seen() {
        answer::note(&format!("attache: {}", TerminalFailure::None));
        return Ok(ExitCode::from(2));
    }
    let directory = std::env::current_dir().context("can't find the current directory")?;
    let trace = args.trace.as_deref().map(crate::acp::open_trace).transpose()?;
    let introduction = Introduction::of_a_person(VERSION).with_trace(trace.clone());
    let begin = |door| start(door, introduction, directory.clone(), sources, args);
    let code = match (&args.agent_command, &args.connect) {
        (None, Some(address)) => {
            let door = ServerDoor::new(sources, address)?;
            let code = talk(begin(&door)).await;
            door.close().await;
            code
        }
        (Some(line), _) => match CommandDoor::new(line, directory.clone()) {
            Ok(door) => talk(begin(&door)).await,
            Err(wrong) => {
                answer::note(&format!("attache: --agent-command: {wrong}"));
                return Ok(ExitCode::from(2));
            }
        },
        (None, None) => {
            let door = OwnDoor::new(sources, args.trace.as_deref(), People::Present);
            let code = talk(begin(&door)).await;
            door.close().await;
            code
        }
    };
    if let Some(trace) = trace {
        trace.flush().await;
    }
    Ok(code)
}

fn start<'d>(
    door: &'d dyn AgentDoor,
    introduction: Introduction,
    directory: PathBuf,
    sources: &Sources,
    args: &ChatArgs,
) -> ChatStart<'d> {
    ChatStart {
        door,
        introduction,
        session: match (&args.resume, args.latest) {
            (Some(id), _) if id.is_empty() => FirstSession::Asked,
            (Some(id), _) if id == LATEST => FirstSession::Latest,
            (Some(id), _) => FirstSession::ById(id.clone()),
            (None, true) => FirstSession::Latest,
            (None, false) => FirstSession::New,
        },
        prompt: args.prompt.clone(),
        choices: FirstChoices {
            model: args.model.clone(),
            mode: args.agent.clone(),
            approval: args.approval.clone(),
        },
        history: Some(history_file(&sources.dirs.chat_history, &directory)),
        theme: ScreenTheme::from_environment(|name| std::env::var(name).ok()),
        style: style(sources, args),
        keys: match sources.config.chat_keys.value {
            ChatKeys::Emacs => ComposerKeys::Emacs,
            ChatKeys::Vi => ComposerKeys::Vi,
        },
        directories: SessionStart::new(directory),
    }
}

/// A terminal that cannot move its cursor gets plain lines, too.
fn style(sources: &Sources, args: &ChatArgs) -> ScreenStyle {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    match args.plain || sources.config.chat_plain.value || is_dumb {
        true => ScreenStyle::Lines,
        false => ScreenStyle::Drawn,
    }
}

/// One file per workspace; its name does not reveal the workspace's path.
fn history_file(folder: &Path, directory: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    let name: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}.jsonl"))
}

async fn talk(start: ChatStart<'_>) -> ExitCode {
    match run_screen(start).await {
        Ok(end) => {
            if let Some(session) = end.session {
                answer::note(&format!("Go on with: attache chat --resume {session}"));
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            answer::note(&format!("attache: {failure}"));
            match failure {
                ChatFailure::Terminal(TerminalFailure::None) => ExitCode::from(2),
                ChatFailure::Terminal(TerminalFailure::Io(_))
                | ChatFailure::Agent(_)
                | ChatFailure::Io(_) => ExitCode::FAILURE,
            }
        }
    }
}
