//! `attache sessions list`: the sessions, the latest first, for people or for programs.

use std::fmt::Write as _;

use anyhow::Result;
use attache_core::agents::Transcript;
use attache_core::export::lines::SessionLine;
use attache_core::ports::store::{ListedSessions, SessionRow, Store};
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
    let mut pages = Pages::new(store, archived, ListedSessions::Own);
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
            let family = if arguments.children { family(store, row).await? } else { vec![(0, row.clone())] };
            for (depth, row) in &family {
                if arguments.json {
                    write!(text, "{separator}  {}", as_json(row))?;
                    separator = ",\n";
                } else {
                    writeln!(text, "{}{}", indent(*depth), as_line(row, paint))?;
                }
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

/// A session and those of its subagents, each after the session it works for, with its depth.
async fn family(store: &dyn Store, root: &SessionRow) -> Result<Vec<(usize, SessionRow)>> {
    let mut shown = Vec::new();
    let mut next = vec![(0, root.clone())];
    while let Some((depth, row)) = next.pop() {
        let children = ListedSessions::ChildrenOf(row.id.clone());
        let mut pages = Pages::new(store, Archived::Include, children);
        // Pages begin with the latest session; the stack takes the last one first: the oldest is shown first.
        while let Some(rows) = pages.next().await? {
            let visible = rows.into_iter().filter(|row| {
                row.metadata.child_of().is_some_and(|child| child.transcript() == Transcript::OwnSession)
            });
            next.extend(visible.map(|row| (depth + 1, row)));
        }
        shown.push((depth, row));
    }
    Ok(shown)
}

/// Only `show --json` prints these fields.
const INTERNAL: [&str; 2] = ["metadata", "permissions"];

fn indent(depth: usize) -> String {
    match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth - 1)),
    }
}

fn as_line(row: &SessionRow, paint: Paint) -> String {
    let (when, place) = (when::minutes(row.updated_at), plain(&row.workspace_root.to_string_lossy()));
    let archived = if row.archived_at.is_some() { "  (archived)" } else { "" };
    format!(
        "{}  {}  {}  {}{archived}",
        plain(row.id.as_str()),
        paint.paint(Colour::Grey, &when),
        paint.paint(Colour::Bold, &title(row)),
        paint.paint(Colour::Grey, &place)
    )
}

/// For programs: the session as in exports, with its title and without fields that only attache uses.
fn as_json(row: &SessionRow) -> Value {
    let mut session = json!(SessionLine::of(row));
    if let Some(fields) = session.as_object_mut() {
        INTERNAL.iter().for_each(|name| drop(fields.remove(*name)));
    }
    session["title"] = json!(row.metadata.title());
    session
}
