//! `attache sessions diff`: two sessions turn by turn, what was said, called and used. Reads only; holds one
//! turn of each.

use std::collections::VecDeque;
use std::fmt::Write as _;

use anyhow::Result;
use attache_core::ids::MessageId;
use attache_core::journal::replay::parts_of;
use attache_core::part::{Part, Role, ToolPart};
use attache_core::ports::store::{MessageRow, SessionRecord, Store};
use attache_core::visible::{VisibleConversation, VisibleMessage};

use super::plain;
use super::show::{PAGE_BYTES, dollars, value_text};
use crate::answer;
use crate::paint::{Colour, Paint};

pub(super) async fn run(store: &dyn Store, first: &SessionRecord, second: &SessionRecord) -> Result<()> {
    let mut ours = ComparedTurns::open(store, first).await?;
    let mut theirs = ComparedTurns::open(store, second).await?;
    let paint = Paint::for_answers();
    let (mut number, mut different) = (0, 0);
    loop {
        let (old, new) = (ours.next().await?, theirs.next().await?);
        if old.is_none() && new.is_none() {
            break;
        }
        number += 1;
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        if old == new {
            continue;
        }
        different += 1;
        let mut text = format!("{}\n", paint.paint(Colour::Bold, &format!("turn {number}")));
        for line in changed(&old, &new) {
            let colour = match line.as_bytes().first() {
                Some(b'-') => Some(Colour::Red),
                Some(b'+') => Some(Colour::Green),
                Some(_) | None => None,
            };
            match colour {
                Some(colour) => writeln!(text, "{}", paint.paint(colour, &line))?,
                None => writeln!(text, "{line}")?,
            }
        }
        answer::write_painted(&text)?;
    }
    let same = number - different;
    answer::note(&match number {
        1 if same == 1 => "the only turn is the same".to_owned(),
        1 => "the only turn differs".to_owned(),
        _ => format!("{same} of {number} turns are the same"),
    });
    Ok(())
}

/// What differs, with a line around it. The same lines at both ends are left out.
fn changed(old: &[String], new: &[String]) -> Vec<String> {
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

/// The turns of one session, each as lines that are the same where the turns are.
struct ComparedTurns<'a> {
    conversation: VisibleConversation<'a>,
    read: VecDeque<VisibleMessage>,
}

impl<'a> ComparedTurns<'a> {
    async fn open(store: &'a dyn Store, record: &'a SessionRecord) -> Result<Self> {
        let conversation = VisibleConversation::open(store, record).await?;
        Ok(Self { conversation, read: VecDeque::new() })
    }

    async fn next(&mut self) -> Result<Option<Vec<String>>> {
        let mut lines: Option<Vec<String>> = None;
        let mut open: Option<MessageId> = None;
        loop {
            let Some((message, _)) = self.peek().await? else { return Ok(lines) };
            let goes_on = open.as_ref() == Some(&message.id);
            if message.role == Role::User && lines.is_some() && !goes_on {
                return Ok(lines);
            }
            let Some((message, rows)) = self.read.pop_front() else { return Ok(lines) };
            let turn = lines.get_or_insert_default();
            if !goes_on {
                turn.extend(head(&message));
            }
            for part in parts_of(&rows)? {
                turn.extend(part_lines(&part));
            }
            open = Some(message.id);
        }
    }

    async fn peek(&mut self) -> Result<Option<&VisibleMessage>> {
        while self.read.is_empty()
            && let Some(page) = self.conversation.next_page(PAGE_BYTES).await?
        {
            self.read.extend(page);
        }
        Ok(self.read.front())
    }
}

fn head(message: &MessageRow) -> Vec<String> {
    let model = message.metadata.model().map(|model| format!("  {}", plain(model))).unwrap_or_default();
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
        text.lines().map(|line| format!("{indent}{}", plain(line))).collect()
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
        Part::Data { name, .. } if name == "usage" || name == "environment" => Vec::new(),
        Part::Data { name, data, .. } => lines(&format!("  {name} "), &data.to_string()),
    }
}

fn call_lines(tool: &ToolPart) -> Vec<String> {
    let input = tool.input.as_ref().map(value_text).unwrap_or_default();
    let mut lines =
        vec![format!("  * {} {}  {}", plain(&tool.tool_name), plain(&input), tool.state_in_words())];
    let output = tool.error_text.clone().or_else(|| tool.output.as_ref().map(value_text));
    lines.extend(output.unwrap_or_default().lines().map(|line| format!("    | {}", plain(line))));
    lines
}
