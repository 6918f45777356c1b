//! `attache sessions show --timeline`: turn by turn what was sent, called, decided and used. Reads only.

use std::collections::HashSet;
use std::fmt::Write as _;

use anyhow::Result;
use attache_core::compared::{dollars, value_text};
use attache_core::data_name::DataName;
use attache_core::ids::MessageId;
use attache_core::journal::replay::parts_of;
use attache_core::part::{Part, Role, ToolPart};
use attache_core::ports::store::{MessageRow, SessionRecord, Store};
use attache_core::ports::tool::Presentation;
use attache_core::visible::VisibleConversation;

use super::plain;
use super::show::{Detail, PAGE_BYTES, Printer, data_lines, indented};
use crate::answer;
use crate::paint::Colour;
use crate::when;

/// How many characters of a text, an input or an output we show unless the user asks for all.
const CUT: usize = 240;

/// How much of a system prompt is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptText {
    /// Only its digest.
    Named,
    /// All of it, at its first use.
    Shown,
}

pub(super) struct Timeline<'a> {
    printer: Printer<'a>,
    prompts: PromptText,
    turns: usize,
    steps: usize,
    message: Option<MessageId>,
    /// System prompts whose text we have shown.
    told: HashSet<String>,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(printer: Printer<'a>, prompts: PromptText) -> Self {
        Self { printer, prompts, turns: 0, steps: 0, message: None, told: HashSet::new() }
    }

    pub(super) async fn session(mut self, store: &dyn Store, record: &SessionRecord) -> Result<()> {
        let mut conversation = VisibleConversation::open(store, record).await?;
        answer::write_painted(&self.printer.opening(record, &conversation)?)?;
        while let Some(page) = conversation.next_page(PAGE_BYTES).await? {
            let mut text = String::new();
            for (message, rows) in page {
                if self.message.as_ref() != Some(&message.id) {
                    self.message = Some(message.id.clone());
                    self.message_lines(store, &mut text, &message).await?;
                }
                for part in parts_of(&rows)? {
                    self.part_lines(&mut text, &part)?;
                }
            }
            answer::write_painted(&text)?;
        }
        Ok(())
    }

    async fn message_lines(&mut self, store: &dyn Store, text: &mut String, row: &MessageRow) -> Result<()> {
        let paint = self.printer.paint;
        match row.role {
            Role::User => {
                self.turns += 1;
                let end = row.metadata.turn_end_in_words().map(|end| format!("  {}", plain(&end)));
                let name = paint.paint(Colour::Bold, &format!("turn {}", self.turns));
                let details = format!("{}{}", when::minutes(row.created_at), end.unwrap_or_default());
                writeln!(text, "\n{name}  {}", paint.paint(Colour::Grey, &details))?;
            }
            Role::Assistant | Role::System => {
                self.steps = 0;
                writeln!(text, "{}", paint.paint(Colour::Cyan, row.role.as_str()))?;
                self.answer_lines(store, text, row).await?;
            }
        }
        Ok(())
    }

    /// What the model got for an answer, and what the answer used.
    async fn answer_lines(&mut self, store: &dyn Store, text: &mut String, row: &MessageRow) -> Result<()> {
        let metadata = &row.metadata;
        let label = |name: &str| self.printer.label(name);
        if let Some(model) = metadata.model() {
            writeln!(text, "  {} {}", label("model"), plain(model))?;
        }
        let tools = metadata.tools();
        if !tools.is_empty() {
            writeln!(text, "  {} {}", label("tools"), plain(&tools.join(", ")))?;
        }
        if let Some(used) = metadata.usage() {
            let cost = metadata.cost_usd().map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
            writeln!(
                text,
                "  {} {} input, {} output, {} reasoning, {} cache read, {} cache write{cost}",
                label("tokens"),
                used.input,
                used.output,
                used.reasoning,
                used.cache_read,
                used.cache_write
            )?;
        }
        let Some(digest) = metadata.system_prompt_digest() else { return Ok(()) };
        writeln!(text, "  {} {}", label("system"), plain(digest))?;
        if self.prompts == PromptText::Shown && self.told.insert(digest.to_owned()) {
            match store.system_prompt(digest).await? {
                Some(body) => indented(text, "    | ", &body)?,
                None => writeln!(text, "    (its text is not stored)")?,
            }
        }
        Ok(())
    }

    fn part_lines(&mut self, text: &mut String, part: &Part) -> std::fmt::Result {
        match part {
            Part::StepStart => {
                self.steps += 1;
                let step = format!("step {}", self.steps);
                writeln!(text, "  {}", self.printer.paint.paint(Colour::Grey, &step))
            }
            Part::Text { text: said, .. } => indented(text, "    ", &self.cut(said)),
            Part::Reasoning { text: thought, .. } => indented(text, "    ~ ", &self.cut(thought)),
            Part::Tool(tool) => self.call_lines(text, tool),
            Part::File { media_type, filename, .. } => {
                writeln!(text, "    [{} {}]", plain(filename.as_deref().unwrap_or("file")), plain(media_type))
            }
            Part::SourceUrl { url, .. } => writeln!(text, "    [source {}]", plain(url)),
            Part::SourceDocument { title, .. } => writeln!(text, "    [source {}]", plain(title)),
            Part::Data { name, data, .. } if *name == DataName::Usage => {
                let count = |key: &str| data.get(key).and_then(serde_json::Value::as_u64);
                match (count("context_used"), count("context_size")) {
                    (Some(used), Some(size)) => writeln!(text, "    [context {used} of {size} tokens]"),
                    (_, None) | (None, _) => Ok(()),
                }
            }
            Part::Data { name, data, .. } => data_lines(text, name, data),
        }
    }

    fn call_lines(&self, text: &mut String, tool: &ToolPart) -> std::fmt::Result {
        let shown = Presentation::of(tool);
        let took = shown.metadata.as_ref().map(|metadata| format!("  {} ms", metadata.duration_ms));
        let title = if shown.title.is_empty() { String::new() } else { format!("  {}", plain(&shown.title)) };
        let (name, state) = (plain(&tool.tool_name), tool.state_in_words());
        writeln!(text, "    * {name}{title}  {state}{}", took.unwrap_or_default())?;
        if let Some(decision) = shown.decision_in_words(tool) {
            writeln!(text, "      {}", self.printer.paint.paint(Colour::Grey, &plain(&decision)))?;
        }
        if let Some(input) = &tool.input {
            indented(text, "      > ", &self.cut(&value_text(input)))?;
        }
        match (&tool.error_text, &tool.output) {
            (Some(error), _) => indented(text, "      ! ", &self.cut(error)),
            (None, Some(output)) if tool.is_settled() => {
                indented(text, "      | ", &self.cut(&value_text(output)))
            }
            // Output of a running call is only for its client.
            (None, _) => Ok(()),
        }
    }

    fn cut(&self, text: &str) -> String {
        let end = text.char_indices().nth(CUT).map(|(at, _)| at);
        match (self.printer.detail, end) {
            (Detail::Outline, Some(end)) => format!("{} … ({} bytes in all)", &text[..end], text.len()),
            (Detail::Full, _) | (Detail::Outline, None) => text.to_owned(),
        }
    }
}
