//! Questions of the agent: shown above, answered in a dialog, one at a time. What the answer is, `permission`
//! and `form` know.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, ElicitationMode, ElicitationSchema, RequestPermissionRequest, ToolKind,
};

use super::{Front, ScreenState, WaitingQuestion};
use crate::screen::form::FormDialog;
use crate::screen::intent::{Intent, QuestionNumber, RingReason};
use crate::screen::markdown;
use crate::screen::permission::PermissionDialog;
use crate::screen::transcript::BlockSpacing;

impl ScreenState {
    /// The agent asks whether a call may run.
    pub(crate) fn ask_permission(&mut self, question: QuestionNumber, request: RequestPermissionRequest) {
        self.asked.push_back(WaitingQuestion::Permission(question, Box::new(request)));
        self.intents.push(Intent::Ring(RingReason::Question));
        self.open_next_question();
    }

    /// The agent has a form to fill in, or an address to visit.
    pub(crate) fn ask_form(&mut self, question: QuestionNumber, request: CreateElicitationRequest) {
        self.asked.push_back(WaitingQuestion::Form(question, Box::new(request)));
        self.intents.push(Intent::Ring(RingReason::Question));
        self.open_next_question();
    }

    /// A question is void: answered elsewhere, or its turn has ended.
    pub(crate) fn withdraw(&mut self, question: QuestionNumber) {
        self.asked.retain(|asked| match asked {
            WaitingQuestion::Permission(number, _) | WaitingQuestion::Form(number, _) => *number != question,
        });
        let is_open = match &self.front {
            Front::Permission { question: open, .. } | Front::Form { question: open, .. } => {
                *open == question
            }
            Front::Composer | Front::Menu(_) | Front::Pages(_) => false,
        };
        if is_open {
            self.close_question();
        }
    }

    pub(super) fn close_question(&mut self) {
        if let Front::Permission { call, .. } = &self.front {
            let call = call.clone();
            self.transcript.answered(&call);
        }
        self.front = Front::Composer;
        self.open_next_question();
    }

    /// One question at a time; a menu or a page is closed before.
    pub(super) fn open_next_question(&mut self) {
        if !matches!(self.front, Front::Composer) {
            return;
        }
        self.front = match self.asked.pop_front() {
            None => return,
            Some(WaitingQuestion::Permission(question, request)) => self.permission_front(question, *request),
            Some(WaitingQuestion::Form(question, request)) => self.form_front(question, &request),
        };
    }

    fn permission_front(&mut self, question: QuestionNumber, request: RequestPermissionRequest) -> Front {
        let page = self.page();
        let call = request.tool_call.tool_call_id.0.to_string();
        let title = match self.transcript.ask(request.tool_call, page) {
            Some(ToolKind::Execute) => "Run this command?",
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => "Make this change?",
            Some(_) | None => "Allow this?",
        };
        let dialog = PermissionDialog::new(title.to_owned(), request.options, self.now, self.last_typed);
        Front::Permission { question, call, dialog }
    }

    fn form_front(&mut self, question: QuestionNumber, request: &CreateElicitationRequest) -> Front {
        let page = self.page();
        let mut lines = markdown::render(&request.message, page);
        let dialog = match &request.mode {
            ElicitationMode::Form(form) => FormDialog::new(&form.requested_schema),
            ElicitationMode::Url(url) => {
                lines.extend(markdown::render(&format!("\n<{}>\n", url.url), page));
                FormDialog::new(&ElicitationSchema::new())
            }
            _ => FormDialog::new(&ElicitationSchema::new()),
        };
        // A single question is in its own dialog.
        if !dialog.is_only(&request.message) {
            self.transcript.print(lines, BlockSpacing::Note, page);
        }
        Front::Form { question, dialog }
    }
}
