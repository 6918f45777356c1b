//! A conversation as text for a summariser: what was said, beginning and end of the last results, and stubs
//! instead of older ones. Pure.

use std::sync::Arc;

use crate::compaction::stubs::stub;
use crate::data_name::DataName;
use crate::hooks;
use crate::part::{Part, Passage, Role, ToolPart};
use crate::prompt::text_of;
use crate::slash_commands;

/// No piece is smaller than this.
pub(super) const LEAST_PIECE: usize = 4_000;

/// The most bytes of one text, of one call's arguments, and of one result.
const TEXT_BYTES: usize = 8_000;
const ARGUMENT_BYTES: usize = 400;
const RESULT_BYTES: usize = 1_200;

/// Older results become stubs from this size on.
const OLD_RESULT_BYTES: usize = 400;

/// The results in this many last passages are shown.
const LAST_PASSAGES: usize = 12;

/// How much of the conversation a note keeps that no model wrote.
const FIRST_PROMPT_BYTES: usize = 2_000;
const PROMPT_BYTES: usize = 400;
const PROMPTS: usize = 12;

/// What is to be summarised.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversationText {
    pub(super) text: String,
    prompts: Vec<String>,
}

/// How results are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultForm {
    Shortened,
    OldAsStub,
}

impl ConversationText {
    pub(super) fn of(passages: &[Arc<Passage>]) -> Self {
        let mut transcript = Self::default();
        let old = passages.len().saturating_sub(LAST_PASSAGES);
        passages[..old].iter().for_each(|passage| transcript.add(passage, ResultForm::OldAsStub));
        passages[old..].iter().for_each(|passage| transcript.add(passage, ResultForm::Shortened));
        transcript
    }

    fn add(&mut self, passage: &Passage, results: ResultForm) {
        if passage.role == Role::User {
            self.prompts.push(text_of(&passage.parts));
        }
        let speaker = match passage.role {
            Role::User => "User",
            Role::Assistant => "Agent",
            Role::System => "System",
        };
        self.text.push_str(&format!("\n[{speaker}]\n"));
        for part in &passage.parts {
            match part {
                Part::Text { text, .. } => self.line(&shortened(text, TEXT_BYTES)),
                Part::Tool(tool) => self.add_call(tool, results),
                Part::File { media_type, filename, .. } => {
                    self.line(&format!(
                        "(a file: {} {media_type})",
                        filename.as_deref().unwrap_or("unnamed")
                    ));
                }
                // The step before shows it, too.
                Part::Data { name, data, .. } if *name == DataName::Hook => {
                    let told = hooks::told_to_model(data).filter(|_| passage.role != Role::Assistant);
                    told.inspect(|text| self.line(&shortened(text, TEXT_BYTES)));
                }
                Part::Data { .. } => {
                    if let Some(text) = slash_commands::expansion(part) {
                        self.line(&shortened(text, TEXT_BYTES));
                    }
                }
                // Thoughts and our own marks tell the model that continues nothing.
                Part::StepStart
                | Part::Reasoning { .. }
                | Part::SourceUrl { .. }
                | Part::SourceDocument { .. } => {}
            }
        }
    }

    fn add_call(&mut self, tool: &ToolPart, results: ResultForm) {
        let arguments = tool.input.as_ref().map(ToString::to_string).unwrap_or_default();
        self.line(&format!("(calls {} {})", tool.tool_name, shortened(&arguments, ARGUMENT_BYTES)));
        // Shortens each text here, once: cutting a text that already has a mark would make the second mark
        // count wrongly.
        let result = match (&tool.error_text, &tool.output) {
            (Some(error), _) => format!("failed: {error}"),
            (None, Some(_)) if is_stubbed(tool, results) => return self.line(&stub(tool)),
            (None, Some(serde_json::Value::String(text))) => text.clone(),
            (None, Some(output)) => output.to_string(),
            (None, None) => return,
        };
        self.line(&format!("(result: {})", shortened(&result, RESULT_BYTES)));
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// The text in pieces, cut between lines where possible. Beyond `most` pieces the middle is left out.
    pub(super) fn pieces(&self, bytes: usize, most: usize) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = self.text.as_str();
        while !rest.is_empty() {
            let end = rest.floor_char_boundary(bytes.max(4));
            let whole = if end == rest.len() { None } else { rest[..end].rfind('\n') };
            let (piece, behind) = rest.split_at(whole.map_or(end, |line_end| line_end + 1));
            pieces.push(piece.to_owned());
            rest = behind;
        }
        if pieces.len() > most {
            let (first, last) = (most / 2, most - most / 2);
            let left_out = pieces.len() - most;
            pieces.drain(first..pieces.len() - last);
            pieces[first]
                .insert_str(0, &format!("({left_out} parts of the conversation are left out here)\n"));
        }
        pieces
    }

    /// What can be said without a model: the first prompt, and what the user has asked for since.
    pub(super) fn without_a_model(&self) -> String {
        let mut note =
            "(Nobody could summarise this part of the conversation. Ask the user where something is \
                        missing.)\n\n## What the user asked for\n"
                .to_owned();
        let first = self.prompts.first().map(|prompt| shortened(prompt, FIRST_PROMPT_BYTES));
        let later =
            self.prompts.iter().skip(1).rev().take(PROMPTS).map(|prompt| shortened(prompt, PROMPT_BYTES));
        let mut prompts: Vec<String> = later.collect();
        prompts.extend(first);
        prompts.iter().rev().for_each(|prompt| note.push_str(&format!("- {prompt}\n")));
        note
    }
}

/// A note followed by the facts that do not depend on a model's memory.
pub(super) fn handed_over(note: &str, state: &str, unanswered: Option<&str>) -> String {
    let mut text = format!("{}{state}", note.trim_end());
    if let Some(prompt) = unanswered {
        let prompt = shortened(prompt, TEXT_BYTES);
        text.push_str(&format!("\n\n## The user's prompt that you are working on\n{prompt}"));
    }
    text
}

/// The user's last prompt, as long as its work is not done.
pub(super) fn last_prompt(prompt: &str) -> String {
    format!(
        "\n\n## The user's last prompt (tasks of the list are still open)\n{}",
        shortened(prompt, TEXT_BYTES)
    )
}

fn is_stubbed(tool: &ToolPart, results: ResultForm) -> bool {
    let is_long = match &tool.output {
        Some(serde_json::Value::String(text)) => text.len() > OLD_RESULT_BYTES,
        Some(_) => true,
        None => false,
    };
    results == ResultForm::OldAsStub && is_long
}

/// The beginning and the end of a text.
fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.trim_end().to_owned();
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    format!("{}\n(… {} bytes …)\n{}", &text[..head], tail - head, text[tail..].trim_end())
}
