//! What an agent says and asks while a run waits: words, calls, denials and notices, each to where it belongs.

use agent_client_protocol_schema::v1::{
    Notice, NoticeSeverity, SessionUpdate, ToolCallStatus, ToolCallUpdate,
};
use serde::Deserialize;

use super::denials::{DenialCause, DenialMarks, DeniedCall};
use super::end::Stopped;
use super::run::{OneRun, Stage};
use super::{SessionChoice, questions};
use crate::limits::KEPT_NOTICES;
use attache_acp_client::{ClientEvent, SessionNews};
use attache_rpc::ErrorObject;

/// A call under way.
#[derive(Debug, Default)]
pub(super) struct CallUnderWay {
    tool: String,
    title: String,
    is_told: bool,
}

impl OneRun<'_> {
    pub(super) fn take(&mut self, event: ClientEvent) -> Result<(), Stopped> {
        match event {
            ClientEvent::Update(news) => self.update(&news),
            ClientEvent::Permission(question) => {
                self.asked.insert(question.request.tool_call.tool_call_id.clone());
                let denied = questions::deny(*question);
                self.console.progress(&format!("denied: {} ({})", denied.title, denied.why));
                self.collected.denied.push(denied);
                Ok(())
            }
            ClientEvent::Elicitation(question) => {
                question.decline();
                Ok(())
            }
            ClientEvent::Call(call) => {
                call.refuse(ErrorObject::method_not_found("files and terminals are not offered"));
                Ok(())
            }
            ClientEvent::Skipped(what) => {
                self.console.progress(&what);
                Ok(())
            }
            // The request that waits fails with the same.
            ClientEvent::Ended(_) | ClientEvent::PromptEnded { .. } | ClientEvent::ElicitationDone(_) => {
                Ok(())
            }
        }
    }

    fn update(&mut self, news: &SessionNews) -> Result<(), Stopped> {
        let is_ours = self.collected.session_id.as_ref().is_none_or(|ours| *ours == news.session_id);
        if let Some(SessionUpdate::ConfigOptionUpdate(changed)) = news.update.as_ref().filter(|_| is_ours) {
            self.collected.learn_model(&changed.config_options);
        }
        match (self.stage, &news.update) {
            (Stage::Opening | Stage::Opened, Some(SessionUpdate::Notice(notice))) => self.early(notice),
            (Stage::Opening | Stage::Opened, Some(update)) => self.collected.recall(update),
            (Stage::Opening | Stage::Opened, None) => {}
            (Stage::Prompted, update) => {
                self.printed.update(news.raw.get(), self.console)?;
                if let (Some(update), true) = (update, is_ours) {
                    self.say(update)?;
                }
            }
        }
        Ok(())
    }

    /// A notice from before the prompt: what a load repeats is of another run.
    fn early(&mut self, notice: &Notice) {
        #[derive(Default, Deserialize)]
        struct TransientMark {
            #[serde(default)]
            transient: bool,
        }
        let is_new = self.stage == Stage::Opened || self.task.session == SessionChoice::New;
        if is_new || questions::own_marks::<TransientMark>(notice.meta.as_ref()).transient {
            self.notice(notice);
        }
    }

    /// People read it beside the answer; programs find it in the object.
    fn notice(&mut self, notice: &Notice) {
        let line = self.collected.noticed(notice);
        match notice.severity {
            // It usually is the failure of the run, which is reported at its end.
            NoticeSeverity::Error if self.failures.len() < KEPT_NOTICES => self.failures.push(line),
            NoticeSeverity::Error => {}
            _ => self.console.remark(&line),
        }
    }

    /// A call as it is known by now; what was denied counts.
    fn call(&mut self, update: &ToolCallUpdate) {
        let fields = &update.fields;
        let known = self.calls.entry(update.tool_call_id.clone()).or_default();
        if let Some(title) = &fields.title {
            known.title.clone_from(title);
        }
        if let Some(name) = &fields.name {
            known.tool.clone_from(name);
        }
        // The first update has the whole title; later ones add nothing.
        if !known.title.is_empty() && !std::mem::replace(&mut known.is_told, true) {
            self.console.progress(&known.title);
        }
        if !matches!(fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed)) {
            return;
        }
        let known = self.calls.remove(&update.tool_call_id).unwrap_or_default();
        let marks: DenialMarks = questions::own_marks(update.meta.as_ref());
        // What we denied ourselves is listed already.
        let was_asked = self.asked.remove(&update.tool_call_id);
        let denied = marks.denied.filter(|_| !was_asked).map(|why| DeniedCall {
            tool: known.tool,
            title: known.title,
            why,
            rules: Vec::new(),
            cause: DenialCause::Forbidden,
        });
        let below = marks.denied_within.into_iter().map(DeniedCall::from);
        for denied in denied.into_iter().chain(below) {
            self.console.progress(&format!("denied: {} ({})", denied.title, denied.why));
            self.collected.denied.push(denied);
        }
    }

    fn say(&mut self, update: &SessionUpdate) -> Result<(), Stopped> {
        self.collected.note(update);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let text = self.collected.said(chunk);
                self.printed.words(&text, self.console)?;
            }
            SessionUpdate::ToolCall(call) => {
                let tool = call.name.clone().unwrap_or_else(|| questions::kind(call.kind).to_owned());
                let known = CallUnderWay { tool, title: call.title.clone(), is_told: false };
                self.calls.insert(call.tool_call_id.clone(), known);
            }
            SessionUpdate::ToolCallUpdate(call) => self.call(call),
            SessionUpdate::Notice(notice) => self.notice(notice),
            _ => {}
        }
        match (self.task.max_cost.as_ref(), self.collected.cost()) {
            (Some(limit), Some(cost)) if cost >= limit.dollars => Err(Stopped::Cost(limit.dollars)),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }
}
