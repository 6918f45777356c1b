//! `attache sessions`: looks at stored sessions without opening them. Reads only.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_core::agents::Agents;
use attache_core::export::{ExportError, Format, export};
use attache_core::ids::SessionId;
use attache_core::journal::replay::parts_of;
use attache_core::legible::legible_line;
use attache_core::notice;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::store::{
    MessageRow, Owner, RowRange, SessionQuery, SessionRecord, SessionRow, Store,
};
use attache_core::ports::tool::Presentation;
use attache_core::watchdog::{Firmness, Reason, Rule, Rules, Verdict};
use serde_json::Value;

use crate::answer;
use crate::args::{ExportFormat, SessionsCommand};
use crate::config::Config;
use crate::when;

/// Sessions fetched at a time, and bytes of parts: a screenful and more, never everything.
const PAGE_SESSIONS: usize = 200;
const PAGE_BYTES: usize = 256 * 1024;

pub(crate) async fn run(store: &dyn Store, config: &Config, command: SessionsCommand) -> Result<()> {
    match command {
        SessionsCommand::List => list(store).await,
        SessionsCommand::Show { id } => show(store, config, &SessionId::new(id)).await,
        SessionsCommand::Export { id, format, output } => {
            let format = match format {
                ExportFormat::Jsonl => Format::Jsonl,
                ExportFormat::Json => Format::Json,
                ExportFormat::Md => Format::Markdown,
                ExportFormat::Csv => Format::Csv,
            };
            write_export(store, &SessionId::new(id), format, output.as_deref()).await
        }
    }
}

async fn list(store: &dyn Store) -> Result<()> {
    let mut after = None;
    let mut listed = 0;
    loop {
        let query = SessionQuery { after, limit: PAGE_SESSIONS, ..SessionQuery::default() };
        let rows = store.list_sessions(query).await?;
        let Some(last) = rows.last() else { break };
        after = Some((last.updated_at, last.id.clone()));
        listed += rows.len();
        let mut text = String::new();
        for row in &rows {
            writeln!(
                text,
                "{}  {}  {}  {}",
                row.id,
                when::minutes(row.updated_at),
                title(row),
                plain(&row.workspace_root.to_string_lossy())
            )?;
        }
        answer::write(&text)?;
        if rows.len() < PAGE_SESSIONS {
            break;
        }
    }
    if listed == 0 {
        eprintln!("no sessions yet; they appear here after their first prompt");
    }
    Ok(())
}

async fn show(store: &dyn Store, config: &Config, id: &SessionId) -> Result<()> {
    let Some(record) = store.session(id).await? else { bail!(unknown(id)) };
    answer::write(&head(&record)?)?;
    answer::write(&rules_in_force(&record.row, config)?)?;
    let mut after = None;
    let mut shown: Option<MessageRow> = None;
    loop {
        let page = store.read_rows(id, RowRange { after, before_seq: None, max_bytes: PAGE_BYTES }).await?;
        let mut text = String::new();
        for (message, rows) in page.messages {
            if shown.as_ref().is_none_or(|before| before.id != message.id) {
                writeln!(text, "\n{}", message_line(&message))?;
            }
            for part in parts_of(&rows)? {
                part_lines(&mut text, &part)?;
            }
            shown = Some(message);
        }
        answer::write(&text)?;
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => return Ok(()),
        }
    }
}

fn head(record: &SessionRecord) -> Result<String> {
    let row = &record.row;
    let mut text = String::new();
    writeln!(text, "session    {}", row.id)?;
    writeln!(text, "title      {}", title(row))?;
    writeln!(text, "workspace  {}", plain(&row.workspace_root.to_string_lossy()))?;
    writeln!(text, "agent      {}", plain(&row.agent.to_string()))?;
    if let Some(model) = &row.model {
        writeln!(text, "model      {}", plain(&model.to_string()))?;
    }
    writeln!(text, "made       {}", when::minutes(row.created_at))?;
    writeln!(text, "changed    {}", when::minutes(row.updated_at))?;
    let state = match (&record.live_run, record.owner) {
        (None, _) => "idle",
        (Some(_), Owner::Other | Owner::Us) => "running",
        (Some(_), Owner::Nobody | Owner::Dead) => "interrupted; the next load settles it",
    };
    writeln!(text, "state      {state}, {} waiting", record.queued.len())?;
    let totals = &row.totals;
    writeln!(
        text,
        "tokens     {} input, {} output, {} reasoning, {} cache read, {} cache write",
        totals.prompt_tokens,
        totals.completion_tokens,
        totals.reasoning_tokens,
        totals.cache_read,
        totals.cache_write
    )?;
    if totals.cost_usd > 0.0 {
        writeln!(text, "cost       {}", dollars(totals.cost_usd))?;
    }
    Ok(text)
}

/// Two digits that tell something, also of what costs less than a cent.
fn dollars(amount: f64) -> String {
    match amount {
        amount if amount >= 1.0 => format!("${amount:.2}"),
        amount if amount >= 0.01 => format!("${amount:.3}"),
        amount => format!("${amount:.6}"),
    }
}

