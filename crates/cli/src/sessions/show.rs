//! `attache sessions show`: one session in a form for people. Reads only.

use std::fmt::Write as _;

use anyhow::Result;
use attache_core::compared::{dollars, value_text};
use attache_core::data_name::DataName;
use attache_core::hooks;
use attache_core::journal::replay::parts_of;
use attache_core::notice;
use attache_core::part::{Part, Role, ToolPart, ToolState};
use attache_core::ports::store::{MessageRow, Owner, SessionRecord, SessionRow, Store};
use attache_core::ports::tool::Presentation;
use attache_core::visible::VisibleConversation;
use attache_core::watchdog::{Firmness, Rule, Rules};
use serde_json::Value;

use super::{plain, title};
use crate::answer;
use crate::config::Config;
use crate::paint::{Colour, Paint};
use crate::projects::HostProjects;
use crate::when;

/// Bytes of parts fetched at a time: a screenful and more, never everything.
pub(super) const PAGE_BYTES: usize = 256 * 1024;

/// How much of each call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Its title and how it ended.
    Outline,
    /// Also its arguments and its output.
    Full,
}

/// Writes sessions for people: passes all text of others through `plain`; only our own has colours.
pub(super) struct Printer<'a> {
    pub(super) config: &'a Config,
    pub(super) projects: HostProjects,
    pub(super) detail: Detail,
    pub(super) paint: Paint,
}

