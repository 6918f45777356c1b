//! `attache sessions`: shows stored sessions without opening them, exports, imports, archives and deletes them.
//!
//! Commands that only look create no file. `export` creates the file the user asks for.

mod diff;
mod export;
mod import;
mod list;
mod remove;
mod search;
mod show;
mod timeline;

use anyhow::{Result, anyhow, bail};
use attache_core::export::Format;
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::nearest::nearest_id;
use attache_core::ports::store::{ListedSessions, SessionQuery, SessionRecord, SessionRow, Store};
use attache_store::{FileBlobs, ReadOnlyStore};

use crate::args::{DiffArgs, SessionsCommand, ShowArgs};
use crate::config::{STORE_OPTION, SettingOrigin};
use crate::paint::Paint;
use crate::projects::HostProjects;
use crate::setup::{self, Sources};

pub(crate) use attache_core::compared::dollars;
use show::{Detail, Printer};
use timeline::{PromptText, Timeline};

/// Sessions per page.
const PAGE_SESSIONS: usize = 200;

/// Means the first session in the list, instead of an id.
const LATEST: &str = "latest";

/// How many ids we name if several fit a prefix.
const CANDIDATES: usize = 5;

pub(crate) async fn run(sources: &Sources, command: SessionsCommand) -> Result<()> {
    let Some(store) = setup::look_into_store(&sources.config, &sources.dirs)? else {
        return nothing_stored(sources, &command).await;
    };
    match command {
        SessionsCommand::List(arguments) => list::run(&store, &arguments).await,
        SessionsCommand::Show(arguments) => show_one(sources, &store, &arguments).await,
        SessionsCommand::Diff(arguments) => {
            let first = record(&store, &arguments.first).await?;
            let second = record(&store, &arguments.second).await?;
            diff::run(&store, &first, &second).await
        }
        SessionsCommand::Search(arguments) => search::run(sources, store, &arguments).await,
        SessionsCommand::Export(arguments) => export::run(sources, &store, &arguments).await,
        SessionsCommand::Import(arguments) => {
            // The command opens a store to write.
            drop(store);
            import::run(sources, &arguments).await
        }
        SessionsCommand::Archive { id, undo } => {
            let row = found_row(store, &id).await?;
            let change = if undo { remove::Archiving::Undo } else { remove::Archiving::Do };
            remove::archive(sources, &row, change).await
        }
        SessionsCommand::Delete { id, yes } => {
            let row = found_row(store, &id).await?;
            let consent = if yes { remove::Consent::Given } else { remove::Consent::Asked };
            remove::delete(sources, &row, consent).await
        }
    }
}

async fn show_one(sources: &Sources, store: &ReadOnlyStore, arguments: &ShowArgs) -> Result<()> {
    if arguments.json {
        let id = find(store, &arguments.id).await?;
        let (blobs, style) = (FileBlobs::new(sources.dirs.blobs.clone()), Format::Json.into());
        return export::Export { store, blobs, id, style }.to_stdout().await;
    }
    let record = record(store, &arguments.id).await?;
    let detail = if arguments.full { Detail::Full } else { Detail::Outline };
    let projects = HostProjects::new(&sources.config, &sources.dirs, &sources.foreign);
    let printer = Printer { config: &sources.config, projects, detail, paint: Paint::for_answers() };
    if !arguments.timeline {
        return printer.session(store, &record).await;
    }
    let prompts = if arguments.system_prompt { PromptText::Shown } else { PromptText::Named };
    Timeline::new(printer, prompts).session(store, &record).await
}

/// The one session that an id, or its beginning, names.
async fn record(store: &ReadOnlyStore, typed: &str) -> Result<SessionRecord> {
    let id = find(store, typed).await?;
    let Some(record) = store.session(&id).await? else { bail!(unknown(id.as_str())) };
    Ok(record)
}

/// What each command says if there is no database.
async fn nothing_stored(sources: &Sources, command: &SessionsCommand) -> Result<()> {
    let store = &sources.config.store;
    // The first prompt creates the database at a default place; if the user typed a place, it is a typing
    // error.
    let makes_one = matches!(command, SessionsCommand::Import(_));
    if store.origin == SettingOrigin::Option(STORE_OPTION) && !makes_one {
        bail!("there is no database {}; check the path given with --store", store.value.display());
    }
    match command {
        SessionsCommand::List(arguments) => list::none(arguments),
        SessionsCommand::Search(arguments) => search::nothing(arguments),
        SessionsCommand::Show(ShowArgs { id, .. })
        | SessionsCommand::Diff(DiffArgs { first: id, .. })
        | SessionsCommand::Archive { id, .. }
        | SessionsCommand::Delete { id, .. } => bail!(unknown(id)),
        SessionsCommand::Export(arguments) => bail!(unknown(&arguments.id)),
        SessionsCommand::Import(arguments) => import::run(sources, arguments).await,
    }
}

