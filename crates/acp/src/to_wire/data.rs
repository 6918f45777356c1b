//! The `data-*` chunks that clients see. Others of ours are not for clients.

use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, ContentChunk, Cost, CurrentModeUpdate, Meta, Notice, NoticeSeverity, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate, SessionUpdate, UsageUpdate,
};
use attache_core::choices::{Chosen, SAME_MODE};
use attache_core::data_name::DataName;
use attache_core::entry::Entry;
use attache_core::hooks;
use attache_core::metadata::OWN_KEY;
use attache_core::part::Role;
use serde_json::{Map, Value};

use super::legible::{visible, visible_line};
use super::line::StepMessageId;
use super::{
    EncodeResult, Notices, ThoughtUpdates, WireView, commands, compaction, content, line, selection, tool,
};
use crate::limits::EVENT_CHARACTERS;

/// The content of a data chunk.
pub(super) struct DataChunk<'a> {
    pub(super) name: &'a str,
    pub(super) id: Option<&'a str>,
    pub(super) data: &'a Value,
    pub(super) lasting: Lasting,
}

/// Whether a load repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    Stored,
    Moment,
}

pub(super) fn write(
    entry: Entry<'_>,
    view: &WireView,
    said: DataChunk<'_>,
    out: &mut Vec<u8>,
) -> EncodeResult {
    let DataChunk { name, id, data, lasting } = said;
    let Some(known) = DataName::of(name) else { return own_event(entry, view, said, out) };
    match known {
        DataName::Plan => plan(entry, data, out),
        DataName::Title => title(entry, data, out),
        DataName::Mode => mode(entry, view, data, out),
        DataName::Usage => usage(entry, data, out),
        DataName::Compaction => compaction::write(entry, view, id, data, out),
        DataName::Notice => notice(entry, view, data, lasting, out),
        DataName::Status => status(entry, view, data, out),
        DataName::AskedCall => tool::asked(entry, data, out),
        DataName::Hook => hook(entry, view, data, lasting, out),
        DataName::Command => commands::command(entry, data, out),
        DataName::FileRef | DataName::Context => attachment(entry, name, data, out),
        // A call's own updates say what people see of an answer, but for what it runs with.
        DataName::Approval => tool::edited(entry, data, out),
        // Of the model or of the host.
        DataName::Environment | DataName::Snapshot => Ok(()),
    }
}

/// An event of an agent that runs elsewhere, which only that agent understands: shown as a line of thought,
/// never as a call, because the model made none.
fn own_event(entry: Entry<'_>, view: &WireView, said: DataChunk<'_>, out: &mut Vec<u8>) -> EncodeResult {
    match (entry.role, view.thoughts) {
        (Role::Assistant, ThoughtUpdates::Show) => {
            let words = said.data.as_str().map_or_else(|| said.data.to_string(), str::to_owned);
            let words: String = one_line(&words).chars().take(EVENT_CHARACTERS).collect();
            let words = visible_line(&format!("{}: {words}", said.name));
            line::update(entry, &aside(entry, format!("{words}\n"), said.lasting), out)
        }
        (Role::Assistant | Role::User | Role::System, _) => Ok(()),
    }
}

/// What the user attached to a prompt.
fn attachment(entry: Entry<'_>, name: &str, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let blocks = match (entry.role, name) {
        (Role::User, "file-ref") => content::file_reference(data).into_iter().collect(),
        (Role::User, _) => content::context_in_pieces(data),
        (Role::Assistant | Role::System, _) => Vec::new(),
    };
    blocks.into_iter().try_for_each(|block| line::block(entry, block, out))
}

fn plan(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let Some(entries) = data.get("entries").and_then(Value::as_array) else { return Ok(()) };
    let entries = entries.iter().filter_map(plan_entry).collect();
    line::update(entry, &SessionUpdate::Plan(Plan::new(entries)), out)
}

fn plan_entry(entry: &Value) -> Option<PlanEntry> {
    let content = text(entry, "content")?;
    let priority = match text(entry, "priority") {
        Some("high") => PlanEntryPriority::High,
        Some("low") => PlanEntryPriority::Low,
        Some(_) | None => PlanEntryPriority::Medium,
    };
    let status = match text(entry, "status") {
        Some("in_progress") => PlanEntryStatus::InProgress,
        // An abandoned entry needs no more work; the protocol has no separate status for it.
        Some("completed" | "cancelled") => PlanEntryStatus::Completed,
        Some(_) | None => PlanEntryStatus::Pending,
    };
    Some(PlanEntry::new(content, priority, status))
}

fn title(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let Some(title) = text(data, "title") else { return Ok(()) };
    line::update(
        entry,
        &SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title.to_owned())),
        out,
    )
}

/// The mode has its own update; as an option it comes with the complete list.
fn mode(entry: Entry<'_>, view: &WireView, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let Some(chosen) = Chosen::from_json(data) else { return Ok(()) };
    if data.get(SAME_MODE).is_none() {
        let mode = CurrentModeUpdate::new(chosen.agent.clone());
        line::update(entry, &SessionUpdate::CurrentModeUpdate(mode), out)?;
    }
    let options = selection::config_options(&view.choices.get(), &chosen);
    line::update(entry, &SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)), out)
}