/// Of all scopes. Which of them decided about a call stands with the call.
fn rules_in_force(row: &SessionRow, config: &Config) -> Result<String> {
    let mut text = String::new();
    let mut line = |rule: &Rule, scope: &str| {
        writeln!(text, "rule       {} {} ({scope})", rule.action.as_str(), plain(&rule.to_string()))
    };
    for own in Agents::builtin().get(&row.agent).into_iter().flat_map(|agent| &agent.permissions) {
        let scope = match own.firmness {
            Firmness::Plain => "agent",
            Firmness::Pinned => "agent, pinned",
        };
        line(&own.rule, scope)?;
    }
    for configured in &config.rules {
        line(&configured.value.rule, "configuration")?;
    }
    for rule in Rules::from_json(&row.permissions).iter() {
        line(rule, "session")?;
    }
    for directory in row.metadata.get("granted_directories").and_then(Value::as_array).into_iter().flatten() {
        writeln!(text, "granted    {} (session)", plain(directory.as_str().unwrap_or_default()))?;
    }
    Ok(text)
}

fn message_line(message: &MessageRow) -> String {
    let mut line = format!("{}  {}", message.role.as_str(), when::minutes(message.created_at));
    if let Some(model) = message.metadata.get("model").and_then(Value::as_str) {
        line.push_str(&format!("  {}", plain(model)));
    }
    if let Some(usage) = message.metadata.get("usage") {
        let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
        line.push_str(&format!("  {} in, {} out", count("input"), count("output")));
    }
    if let Some(cost) = message.metadata.get("cost_usd").and_then(Value::as_f64) {
        line.push_str(&format!("  {}", dollars(cost)));
    }
    if message.role == Role::Assistant && message.metadata.get("refused").is_some() {
        line.push_str("  refused");
    }
    line
}

fn part_lines(text: &mut String, part: &Part) -> std::fmt::Result {
    match part {
        Part::Text { text: said, .. } => indented(text, "  ", said),
        Part::Reasoning { text: thought, .. } => indented(text, "  ~ ", thought),
        Part::Tool(tool) => call_line(text, tool),
        Part::File { media_type, filename, .. } => {
            writeln!(text, "  [{} {}]", plain(filename.as_deref().unwrap_or("file")), plain(media_type))
        }
        Part::SourceUrl { url, .. } => writeln!(text, "  [source {}]", plain(url)),
        Part::SourceDocument { title, .. } => writeln!(text, "  [source {}]", plain(title)),
        Part::Data { name, data, .. } => data_lines(text, name, data),
        Part::StepStart => Ok(()),
    }
}

fn data_lines(text: &mut String, name: &str, data: &Value) -> std::fmt::Result {
    match name {
        // Summed up in the line of the message.
        "usage" => Ok(()),
        "plan" => {
            for entry in data.get("entries").and_then(Value::as_array).into_iter().flatten() {
                let field = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
                let mark = if field("status") == "completed" { "x" } else { " " };
                writeln!(text, "    [{mark}] {}", plain(field("content")))?;
            }
            Ok(())
        }
        notice::PART_NAME => writeln!(text, "  ! {}", plain(&notice::line(data))),
        _ => writeln!(text, "  [{}]", plain(name)),
    }
}

fn call_line(text: &mut String, tool: &ToolPart) -> std::fmt::Result {
    let shown = tool.tool_metadata.as_ref().and_then(|metadata| metadata.get("attache"));
    let shown: Presentation =
        shown.and_then(|shown| serde_json::from_value(shown.clone()).ok()).unwrap_or_default();
    let title = if shown.title.is_empty() { &tool.tool_name } else { &shown.title };
    writeln!(text, "  * {}  {}", plain(title), tool.state.in_words())?;
    let rejected = tool.approval.as_ref().filter(|_| tool.state == ToolState::OutputDenied);
    match (&shown.decision, rejected.and_then(|approval| approval.reason.as_deref())) {
        (Some(Verdict { reason: Reason::Person { why }, .. }), Some(reason)) => {
            writeln!(text, "    deny: {} (asked because: {})", plain(reason), plain(why))?;
        }
        (_, Some(reason)) => writeln!(text, "    deny: {}", plain(reason))?,
        (Some(decision), None) => writeln!(text, "    {}", plain(&decision.in_words()))?,
        (None, None) => {}
    }
    match &tool.error_text {
        Some(error) => indented(text, "    ", error),
        None => Ok(()),
    }
}

fn indented(text: &mut String, indent: &str, said: &str) -> std::fmt::Result {
    for line in said.lines() {
        writeln!(text, "{indent}{}", plain(line))?;
    }
    Ok(())
}

/// What a model, a client or a file said, on one line and without what a terminal would obey.
fn plain(text: &str) -> String {
    legible_line(text)
}

fn title(row: &SessionRow) -> String {
    plain(row.metadata.get("title").and_then(Value::as_str).unwrap_or("(no title)"))
}

async fn write_export(
    store: &dyn Store,
    id: &SessionId,
    format: Format,
    output: Option<&Path>,
) -> Result<()> {
    let result = match output {
        Some(path) => {
            // Before the file is made: a mistyped id must not empty an older export.
            if store.session(id).await?.is_none() {
                bail!(unknown(id));
            }
            let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
            export(store, id, format, &mut BufWriter::new(file)).await
        }
        None => export(store, id, format, &mut answer::stream()).await,
    };
    match result {
        Err(ExportError::UnknownSession(id)) => bail!(unknown(&id)),
        Err(ExportError::Write(error)) => Ok(answer::forgive(Err(error))?),
        other => Ok(other?),
    }
}

fn unknown(id: &SessionId) -> String {
    format!("there is no session {id}; `attache sessions list` shows the ones there are")
}