/// The row of the session with this id. Closes the reading store, because the caller opens one to write.
async fn found_row(store: ReadOnlyStore, typed: &str) -> Result<SessionRow> {
    let id = find(&store, typed).await?;
    match store.session(&id).await? {
        Some(record) => Ok(record.row),
        None => bail!(unknown(id.as_str())),
    }
}

/// The latest session, that of this id, or the only one whose id begins like this, with or without `ses_`.
async fn find(store: &dyn Store, typed: &str) -> Result<SessionId> {
    if typed.is_empty() {
        bail!("the session id is empty; `attache sessions list` shows the ids");
    }
    if typed == LATEST {
        let latest = Pages::new(store, Archived::LeaveOut, ListedSessions::Own).next().await?;
        let latest = latest.and_then(|rows| rows.into_iter().next());
        return Ok(latest.ok_or_else(|| anyhow!("there is no session yet; `attache chat` begins one"))?.id);
    }
    let exact = SessionId::new(typed);
    if store.session(&exact).await?.is_some() {
        return Ok(exact);
    }
    let bare = typed.strip_prefix("ses_").unwrap_or(typed);
    let fits = |id: &SessionId| {
        let id = id.as_str();
        id.starts_with(typed) || id.strip_prefix("ses_").unwrap_or(id).starts_with(bare)
    };
    let mut pages = Pages::new(store, Archived::Include, ListedSessions::WithChildren);
    let (mut found, mut near): (Vec<SessionId>, Option<SessionId>) = (Vec::new(), None);
    while found.len() <= CANDIDATES
        && let Some(rows) = pages.next().await?
    {
        let ids: Vec<SessionId> = rows.into_iter().map(|row| row.id).collect();
        near = nearest_id(typed, near.iter().chain(&ids)).cloned();
        found.extend(ids.into_iter().filter(|id| fits(id)));
    }
    match found.as_slice() {
        [] => bail!(not_found(typed, near.as_ref())),
        [only] => Ok(only.clone()),
        several => {
            let named: Vec<String> = several.iter().take(CANDIDATES).map(|id| plain(id.as_str())).collect();
            let dots = if several.len() > CANDIDATES { ", …" } else { "" };
            bail!(
                "several sessions begin with {}: {}{dots}; type more of the id",
                plain(typed),
                named.join(", ")
            )
        }
    }
}

/// Whether to include archived sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Archived {
    Include,
    LeaveOut,
}

/// All sessions, the latest first, page by page.
struct Pages<'a> {
    store: &'a dyn Store,
    archived: Archived,
    listed: ListedSessions,
    after: Option<(i64, SessionId)>,
    is_done: bool,
}

impl<'a> Pages<'a> {
    fn new(store: &'a dyn Store, archived: Archived, listed: ListedSessions) -> Self {
        Self { store, archived, listed, after: None, is_done: false }
    }

    async fn next(&mut self) -> Result<Option<Vec<SessionRow>>> {
        if self.is_done {
            return Ok(None);
        }
        let query = SessionQuery {
            after: self.after.take(),
            limit: PAGE_SESSIONS,
            include_archived: self.archived == Archived::Include,
            listed: self.listed.clone(),
            ..SessionQuery::default()
        };
        let rows = self.store.list_sessions(query).await?;
        self.is_done = rows.len() < PAGE_SESSIONS;
        self.after = rows.last().map(|last| (last.updated_at, last.id.clone()));
        Ok((!rows.is_empty()).then_some(rows))
    }
}

/// Text of a model, a client or a file, on one line and without what a terminal would obey.
fn plain(text: &str) -> String {
    legible_line(text)
}

fn title(row: &SessionRow) -> String {
    plain(row.metadata.title().unwrap_or("(no title)"))
}

fn unknown(id: &str) -> String {
    not_found(id, None)
}

fn not_found(id: &str, near: Option<&SessionId>) -> String {
    let meant = near.map(|near| format!(" (did you mean {}?)", plain(near.as_str()))).unwrap_or_default();
    let id = plain(id);
    format!("no session has an id that begins with {id}{meant}; `attache sessions list` shows the ids")
}