fn usage(entry: Entry<'_>, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    let count = |key: &str| data.get(key).and_then(Value::as_u64);
    let (Some(used), Some(size)) = (count("context_used"), count("context_size")) else { return Ok(()) };
    let cost = data.get("cost_usd").and_then(Value::as_f64).map(|amount| Cost::new(amount, "USD"));
    let mut ours = Map::new();
    let mut step = Map::new();
    for (key, name) in [
        ("input", "input"),
        ("output", "output"),
        ("reasoning", "reasoning"),
        ("cache_read", "cacheRead"),
        ("cache_write", "cacheWrite"),
    ] {
        if let Some(tokens) = count(key) {
            step.insert(name.into(), tokens.into());
        }
    }
    if !step.is_empty() {
        ours.insert("stepTokens".into(), Value::Object(step));
    }
    // No provider counted: the number is our estimate.
    if data.get("estimated").and_then(Value::as_bool) == Some(true) {
        ours.insert("estimated".into(), true.into());
    }
    let meta = (!ours.is_empty()).then(|| Meta::from_iter([(OWN_KEY.to_owned(), Value::Object(ours))]));
    line::update(entry, &SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost).meta(meta)), out)
}

fn notice(
    entry: Entry<'_>,
    view: &WireView,
    data: &Value,
    lasting: Lasting,
    out: &mut Vec<u8>,
) -> EncodeResult {
    // The schema requires a title.
    let Some(title) = text(data, "title").filter(|title| !title.is_empty()) else { return Ok(()) };
    let severity = match text(data, "severity") {
        Some("error") => NoticeSeverity::Error,
        Some("warning") => NoticeSeverity::Warning,
        Some(_) | None => NoticeSeverity::Info,
    };
    tell(entry, view, NoticeUpdate { severity, title, description: text(data, "description"), lasting }, out)
}

/// Why an answer continues. What a hook adds to a prompt is only for the model.
fn hook(
    entry: Entry<'_>,
    view: &WireView,
    data: &Value,
    lasting: Lasting,
    out: &mut Vec<u8>,
) -> EncodeResult {
    match entry.role {
        Role::User | Role::System => Ok(()),
        Role::Assistant => {
            let severity = NoticeSeverity::Info;
            let title = match hooks::is_own(data) {
                true => "The turn goes on",
                false => "A hook wants the turn to go on",
            };
            let said = hooks::line(data);
            tell(entry, view, NoticeUpdate { severity, title, description: Some(&said), lasting }, out)
        }
    }
}

/// Of these states, tells the client only a retry in progress; the others are visible anyway.
fn status(entry: Entry<'_>, view: &WireView, data: &Value, out: &mut Vec<u8>) -> EncodeResult {
    if text(data, "state") != Some("retrying") {
        return Ok(());
    }
    let title = match data.get("attempt").and_then(Value::as_u64) {
        Some(attempt) => format!("Retrying (attempt {attempt})"),
        None => "Retrying".to_owned(),
    };
    let severity = NoticeSeverity::Warning;
    let description = text(data, "message");
    tell(entry, view, NoticeUpdate { severity, title: &title, description, lasting: Lasting::Moment }, out)
}

/// Something that the user must know and that is not part of the conversation.
struct NoticeUpdate<'a> {
    severity: NoticeSeverity,
    title: &'a str,
    description: Option<&'a str>,
    lasting: Lasting,
}

/// A notice if the client asked for notices, else a line of thought: the user must hear it in any case.
fn tell(entry: Entry<'_>, view: &WireView, news: NoticeUpdate<'_>, out: &mut Vec<u8>) -> EncodeResult {
    let NoticeUpdate { severity, title, description, lasting } = news;
    let description = description.filter(|description| !description.is_empty());
    // Many notices contain names of files and servers, and texts from those.
    match (view.notices, view.thoughts) {
        (Notices::Wanted, _) => {
            let passing = (lasting == Lasting::Moment).then(passing);
            let notice = Notice::new(severity, visible_line(title))
                .description(description.map(visible))
                .meta(passing);
            line::update(entry, &SessionUpdate::Notice(notice), out)
        }
        (Notices::Unwanted, ThoughtUpdates::Show) => {
            let mut words = one_line(title);
            if let Some(description) = description {
                words = format!("{words}: {}", one_line(description));
            }
            line::update(entry, &aside(entry, format!("{}\n", visible_line(&words)), lasting), out)
        }
        (Notices::Unwanted, ThoughtUpdates::Drop) => Ok(()),
    }
}

/// Text of a provider, which may contain anything.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line of thought that does not come from the model; marked if no load repeats it. Outside of a run it
/// belongs to no message.
fn aside(entry: Entry<'_>, words: String, lasting: Lasting) -> SessionUpdate {
    let mut chunk = ContentChunk::new(words.into());
    if !entry.message_id.as_str().is_empty() {
        chunk = chunk.message_id(StepMessageId::of(entry).to_string().as_str());
    }
    if lasting == Lasting::Moment {
        chunk = chunk.meta(passing());
    }
    SessionUpdate::AgentThoughtChunk(chunk)
}

/// Marks an update that no load repeats.
fn passing() -> Meta {
    let ours = Map::from_iter([("transient".to_owned(), Value::Bool(true))]);
    Meta::from_iter([(OWN_KEY.to_owned(), Value::Object(ours))])
}

fn text<'a>(data: &'a Value, key: &str) -> Option<&'a str> {
    data.get(key).and_then(Value::as_str)
}
