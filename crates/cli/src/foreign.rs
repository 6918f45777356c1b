//! `attache import`: finds the sessions that other agents keep on this machine, lists them, and imports them as
//! sessions of ours. Changes nothing of theirs.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use attache_core::import::{Authority, ImportError, Imported, SessionArchive, import};
use attache_core::legible::{legible_line, legible_path};
use attache_core::ports::store::Store;
use attache_store::{FileBlobs, SqliteStore};
use serde_json::json;

use crate::answer;
use crate::args::{ForeignArgs, ForeignName};
use crate::setup::{self, Sources};
use crate::unfinished_imports::{self, ImportMarker};
use crate::when;

mod archive;
mod claude;
mod codex;
mod database;
mod files;
mod gemini;
mod goose;
mod opencode;
mod shown;
mod talk;
mod user_files;

use archive::session_id;
use talk::{Talk, TalkError};

/// A session of another agent, as far as we know it from its first part.
#[derive(Clone, Debug)]
struct ForeignSession {
    agent: ForeignName,
    /// The agent's own id for it.
    id: String,
    title: Option<String>,
    /// Where it worked; some agents do not say.
    directory: Option<PathBuf>,
    updated_at: i64,
    place: ForeignPlace,
}

/// Where the agent keeps it.
#[derive(Clone, Debug)]
enum ForeignPlace {
    File(PathBuf),
    /// In a database with others.
    Database(PathBuf),
}

/// The sessions of one agent, and what we could not read.
#[derive(Debug, Default)]
struct ForeignFindings {
    sessions: Vec<ForeignSession>,
    broken: Vec<(PathBuf, String)>,
}

impl ForeignFindings {
    fn add(&mut self, path: &Path, found: Result<Option<ForeignSession>, TalkError>) {
        match found {
            Ok(session) => self.sessions.extend(session),
            Err(error) => self.broken.push((path.to_owned(), error.to_string())),
        }
    }
}

impl ForeignName {
    const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Goose, Self::Opencode, Self::Gemini];

    fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
        }
    }

    /// Where the agent keeps its sessions, for this user.
    fn places(self, home: &Path) -> Vec<PathBuf> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        match self {
            Self::Claude => {
                vec![variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")).join("projects")]
            }
            Self::Codex => {
                let codex = variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
                vec![codex.join("sessions"), codex.join("archived_sessions")]
            }
            Self::Goose => vec![data.join("goose/sessions")],
            Self::Opencode => vec![data.join("opencode")],
            Self::Gemini => vec![home.join(".gemini/tmp")],
        }
    }

    fn find(self, place: &Path) -> ForeignFindings {
        match self {
            Self::Claude => claude::find(place),
            Self::Codex => codex::find(place),
            Self::Goose => goose::find(place),
            Self::Opencode => opencode::find(place),
            Self::Gemini => gemini::find(place),
        }
    }
}

impl ForeignSession {
    fn read(&self) -> Result<Talk, TalkError> {
        match self.agent {
            ForeignName::Claude => claude::read(self),
            ForeignName::Codex => codex::read(self),
            ForeignName::Goose => goose::read(self),
            ForeignName::Opencode => opencode::read(self),
            ForeignName::Gemini => gemini::read(self),
        }
    }

    fn path(&self) -> &Path {
        match &self.place {
            ForeignPlace::File(path) | ForeignPlace::Database(path) => path,
        }
    }
}

