//! Going elsewhere: back to an earlier prompt, to another session, to one from the list.

use agent_client_protocol_schema::v1::{ContentBlock, SessionInfo};

use super::{Front, MenuRow, ScreenState};
use crate::screen::intent::PromptName;
use crate::screen::picker::{Mark, MenuChoice, Picker};
use crate::screen::theme::Tone;

impl ScreenState {
    /// A rewind went through: the prompt is in the composer again.
    pub(crate) fn rewound(&mut self, name: &PromptName, prompt: &[ContentBlock], told: &str) {
        self.past.truncate(self.past.iter().position(|(past, _)| past == name).unwrap_or(self.past.len()));
        self.composer.take_over(prompt);
        self.note(Tone::Warning, told);
    }

    /// The sessions that can be opened.
    pub(crate) fn offer_sessions(&mut self, sessions: Vec<SessionInfo>) {
        if sessions.is_empty() {
            self.hint("no earlier session in this directory");
            return;
        }
        let row = |session: SessionInfo| MenuChoice {
            label: session.title.clone().unwrap_or_else(|| session.session_id.0.to_string()),
            hint: session.updated_at.clone().unwrap_or_default().replace('T', " ").chars().take(16).collect(),
            value: MenuRow::Session(Box::new(session)),
            mark: Mark::Other,
        };
        self.front = Front::Menu(Picker::new("Open a session", sessions.into_iter().map(row).collect()));
    }

    /// Another session, or the same one anew: nothing of the one before holds.
    pub(crate) fn begin_session(&mut self) {
        let page = self.page();
        self.transcript.end(page);
        self.under_way.clear();
        self.past.clear();
        self.plan.clear();
        self.since = None;
        self.title = None;
        self.facts.usage = None;
    }
}
