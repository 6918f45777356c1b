//! Questions of a run: judged by rules and memory first, recorded, put to a person one after the other, and
//! what is decided recorded before the agent is told.

use std::collections::VecDeque;
use std::sync::Arc;

use attache_core::chunk::{Chunk, Rest, RestFields};
use attache_core::hub::People;
use attache_core::metadata::{EDITED, OWN_KEY, own};
use attache_core::part::{Part, ToolPart, ToolState};
use attache_core::ports::backend::{Answered, Decision, TurnContext};
use attache_core::ports::client::{
    About, Ask, CallArguments, Choice, Permission, Question, Selection, WhenAsked,
};
use attache_core::ports::tool::Presentation;
use attache_core::turn::foreign::RecordedDecision;
use attache_core::watchdog::{Action, Always};
use serde_json::{Map, Value, json};

use super::{ForeignTurn, Stop};
use crate::ForeignError;
use crate::agent::{Decided, RunAsk, RunAskAbout, RunDecision};

/// A question that is to be put, or is.
#[derive(Clone, Debug)]
pub(super) struct PendingAsk {
    pub(super) ask: Arc<Ask>,
    /// As rules name it.
    tool: String,
    /// What "always" means.
    pub(super) always: Option<Always>,
}

/// Marks a stored question about a call that takes other arguments.
const EDITABLE: &str = "editable";

/// Marks a stored question to which there is no "always".
const ONCE: &str = "once";

const REJECTED: &str = "the user rejected this call";
const NOBODY: &str = "no connected person can allow it";

impl ForeignTurn {
    /// Judges a question of the run. What a person has to decide waits until the run does.
    pub(super) async fn take_ask(&mut self, said: RunAsk) -> Result<(), Stop> {
        let call_id = self.answer.call(&said.call_id);
        let open = self.context.open_parts();
        let part = open.iter().filter_map(Part::tool).find(|tool| tool.call_id == call_id);
        let Some(part) = part else {
            let text = format!("the agent asks about the call {call_id}, which it never made");
            return Err(ForeignError::new(text).into());
        };
        let asked = self.asked(&said, part, said.approval_id.clone());
        self.answer.ask(&mut self.context, request_chunk(&asked, &said)).await?;
        let judged = match asked.ask.about {
            About::Permission(_) => self.context.judge_tool(&asked.tool).action,
            About::Questions(_) | About::ModeSwitch(_) => Action::Ask,
        };
        match judged {
            Action::Ask => self.waiting.push_back(asked),
            Action::Allow => self.decide(asked, RunDecision::Approve).await?,
            Action::Deny => {
                let refusal = self.context.judge_tool(&asked.tool).refusal;
                self.decide(asked, RunDecision::Reject(refusal)).await?;
            }
        }
        Ok(())
    }

    fn asked(&mut self, said: &RunAsk, part: &ToolPart, approval_id: Option<String>) -> PendingAsk {
        let approval_id = approval_id.unwrap_or_else(|| self.context.approval_id());
        let mut always = self.context.judge_tool(&said.tool).always;
        let about = match &said.about {
            RunAskAbout::Permission { description, arguments } => {
                let asked = permission(&mut self.context, &said.tool, description.as_deref());
                About::Permission(Permission { arguments: *arguments, ..asked })
            }
            RunAskAbout::Command { description } => {
                always = None;
                let asked = permission(&mut self.context, &said.tool, description.as_deref());
                About::Permission(Permission { rule_name: None, ..asked })
            }
            RunAskAbout::Questions(questions) => About::Questions(questions.as_slice().into()),
        };
        let presentation = said.presentation.clone().unwrap_or_else(|| presentation(part));
        let ask = ask_of(&self.context, part, AskWording { approval_id, presentation, about });
        PendingAsk { ask, tool: said.tool.clone(), always }
    }

    /// The next question for a person. It is stored before anybody sees it.
    pub(super) async fn next_question(&mut self) -> Result<Option<Arc<Ask>>, Stop> {
        while let Some(asked) = self.waiting.pop_front() {
            // An answer to the one before may be one to this, too.
            if let About::Permission(_) = asked.ask.about {
                let judged = self.context.judge_tool(&asked.tool);
                match judged.action {
                    Action::Ask => {}
                    Action::Allow => {
                        self.decide(asked, RunDecision::Approve).await?;
                        continue;
                    }
                    Action::Deny => {
                        self.decide(asked, RunDecision::Reject(judged.refusal)).await?;
                        continue;
                    }
                }
            }
            self.context.journal.settle().await?;
            let ask = asked.ask.clone();
            self.open = Some(asked);
            return Ok(Some(ask));
        }
        Ok(None)
    }

