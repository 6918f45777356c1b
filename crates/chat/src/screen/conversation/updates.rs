//! What the agent says, applied to what is known. Kinds of a newer protocol are passed over.

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Notice, NoticeSeverity, SessionUpdate,
};
use ratatui_core::text::Line;

use super::ScreenState;
use crate::screen::content;
use crate::screen::drawing::Drawing;
use crate::screen::intent::PromptName;
use crate::screen::theme::Tone;
use crate::screen::transcript::{BlockSpacing, TextKind};

impl ScreenState {
    pub(crate) fn update(&mut self, update: SessionUpdate) {
        if !matches!(update, SessionUpdate::UserMessageChunk(_)) {
            self.end_foreign_prompt();
        }
        let page = self.page();
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.said(TextKind::Answer, &chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.said(TextKind::Thought, &chunk),
            SessionUpdate::UserMessageChunk(chunk) => self.user_said(&chunk),
            SessionUpdate::ToolCall(call) => self.transcript.call(call, page),
            SessionUpdate::ToolCallUpdate(update) => self.transcript.update_call(update, page),
            SessionUpdate::Plan(plan) => self.plan = plan.entries,
            SessionUpdate::AvailableCommandsUpdate(update) => self.commands = update.available_commands,
            SessionUpdate::CurrentModeUpdate(update) => {
                if let Some(modes) = &mut self.facts.modes {
                    modes.current_mode_id = update.current_mode_id;
                }
            }
            SessionUpdate::ConfigOptionUpdate(update) => self.facts.options = update.config_options,
            SessionUpdate::SessionInfoUpdate(info) => match info.title {
                MaybeUndefined::Value(title) => self.title = Some(title),
                MaybeUndefined::Null => self.title = None,
                MaybeUndefined::Undefined => {}
            },
            SessionUpdate::UsageUpdate(usage) => self.facts.usage = Some(usage),
            SessionUpdate::Notice(notice) => self.notice(&notice),
            SessionUpdate::CompactionUpdate(update) => self.compaction(&update),
            // The summary is for the model; people see that there is one when it is done.
            SessionUpdate::CompactionSummaryChunk(_) => {}
            _ => {}
        }
    }

    fn said(&mut self, voice: TextKind, chunk: &ContentChunk) {
        let page = self.page();
        let id = chunk.message_id.as_ref().map(|id| &*id.0);
        match &chunk.content {
            ContentBlock::Text(text) => self.transcript.say(voice, id, &text.text, page),
            other => {
                let name = content::name_of(other).unwrap_or_default();
                let mut line = Line::from(page.theme.span(Tone::Quiet, page.theme.showable(&name)));
                line.spans.insert(0, ratatui_core::text::Span::raw(" ".repeat(page.indent)));
                let line = crate::screen::wrap::cut_line(line, page.width, page.theme.ellipsis());
                self.transcript.print(vec![line], BlockSpacing::Answer, page);
                if let ContentBlock::Image(image) = other
                    && let Some(drawing) = Drawing::of(image, page.theme.canvas, page.width)
                {
                    self.transcript.draw(drawing, page);
                }
            }
        }
    }

    /// A prompt of a load, or of another client of this session; pieces of one prompt are gathered.
    fn user_said(&mut self, chunk: &ContentChunk) {
        let name = chunk.message_id.as_ref().map(|id| PromptName(id.0.to_string()));
        let is_other = self.foreign_prompt.as_ref().is_some_and(|(last, _)| *last != name);
        if is_other {
            self.end_foreign_prompt();
        }
        let (_, text) = self.foreign_prompt.get_or_insert_with(|| (name, String::new()));
        text.push_str(&content::prompt_text(std::slice::from_ref(&chunk.content)));
    }

    pub(super) fn end_foreign_prompt(&mut self) {
        let Some((name, text)) = self.foreign_prompt.take() else { return };
        let page = self.page();
        self.transcript.end(page);
        self.transcript.prompt(&text, page);
        if let Some(name) = name {
            self.remember(name, text);
        }
    }

    /// A load is through: nothing of it changes any more.
    pub(crate) fn replayed(&mut self) {
        self.end_foreign_prompt();
        let page = self.page();
        self.transcript.end(page);
    }

    fn notice(&mut self, notice: &Notice) {
        let role = match notice.severity {
            NoticeSeverity::Error => Tone::Bad,
            NoticeSeverity::Warning => Tone::Warning,
            _ => Tone::Quiet,
        };
        let text = match &notice.description {
            Some(description) if !description.is_empty() => format!("{}: {description}", notice.title),
            _ => notice.title.clone(),
        };
        self.note(role, &text);
    }

    fn compaction(&mut self, update: &CompactionUpdate) {
        let error = match &update.error {
            MaybeUndefined::Value(error) => format!(": {error}"),
            MaybeUndefined::Null | MaybeUndefined::Undefined => String::new(),
        };
        let text = match update.status {
            CompactionStatus::InProgress => return self.hint("making room in the context"),
            CompactionStatus::Completed => "The conversation was summarised to make room.".to_owned(),
            CompactionStatus::Failed => format!("The conversation could not be summarised{error}"),
            CompactionStatus::Cancelled => "The summary was given up.".to_owned(),
            _ => return,
        };
        self.note(Tone::Quiet, &text);
    }
}