pub(crate) async fn run(sources: &Sources, args: &ForeignArgs) -> Result<ExitCode> {
    if args.files {
        return user_files::run(sources, args);
    }
    let found = search(sources, args)?;
    for (path, reason) in &found.broken {
        answer::note(&format!("left out: {}: {}", legible_path(path), legible_line(reason)));
    }
    if args.json {
        answer::write(&format!("{:#}\n", listed_as_json(&found.sessions)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.sessions.is_empty() {
        answer::note("no session of another agent was found");
        return Ok(if found.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let chosen = match (args.all, args.sessions.is_empty()) {
        (true, _) => found.sessions.clone(),
        (false, false) => named(&args.sessions, &found.sessions)?,
        (false, true) => {
            answer::write(&listed(&found.sessions))?;
            if !answer::is_typed() || !answer::is_seen() {
                answer::note(&format!(
                    "take them over with: attache import {} NUMBER…, or --all",
                    word_of(args)
                ));
                return Ok(ExitCode::SUCCESS);
            }
            match asked(&found.sessions)? {
                chosen if chosen.is_empty() => return Ok(ExitCode::SUCCESS),
                chosen => chosen,
            }
        }
    };
    take_over(sources, &chosen).await
}

fn word_of(args: &ForeignArgs) -> &'static str {
    args.agent.map_or("AGENT", ForeignName::word)
}

fn search(sources: &Sources, args: &ForeignArgs) -> Result<ForeignFindings> {
    let home = sources.dirs.home.as_deref().context("your home directory is not known: set HOME")?;
    let agents: Vec<ForeignName> = args.agent.map_or_else(|| ForeignName::ALL.to_vec(), |agent| vec![agent]);
    let mut found = ForeignFindings::default();
    for agent in agents {
        let places = match &args.from {
            Some(place) if !place.exists() => bail!("--from: there is nothing at {}", legible_path(place)),
            Some(place) => vec![place.clone()],
            None => agent.places(home),
        };
        for place in places.iter().filter(|place| place.exists()) {
            let ForeignFindings { sessions, broken } = agent.find(place);
            found.sessions.extend(sessions);
            found.broken.extend(broken);
        }
    }
    if let Some(wanted) = &args.workspace {
        let wanted =
            wanted.canonicalize().with_context(|| format!("--workspace {}", legible_path(wanted)))?;
        let is_there = |session: &ForeignSession| {
            session.directory.as_ref().is_some_and(|directory| {
                *directory == wanted || directory.canonicalize().is_ok_and(|real| real == wanted)
            })
        };
        found.sessions.retain(is_there);
    }
    found.sessions.sort_by(|one, other| (other.updated_at, &one.id).cmp(&(one.updated_at, &other.id)));
    Ok(found)
}

fn listed(sessions: &[ForeignSession]) -> String {
    let mut text = String::new();
    for (index, session) in sessions.iter().enumerate() {
        let place = session.directory.as_deref().map(legible_path).unwrap_or_default();
        let title = session.title.as_deref().map(legible_line).unwrap_or_else(|| "(no title)".to_owned());
        text.push_str(&format!(
            "{:4}  {:<8}  {}  {title}\n{:16}{place}\n",
            index + 1,
            session.agent.word(),
            when::minutes(session.updated_at),
            "",
        ));
    }
    text
}

fn listed_as_json(sessions: &[ForeignSession]) -> serde_json::Value {
    let one = |session: &ForeignSession| {
        json!({
            "agent": session.agent.word(), "id": session.id, "title": session.title,
            "workspace_root": session.directory, "updated_at": session.updated_at, "path": session.path(),
        })
    };
    sessions.iter().map(one).collect()
}

/// Finds sessions by number, or by the first letters of the id.
fn named(words: &[String], sessions: &[ForeignSession]) -> Result<Vec<ForeignSession>> {
    let mut chosen: Vec<ForeignSession> = Vec::new();
    for word in words {
        let by_number = word.parse::<usize>().ok().and_then(|number| sessions.get(number.checked_sub(1)?));
        let mut by_id = sessions.iter().filter(|session| session.id.starts_with(word.as_str()));
        let session = match (by_number, by_id.next(), by_id.next()) {
            (Some(session), ..) | (None, Some(session), None) => session,
            (None, Some(_), Some(_)) => bail!("several sessions begin with {}", legible_line(word)),
            (None, None, _) => {
                bail!("there is no session {}: run `attache import` to list them", legible_line(word))
            }
        };
        if chosen.iter().all(|known| known.id != session.id) {
            chosen.push(session.clone());
        }
    }
    Ok(chosen)
}

fn asked(sessions: &[ForeignSession]) -> Result<Vec<ForeignSession>> {
    loop {
        write!(std::io::stderr(), "Which ones? Numbers, `all`, or Enter for none: ")?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        let words: Vec<String> =
            line.split([' ', ',', '\n']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match words.as_slice() {
            [] => return Ok(Vec::new()),
            [all] if all == "all" => return Ok(sessions.to_vec()),
            words => match named(words, sessions) {
                Ok(chosen) => return Ok(chosen),
                Err(error) => answer::note(&format!("{error:#}")),
            },
        }
    }
}

/// What else moves in, and how.
const ELSE: &str = "Go on with one: attache chat --resume ID. MCP servers: attache mcp import. Commands, agents and skills: attache \
     import --files. What is in .claude/ of a project and AGENTS.md count as they are; see docs/knowledge.md.";

/// Imports the sessions; a broken one does not stop the others.
async fn take_over(sources: &Sources, sessions: &[ForeignSession]) -> Result<ExitCode> {
    sources.dirs.create()?;
    let (store, _) = setup::open_store(sources)?;
    let (mut taken, mut failed) = (0, 0);
    for session in sessions {
        match take(sources, &store, session).await {
            Ok(told) => {
                taken += 1;
                answer::write(&told)?;
            }
            Err(error) => {
                failed += 1;
                answer::note(&format!(
                    "left out: {} {}: {error:#}",
                    session.agent.word(),
                    legible_line(session.title.as_deref().unwrap_or(&session.id))
                ));
            }
        }
    }
    store.shutdown();
    if taken > 0 {
        answer::note(ELSE);
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn take(sources: &Sources, store: &SqliteStore, session: &ForeignSession) -> Result<String> {
    let id = session_id(session);
    if store.session(&id).await?.is_some() {
        return Ok(format!(
            "{id} is here already ({})\n",
            legible_line(session.title.as_deref().unwrap_or(&session.id))
        ));
    }
    let talk = session.read()?;
    let directory = workspace(sources, talk.directory.as_deref().or(session.directory.as_deref()))?;
    let lines = archive::lines(session, &talk, &directory);
    let read = SessionArchive::read(&mut lines.as_bytes()).context("the session can't be converted")?;
    let blobs = FileBlobs::new(sources.dirs.blobs.clone());
    let database = &sources.config.store.value;
    let marker = ImportMarker::set(&sources.dirs, database, &id)?;
    let imported = import(read, Authority::LeaveOut, store, &blobs).await;
    match &imported {
        Ok(_) => marker.remove()?,
        Err(_) => {
            drop(marker);
            unfinished_imports::clean_up(&sources.dirs, database, store, &blobs).await?;
        }
    }
    let Imported { messages, .. } = match imported {
        Ok(imported) => imported,
        Err(ImportError::SessionExists(id)) => return Ok(format!("{id} is here already\n")),
        Err(error) => return Err(error.into()),
    };
    let left_out = talk.left_out_in_words().map(|words| format!("\n  left out: {words}")).unwrap_or_default();
    let title = legible_line(session.title.as_deref().unwrap_or("(no title)"));
    Ok(format!("imported {id} ({title}), {messages} messages, in {}{left_out}\n", legible_path(&directory)))
}

/// The directory the session gets here: the one it had, unless that is missing or far too broad.
fn workspace(sources: &Sources, named: Option<&Path>) -> Result<PathBuf> {
    let here = std::env::current_dir().context("the current directory can't be found")?;
    let holds_home = |path: &Path| sources.dirs.home.as_ref().is_some_and(|home| home.starts_with(path));
    match named {
        Some(path) if path.is_absolute() && !holds_home(path) => Ok(path.to_owned()),
        Some(_) | None => {
            answer::note(&format!(
                "its directory is not known, or holds your home: it works in {} now",
                legible_path(&here)
            ));
            Ok(here)
        }
    }
}
