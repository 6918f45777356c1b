//! `attache sessions list`: the sessions, the latest first, for people or for programs.

use std::fmt::Write as _;

use anyhow::Result;
use attache_core::calendar;
use attache_core::ports::store::{SessionRow, Store};
use serde_json::{Value, json};

use super::{Archived, Pages, plain, title};
use crate::answer;
use crate::args::ListArgs;
use crate::paint::{Colour, Paint};
use crate::when;

/// No session is stored.
pub(super) fn none(arguments: &ListArgs) -> Result<()> {
    if arguments.json {
        answer::write("[]\n")?;
    }
    answer::note("no sessions yet; they appear here after their first prompt");
    Ok(())
}

pub(super) async fn run(store: &dyn Store, arguments: &ListArgs) -> Result<()> {
    let limit = if arguments.all { usize::MAX } else { arguments.limit };
    let archived = if arguments.archived { Archived::Include } else { Archived::LeaveOut };
    let mut pages = Pages::new(store, archived);
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
        (0, _) => return none(arguments),
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
    let archived = if row.archived_at.is_some() { "  (archived)" } else { "" };
    format!(
        "{}  {}  {}  {}{archived}",
        row.id,
        paint.paint(Colour::Grey, &when),
        paint.paint(Colour::Bold, &title(row)),
        paint.paint(Colour::Grey, &place)
    )
}

/// For programs: exact values, times as ISO 8601, null for what is not known.
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
        "archivedAt": row.archived_at.map(calendar::iso_8601),
        "tokens": {
            "input": totals.prompt_tokens,
            "output": totals.completion_tokens,
            "reasoning": totals.reasoning_tokens,
            "cacheRead": totals.cache_read,
            "cacheWrite": totals.cache_write,
        },
        "costUsd": totals.known_cost_usd(),
    })
}