    /// A person has answered.
    pub(super) async fn answered(&mut self, answered: Answered) -> Result<Stop, Stop> {
        let Some(asked) = self.open.take() else { return Err(Stop::Aborted) };
        if let Some(client) = answered.client {
            self.context.client = Some(client);
        }
        let decision = match answered.decision {
            Decision::Allow => self.unless_denied(&asked, RunDecision::Approve),
            Decision::AllowEdited(arguments) => self.unless_denied(&asked, RunDecision::Edit(arguments)),
            Decision::Reject | Decision::RejectBecause(_) if self.context.people() != People::Present => {
                RunDecision::Reject(NOBODY.to_owned())
            }
            Decision::Reject => RunDecision::Reject(REJECTED.to_owned()),
            Decision::RejectBecause(words) => RunDecision::Reject(format!("{REJECTED}, and said: {words}")),
            Decision::Nobody => RunDecision::Reject(NOBODY.to_owned()),
            Decision::Said(said) => RunDecision::Answer(said),
            Decision::Unsaid | Decision::Unasked => RunDecision::Unanswered,
            Decision::End(reason) => {
                self.decide(asked, RunDecision::Reject(reason.to_owned())).await?;
                return Err(Stop::Aborted);
            }
        };
        self.decide(asked, decision).await?;
        match self.next_question().await? {
            Some(ask) => Ok(Stop::Asks(ask)),
            None => self.go_on().await,
        }
    }

    /// The rules may have become stricter while the question was open.
    fn unless_denied(&mut self, asked: &PendingAsk, decision: RunDecision) -> RunDecision {
        let judged = self.context.judge_tool(&asked.tool);
        match (judged.action, &asked.ask.about) {
            (Action::Deny, About::Permission(_)) => RunDecision::Reject(judged.refusal),
            (Action::Deny | Action::Allow | Action::Ask, _) => decision,
        }
    }

    /// Records what was decided; the agent is told with the rest of the round.
    async fn decide(&mut self, asked: PendingAsk, decision: RunDecision) -> Result<(), Stop> {
        let ask = &asked.ask;
        let reason = match &decision {
            RunDecision::Reject(reason) => Some(reason.as_str()),
            RunDecision::Approve
            | RunDecision::Edit(_)
            | RunDecision::Answer(_)
            | RunDecision::Unanswered => None,
        };
        let arguments = match &decision {
            RunDecision::Edit(arguments) => Some(arguments),
            RunDecision::Approve
            | RunDecision::Reject(_)
            | RunDecision::Answer(_)
            | RunDecision::Unanswered => None,
        };
        let recorded = RecordedDecision { ask, approved: reason.is_none(), reason, arguments };
        self.context.record_decision(&recorded).await?;
        if reason.is_some() {
            self.answer.deny(&mut self.context, ask.call_id.clone()).await?;
        }
        let (call_id, approval_id) = (ask.call_id.clone(), ask.approval_id.clone());
        let tool = ask.tool_name.clone();
        self.decided.push(Decided { call_id, approval_id, tool, decision });
        Ok(())
    }
}

fn permission(context: &mut TurnContext, tool: &str, description: Option<&str>) -> Permission {
    let judged = context.judge_tool(tool);
    let permission = context.permission_of(tool);
    let why = description.map_or(judged.why, str::to_owned);
    let rule_name = judged.always.as_ref().map(|always| always.name.clone());
    let rules = judged.always.as_ref().map(|_| format!("{permission}:*")).into_iter().collect();
    Permission { why, rule_name, rules, ..Permission::default() }
}

/// How a question is worded.
struct AskWording {
    approval_id: String,
    presentation: Presentation,
    about: About,
}

fn ask_of(context: &TurnContext, part: &ToolPart, wording: AskWording) -> Arc<Ask> {
    let AskWording { approval_id, presentation, about } = wording;
    Arc::new(Ask {
        session_id: context.setup.workspace.session_id.clone(),
        message_id: context.journal.message_id().clone(),
        call_id: part.call_id.clone(),
        approval_id,
        tool_name: part.tool_name.clone(),
        input: part.input.clone().unwrap_or_default(),
        presentation,
        about,
        when: WhenAsked::CallAsked,
        // All questions of a step are stored before the first is put.
        expected: Arc::default(),
    })
}

fn presentation(part: &ToolPart) -> Presentation {
    let stored = part.tool_metadata.as_ref().and_then(own);
    let title = stored.and_then(|stored| stored.get("title")?.as_str());
    let title = title.or(part.title.as_deref()).unwrap_or(&part.tool_name);
    Presentation { title: title.to_owned(), ..Presentation::default() }
}