impl Printer<'_> {
    pub(super) async fn session(&self, store: &dyn Store, record: &SessionRecord) -> Result<()> {
        let mut conversation = VisibleConversation::open(store, record).await?;
        answer::write_painted(&self.opening(record, &conversation)?)?;
        let mut shown: Option<MessageRow> = None;
        while let Some(page) = conversation.next_page(PAGE_BYTES).await? {
            let mut text = String::new();
            for (message, rows) in page {
                if shown.as_ref().is_none_or(|before| before.id != message.id) {
                    writeln!(text, "\n{}", self.message_line(&message))?;
                }
                for part in parts_of(&rows)? {
                    self.part_lines(&mut text, &part)?;
                }
                shown = Some(message);
            }
            answer::write_painted(&text)?;
        }
        Ok(())
    }

    pub(super) fn label(&self, name: &str) -> String {
        self.paint.paint(Colour::Grey, &format!("{name:<10}"))
    }

    /// What we know of the session as a whole.
    pub(super) fn opening(
        &self,
        record: &SessionRecord,
        conversation: &VisibleConversation<'_>,
    ) -> Result<String> {
        let open_call = match conversation.unfinished() {
            Some((_, rows)) => open_question(&parts_of(rows)?),
            None => None,
        };
        Ok(self.head(record, open_call.as_deref())? + &self.rules_in_force(&record.row)?)
    }

    fn head(&self, record: &SessionRecord, open_call: Option<&str>) -> Result<String> {
        let row = &record.row;
        let mut text = String::new();
        let mut line = |name: &str, value: &str| writeln!(text, "{} {value}", self.label(name));
        line("session", &plain(row.id.as_str()))?;
        line("title", &self.paint.paint(Colour::Bold, &title(row)))?;
        line("workspace", &plain(&row.workspace_root.to_string_lossy()))?;
        // The agent of the next turn, which may differ from the session's first one.
        line("agent", &plain(row.metadata.mode().unwrap_or(&row.agent)))?;
        if let Some(model) = &row.model {
            line("model", &plain(&model.to_string()))?;
        }
        line("made", &when::minutes(row.created_at))?;
        line("changed", &when::minutes(row.updated_at))?;
        if let Some(archived_at) = row.archived_at {
            line("archived", &when::minutes(archived_at))?;
        }
        line("state", &plain(&state(record, open_call)))?;
        let totals = &row.totals;
        let tokens = format!(
            "{} input, {} output, {} reasoning, {} cache read, {} cache write",
            totals.prompt_tokens,
            totals.completion_tokens,
            totals.reasoning_tokens,
            totals.cache_read,
            totals.cache_write
        );
        line("tokens", &tokens)?;
        if let Some(cost) = totals.known_cost_usd() {
            line("cost", &dollars(cost))?;
        }
        Ok(text)
    }

    /// The rules of all scopes. Each call says which of them decided about it.
    fn rules_in_force(&self, row: &SessionRow) -> Result<String> {
        let mut text = String::new();
        let label = self.label("rule");
        let mut line = |rule: &Rule, scope: &str| {
            writeln!(text, "{label} {} {} ({scope})", rule.action.as_str(), plain(&rule.to_string()))
        };
        // The mode of its next turn, with the current files of agents.
        let agents = self.projects.settings_now(&row.workspace_root).agents.unwrap_or_default();
        let agent = agents.get(row.metadata.mode().unwrap_or(&row.agent));
        for own in agent.into_iter().flat_map(|agent| &agent.permissions) {
            let scope = match own.firmness {
                Firmness::Plain => "agent",
                Firmness::Pinned => "agent, pinned",
            };
            line(&own.rule, scope)?;
        }
        for configured in &self.config.rules {
            line(&configured.rule(), "configuration")?;
        }
        for rule in Rules::from_json(&row.permissions).iter() {
            line(rule, "session")?;
        }
        for directory in row.metadata.granted_directories() {
            let directory = directory.to_string_lossy();
            writeln!(text, "{} {} (session)", self.label("granted"), plain(&directory))?;
        }
        Ok(text)
    }

    fn message_line(&self, message: &MessageRow) -> String {
        let colour = match message.role {
            Role::User => Colour::Blue,
            Role::Assistant => Colour::Cyan,
            Role::System => Colour::Grey,
        };
        let mut details = when::minutes(message.created_at);
        if let Some(model) = message.metadata.model() {
            details.push_str(&format!("  {}", plain(model)));
        }
        if let Some(usage) = message.metadata.usage() {
            details.push_str(&format!("  {} in, {} out", usage.input, usage.output));
        }
        if let Some(cost) = message.metadata.cost_usd() {
            details.push_str(&format!("  {}", dollars(cost)));
        }
        if message.role == Role::Assistant && message.metadata.is_refused() {
            details.push_str("  refused");
        }
        let (who, details) =
            (self.paint.paint(colour, message.role.as_str()), self.paint.paint(Colour::Grey, &details));
        format!("{who}  {details}")
    }

    fn part_lines(&self, text: &mut String, part: &Part) -> std::fmt::Result {
        match part {
            Part::Text { text: said, .. } => indented(text, "  ", said),
            Part::Reasoning { text: thought, .. } => indented(text, "  ~ ", thought),
            Part::Tool(tool) => self.call_lines(text, tool),
            Part::File { media_type, filename, .. } => {
                writeln!(text, "  [{} {}]", plain(filename.as_deref().unwrap_or("file")), plain(media_type))
            }
            Part::SourceUrl { url, .. } => writeln!(text, "  [source {}]", plain(url)),
            Part::SourceDocument { title, .. } => writeln!(text, "  [source {}]", plain(title)),
            Part::Data { name, data, .. } => data_lines(text, name, data),
            Part::StepStart => Ok(()),
        }
    }

    fn call_lines(&self, text: &mut String, tool: &ToolPart) -> std::fmt::Result {
        let shown = Presentation::of(tool);
        let colour = match tool.state {
            ToolState::OutputAvailable if tool.is_settled() => Colour::Green,
            ToolState::OutputError | ToolState::OutputDenied => Colour::Red,
            ToolState::InputStreaming
            | ToolState::InputAvailable
            | ToolState::OutputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => Colour::Yellow,
        };
        writeln!(
            text,
            "  * {}  {}",
            plain(&call_title(tool, &shown)),
            self.paint.paint(colour, tool.state_in_words())
        )?;
        if let Some(decision) = shown.decision_in_words(tool) {
            writeln!(text, "    {}", self.paint.paint(Colour::Grey, &plain(&decision)))?;
        }
        if let Some(error) = &tool.error_text {
            indented(text, "    ", error)?;
        }
        match self.detail {
            Detail::Outline => Ok(()),
            Detail::Full => {
                if let Some(input) = &tool.input {
                    indented(text, "    > ", &value_text(input))?;
                }
                match tool.output.as_ref().filter(|_| tool.is_settled()) {
                    Some(output) => indented(text, "    | ", &value_text(output)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// What happens in the session, and what its user can do.
fn state(record: &SessionRecord, open_call: Option<&str>) -> String {
    let state = match (&record.live_run, record.owner, open_call) {
        (None, _, _) => "idle".to_owned(),
        (Some(_), _, Some(call)) => format!("waits for your answer: {call}"),
        (Some(_), Owner::Other | Owner::Us, None) => "running".to_owned(),
        (Some(_), Owner::Nobody | Owner::Dead, None) => {
            "stopped in the middle; load it in your editor to go on".to_owned()
        }
    };
    match record.queued.len() {
        0 => state,
        1 => format!("{state}; 1 prompt waits in the queue"),
        several => format!("{state}; {several} prompts wait in the queue"),
    }
}

/// The call that waits for an answer, as the user knows it.
fn open_question(parts: &[Part]) -> Option<String> {
    let mut calls = parts.iter().filter_map(Part::tool);
    let open = calls.find(|tool| tool.state == ToolState::ApprovalRequested)?;
    Some(call_title(open, &Presentation::of(open)))
}

fn call_title(tool: &ToolPart, shown: &Presentation) -> String {
    let title = if shown.title.is_empty() { &tool.tool_name } else { &shown.title };
    title.clone()
}

pub(super) fn data_lines(text: &mut String, name: &str, data: &Value) -> std::fmt::Result {
    match DataName::of(name) {
        // The message's line sums these up, and the calls show what they changed.
        Some(DataName::Usage | DataName::Snapshot) => Ok(()),
        Some(DataName::Compaction) => compaction_lines(text, data),
        Some(DataName::Environment) => {
            indented(text, "  + ", data.get("text").and_then(Value::as_str).unwrap_or_default())
        }
        Some(DataName::Plan) => {
            for entry in data.get("entries").and_then(Value::as_array).into_iter().flatten() {
                let field = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
                let mark = if field("status") == "completed" { "x" } else { " " };
                writeln!(text, "    [{mark}] {}", plain(field("content")))?;
            }
            Ok(())
        }
        Some(DataName::Hook) => writeln!(text, "  ! {}", plain(&hooks::line(data))),
        Some(DataName::Notice) => writeln!(text, "  ! {}", plain(&notice::line(data))),
        Some(DataName::Command) => {
            indented(text, "  ", data.get("text").and_then(Value::as_str).unwrap_or_default())
        }
        Some(
            DataName::Approval
            | DataName::AskedCall
            | DataName::Context
            | DataName::FileRef
            | DataName::Mode
            | DataName::Status
            | DataName::Title,
        )
        | None => writeln!(text, "  [{}]", plain(name)),
    }
}

/// How the compaction ended, and what the model continues with.
fn compaction_lines(text: &mut String, data: &Value) -> std::fmt::Result {
    let field = |key: &str| data.get(key).and_then(Value::as_str);
    match (field("status"), field("summary")) {
        (Some("completed"), Some(summary)) => {
            writeln!(text, "  [the conversation before was summarised]")?;
            indented(text, "  | ", summary)
        }
        (Some("completed"), None) => writeln!(text, "  [old results were shortened]"),
        (Some("failed"), _) => {
            writeln!(
                text,
                "  [the conversation was not summarised: {}]",
                plain(field("error").unwrap_or("?"))
            )
        }
        (status, _) => writeln!(text, "  [summary {}]", plain(status.unwrap_or("unknown"))),
    }
}

pub(super) fn indented(text: &mut String, indent: &str, said: &str) -> std::fmt::Result {
    for line in said.lines() {
        writeln!(text, "{indent}{}", plain(line))?;
    }
    Ok(())
}
