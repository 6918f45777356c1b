//! Compares two sessions turn by turn: writes what was said, called and used as lines, which are equal where
//! the turns are. Only reads; holds one turn of each session.

use std::collections::VecDeque;

use serde_json::Value;

use crate::data_name::DataName;
use crate::ids::MessageId;
use crate::journal::replay::parts_of;
use crate::legible::legible_line;
use crate::limits::PAGE_BYTES;
use crate::part::{Part, Role, ToolPart};
use crate::ports::store::{MessageRow, SessionRecord, Store, StoreResult};
use crate::visible::{VisibleConversation, VisibleMessage};

/// One turn as lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparedTurn {
    /// The position of its first message; not compared.
    pub seq: i64,
    /// What was said, called and used.
    pub lines: Vec<String>,
}

/// The turns of one session, read one by one on demand.
#[derive(Debug)]
pub struct ComparedTurns<'a> {
    conversation: VisibleConversation<'a>,
    read: VecDeque<VisibleMessage>,
}

impl<'a> ComparedTurns<'a> {
    /// Starts with the turn that begins at this seq; `None`: with the first.
    pub async fn open(
        store: &'a dyn Store,
        record: &'a SessionRecord,
        from: Option<i64>,
    ) -> StoreResult<Self> {
        let conversation = match from {
            Some(seq) => VisibleConversation::open_at(store, record, seq).await?,
            None => VisibleConversation::open(store, record).await?,
        };
        Ok(Self { conversation, read: VecDeque::new() })
    }

    /// The next turn; `None` behind the last.
    pub async fn next(&mut self) -> StoreResult<Option<ComparedTurn>> {
        let mut turn: Option<ComparedTurn> = None;
        let mut open: Option<MessageId> = None;
        loop {
            let Some((message, _)) = self.peek().await? else { return Ok(turn) };
            let goes_on = open.as_ref() == Some(&message.id);
            if message.role == Role::User && turn.is_some() && !goes_on {
                return Ok(turn);
            }
            let Some((message, rows)) = self.read.pop_front() else { return Ok(turn) };
            let seq = message.seq.unwrap_or_default();
            let turn = turn.get_or_insert_with(|| ComparedTurn { seq, lines: Vec::new() });
            if !goes_on {
                turn.lines.extend(head(&message));
            }
            for part in parts_of(&rows)? {
                turn.lines.extend(part_lines(&part));
            }
            open = Some(message.id);
        }
    }

    async fn peek(&mut self) -> StoreResult<Option<&VisibleMessage>> {
        while self.read.is_empty()
            && let Some(page) = self.conversation.next_page(PAGE_BYTES).await?
        {
            self.read.extend(page);
        }
        Ok(self.read.front())
    }
}

/// The lines that differ, with one line around them; equal lines at both ends are left out. Each line begins
/// with ` `, `-` or `+`.
pub fn changed(old: &[String], new: &[String]) -> Vec<String> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let marked = |mark: char, lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("{mark} {line}")).collect()
    };
    let mut lines = marked(' ', &old[start.saturating_sub(1)..start]);
    lines.extend(marked('-', &old[start..old.len() - end]));
    lines.extend(marked('+', &new[start..new.len() - end]));
    lines.extend(marked(' ', &old[old.len() - end..(old.len() - end + 1).min(old.len())]));
    lines
}

/// An amount with two significant digits, also below a cent.
pub fn dollars(amount: f64) -> String {
    match amount {
        amount if amount >= 1.0 => format!("${amount:.2}"),
        amount if amount >= 0.01 => format!("${amount:.3}"),
        amount => format!("${amount:.6}"),
    }
}

fn head(message: &MessageRow) -> Vec<String> {
    let model =
        message.metadata.model().map(|model| format!("  {}", legible_line(model))).unwrap_or_default();
    let mut lines = vec![format!("{}{model}", message.role.as_str())];
    if let Some(used) = message.metadata.usage() {
        let cost = message.metadata.cost_usd().map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
        lines.push(format!(
            "  {} input, {} output, {} reasoning, {} cache read, {} cache write{cost}",
            used.input, used.output, used.reasoning, used.cache_read, used.cache_write
        ));
    }
    lines
}

fn part_lines(part: &Part) -> Vec<String> {
    let lines = |indent: &str, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("{indent}{}", legible_line(line))).collect()
    };
    match part {
        Part::StepStart => Vec::new(),
        Part::Text { text, .. } => lines("  ", text),
        Part::Reasoning { text, .. } => lines("  ~ ", text),
        Part::Tool(tool) => call_lines(tool),
        Part::SourceUrl { url, .. } => lines("  source ", url),
        Part::SourceDocument { title, .. } => lines("  source ", title),
        Part::File { filename, media_type, .. } => {
            lines("  file ", filename.as_deref().unwrap_or(media_type))
        }
        Part::Data { name, .. } if *name == DataName::Usage || *name == DataName::Environment => Vec::new(),
        Part::Data { name, data, .. } => lines(&format!("  {name} "), &data.to_string()),
    }
}

fn call_lines(tool: &ToolPart) -> Vec<String> {
    let input = tool.input.as_ref().map(value_text).unwrap_or_default();
    let (name, input) = (legible_line(&tool.tool_name), legible_line(&input));
    let mut lines = vec![format!("  * {name} {input}  {}", tool.state_in_words())];
    let output = tool.error_text.clone().or_else(|| tool.output.as_ref().map(value_text));
    lines.extend(output.unwrap_or_default().lines().map(|line| format!("    | {}", legible_line(line))));
    lines
}

/// A text as it is, everything else as JSON.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_differs_is_told_with_one_line_around_it() {
        let old = lines(&["a", "b", "c", "d", "e"]);
        let new = lines(&["a", "b", "X", "d", "e"]);
        assert_eq!(changed(&old, &new), ["  b", "- c", "+ X", "  d"]);
        assert_eq!(changed(&[], &lines(&["new"])), ["+ new"]);
        assert_eq!(changed(&lines(&["a", "a"]), &lines(&["a"])), ["  a", "- a"]);
    }
}
