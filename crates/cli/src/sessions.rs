//! `attache sessions`: looks at stored sessions without opening them. Reads only, and makes no file but the one asked for.

mod show;

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_core::calendar;
use attache_core::export::{ExportError, Format, export};
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::ports::store::{SessionQuery, SessionRow, Store};
use serde_json::{Value, json};

use crate::answer;
use crate::args::{ExportFormat, ListArgs, SessionsCommand};
use crate::config::Config;
use crate::paint::{Colour, Paint};
use crate::when;

use show::{Detail, Printer};

/// Sessions fetched at a time.
const PAGE_SESSIONS: usize = 200;

/// How many ids are named where a prefix fits several.
const CANDIDATES: usize = 5;

/// `store` is `None` as long as nothing was ever stored.
pub(crate) async fn run(
    store: Option<&attache_store::ReadOnlyStore>,
    config: &Config,
    command: SessionsCommand,
) -> Result<()> {
    let Some(store) = store else {
        return match command {
            SessionsCommand::List(arguments) => list_none(&arguments),
            SessionsCommand::Show { id, .. } | SessionsCommand::Export { id, .. } => bail!(unknown(&id)),
        };
    };
    match command {
        SessionsCommand::List(arguments) => list(store, &arguments).await,
        SessionsCommand::Show { id, json: true, .. } => {
            let id = find(store, &id).await?;
            write_export(store, &id, Format::Json, None).await
        }
        SessionsCommand::Show { id, full, json: false } => {
            let id = find(store, &id).await?;
            let Some(record) = store.session(&id).await? else { bail!(unknown(id.as_str())) };
            let detail = if full { Detail::Full } else { Detail::Outline };
            Printer { config, detail, paint: Paint::for_answers() }.session(store, &record).await
        }
        SessionsCommand::Export { id, format, output } => {
            let format = match format {
                ExportFormat::Jsonl => Format::Jsonl,
                ExportFormat::Json => Format::Json,
                ExportFormat::Md => Format::Markdown,
                ExportFormat::Csv => Format::Csv,
            };
            // Before the file is made: a mistyped id must not empty an older export.
            let id = find(store, &id).await?;
            write_export(store, &id, format, output.as_deref()).await
        }
    }
}

fn list_none(arguments: &ListArgs) -> Result<()> {
    if arguments.json {
        answer::write("[]\n")?;
    }
    answer::note("no sessions yet; they appear here after their first prompt");
    Ok(())
}

async fn list(store: &dyn Store, arguments: &ListArgs) -> Result<()> {
    let limit = if arguments.all { usize::MAX } else { arguments.limit };
    let mut pages = Pages::new(store);
    let (mut listed, mut more) = (0, false);
    let paint = Paint::for_answers();
    let mut separator = "[\n";
    'pages: while let Some(rows) = pages.next().await? {
        let mut text = String::new();
        for row in &rows {
            if listed == limit {
                more = true;
                answer::write_painted(&text)?;
                break 'pages;
            }
            listed += 1;
            if arguments.json {
                write!(text, "{separator}  {}", as_json(row))?;
                separator = ",\n";
            } else {
                writeln!(text, "{}", as_line(row, paint))?;
            }
        }
        answer::write_painted(&text)?;
    }
    match (listed, arguments.json) {
        (0, _) => return list_none(arguments),
        (_, true) => answer::write("\n]\n")?,
        (_, false) => {}
    }
    if more {
        answer::note(&format!("the newest {listed}; `--all` lists every session, `--limit N` the newest N"));
    }
    Ok(())
}

fn as_line(row: &SessionRow, paint: Paint) -> String {
    let (when, place) = (when::minutes(row.updated_at), plain(&row.workspace_root.to_string_lossy()));
    format!(
        "{}  {}  {}  {}",
        row.id,
        paint.paint(Colour::Grey, &when),
        paint.paint(Colour::Bold, &title(row)),
        paint.paint(Colour::Grey, &place)
    )
}

/// For programs: exact values, times as ISO 8601.
fn as_json(row: &SessionRow) -> Value {
    let totals = &row.totals;
    json!({
        "id": row.id.as_str(),
        "title": row.metadata.title(),
        "workspace": row.workspace_root,
        "agent": row.agent.to_string(),
        "model": row.model.as_ref().map(ToString::to_string),
        "createdAt": calendar::iso_8601(row.created_at),
        "updatedAt": calendar::iso_8601(row.updated_at),
        "tokens": {
            "input": totals.prompt_tokens,
            "output": totals.completion_tokens,
            "reasoning": totals.reasoning_tokens,
            "cacheRead": totals.cache_read,
            "cacheWrite": totals.cache_write,
        },
        "costUsd": totals.cost_usd,
    })
}

/// The session of this id, or the only one whose id begins like this, with or without `ses_`.
async fn find(store: &dyn Store, typed: &str) -> Result<SessionId> {
    let exact = SessionId::new(typed);
    if store.session(&exact).await?.is_some() {
        return Ok(exact);
    }
    let bare = typed.strip_prefix("ses_").unwrap_or(typed);
    let fits = |id: &SessionId| {
        let id = id.as_str();
        !bare.is_empty() && id.strip_prefix("ses_").unwrap_or(id).starts_with(bare)
    };
    let mut pages = Pages::new(store);
    let mut found: Vec<SessionId> = Vec::new();
    while found.len() <= CANDIDATES
        && let Some(rows) = pages.next().await?
    {
        found.extend(rows.into_iter().map(|row| row.id).filter(|id| fits(id)));
    }
    match found.as_slice() {
        [] => bail!(unknown(typed)),
        [only] => Ok(only.clone()),
        several => {
            let named: Vec<&str> = several.iter().take(CANDIDATES).map(SessionId::as_str).collect();
            let dots = if several.len() > CANDIDATES { ", …" } else { "" };
            bail!(
                "several sessions begin with {}: {}{dots}; type more of the id",
                plain(typed),
                named.join(", ")
            )
        }
    }
}

/// All sessions, the latest first, page by page.
struct Pages<'a> {
    store: &'a dyn Store,
    after: Option<(i64, SessionId)>,
    is_done: bool,
}

impl<'a> Pages<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self { store, after: None, is_done: false }
    }

    async fn next(&mut self) -> Result<Option<Vec<SessionRow>>> {
        if self.is_done {
            return Ok(None);
        }
        let query =
            SessionQuery { after: self.after.take(), limit: PAGE_SESSIONS, ..SessionQuery::default() };
        let rows = self.store.list_sessions(query).await?;
        self.is_done = rows.len() < PAGE_SESSIONS;
        self.after = rows.last().map(|last| (last.updated_at, last.id.clone()));
        Ok((!rows.is_empty()).then_some(rows))
    }
}

/// What a model, a client or a file said, on one line and without what a terminal would obey.
fn plain(text: &str) -> String {
    legible_line(text)
}

fn title(row: &SessionRow) -> String {
    plain(row.metadata.title().unwrap_or("(no title)"))
}

async fn write_export(
    store: &dyn Store,
    id: &SessionId,
    format: Format,
    output: Option<&Path>,
) -> Result<()> {
    let result = match output {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
            export(store, id, format, &mut BufWriter::new(file)).await
        }
        None => export(store, id, format, &mut answer::stream()).await,
    };
    match result {
        Err(ExportError::UnknownSession(id)) => bail!(unknown(id.as_str())),
        Err(ExportError::Write(error)) => Ok(answer::forgive(Err(error))?),
        other => Ok(other?),
    }
}

fn unknown(id: &str) -> String {
    format!("there is no session {}; `attache sessions list` shows the ones there are", plain(id))
}