/// The question as it is stored: with what it takes to put it again after a restart.
fn request_chunk(asked: &PendingAsk, said: &RunAsk) -> Chunk {
    let mut ours = Map::new();
    ours.insert("tool".into(), asked.tool.as_str().into());
    match &said.about {
        RunAskAbout::Permission { description, arguments } => {
            if let Some(description) = description {
                ours.insert("description".into(), description.as_str().into());
            }
            if *arguments == CallArguments::Editable {
                ours.insert(EDITABLE.into(), true.into());
            }
        }
        RunAskAbout::Command { description } => {
            ours.insert(ONCE.into(), true.into());
            if let Some(description) = description {
                ours.insert("description".into(), description.as_str().into());
            }
        }
        RunAskAbout::Questions(questions) => {
            ours.insert("questions".into(), questions.iter().map(question_json).collect());
        }
    }
    let mut fields: RestFields = said.rest.0.as_deref().cloned().unwrap_or_default();
    fields.unknown.insert(OWN_KEY.into(), Value::Object(ours));
    Chunk::ToolApprovalRequest {
        approval_id: asked.ask.approval_id.clone(),
        call_id: asked.ask.call_id.clone(),
        rest: Rest(Some(Box::new(fields))),
    }
}

/// What an earlier process asked in the step under way: what was decided, and what is open still.
pub(super) fn left_open(context: &TurnContext) -> (Vec<Decided>, VecDeque<PendingAsk>) {
    let (mut decided, mut waiting) = (Vec::new(), VecDeque::new());
    for part in context.open_parts() {
        let Part::Tool(part) = part else { continue };
        let Some(approval) = &part.approval else { continue };
        let ours = approval.unknown.get(OWN_KEY);
        if part.state == ToolState::ApprovalRequested {
            let tool = ours.and_then(|ours| ours.get("tool")?.as_str());
            let tool = tool.unwrap_or(&part.tool_name).to_owned();
            let mut judged = context.judge_tool_now(&tool);
            if ours.is_some_and(|ours| ours.get(ONCE).is_some()) {
                judged.always = None;
            }
            let about = match ours.and_then(|ours| ours.get("questions")?.as_array()) {
                Some(questions) => About::Questions(questions.iter().filter_map(question_of).collect()),
                None => About::Permission(Permission {
                    why: ours
                        .and_then(|ours| ours.get("description")?.as_str())
                        .map_or(judged.why, str::to_owned),
                    rule_name: judged.always.as_ref().map(|always| always.name.clone()),
                    rules: vec![format!("{}:*", context.permission_of(&tool))],
                    arguments: match ours.is_some_and(|ours| ours.get(EDITABLE).is_some()) {
                        true => CallArguments::Editable,
                        false => CallArguments::Fixed,
                    },
                    ..Permission::default()
                }),
            };
            let wording =
                AskWording { approval_id: approval.id.clone(), presentation: presentation(&part), about };
            let ask = ask_of(context, &part, wording);
            waiting.push_back(PendingAsk { ask, tool, always: judged.always });
            continue;
        }
        let decision = match approval.approved {
            Some(true) if ours.is_some_and(|ours| ours.get(EDITED).is_some()) => {
                RunDecision::Edit(part.input.clone().unwrap_or_default())
            }
            Some(true) => RunDecision::Approve,
            Some(false) => RunDecision::Reject(approval.reason.clone().unwrap_or_default()),
            None => continue,
        };
        let (call_id, approval_id) = (part.call_id.clone(), approval.id.clone());
        decided.push(Decided { call_id, approval_id, tool: part.tool_name.clone(), decision });
    }
    (decided, waiting)
}

fn question_json(question: &Question) -> Value {
    let choice = |choice: &Choice| json!({ "label": choice.label, "description": choice.description });
    json!({
        "text": question.text,
        "header": question.header,
        "choices": question.choices.iter().map(choice).collect::<Vec<_>>(),
        "several": question.selection == Selection::Several,
    })
}

fn question_of(stored: &Value) -> Option<Question> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let choices = stored.get("choices").and_then(Value::as_array);
    let choice = |choice: &Value| {
        Some(Choice { label: text(choice, "label")?, description: text(choice, "description") })
    };
    Some(Question {
        text: text(stored, "text")?,
        header: text(stored, "header"),
        choices: choices.into_iter().flatten().filter_map(choice).collect(),
        selection: match stored.get("several").and_then(Value::as_bool) {
            Some(true) => Selection::Several,
            Some(false) | None => Selection::One,
        },
    })
}
