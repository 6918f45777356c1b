//! Questions of a turn to a person: records each before any client shows it, and applies the answer to the
//! call.

use std::sync::Arc;

use super::call::{Call, CallState, Grant, Planned};
use super::gate::Gate;
use super::results::{approval, finished, said, switched_to};
use super::{StepStop, Turn};
use crate::chunk::{Chunk, Rest};
use crate::hub::People;
use crate::limits::REJECTION_CHARS;
use crate::ports::backend::{Answered, Decision, SwitchedMode};
use crate::ports::client::{About, Ask, ModeProposal, WhenAsked};
use crate::ports::store::Change;
use crate::ports::tool::WriteGrant;
use crate::watchdog::{Action, Commands, Judged};

/// The result of a call whose questions the user declined to answer.
const UNSAID: &str = "question: the user declined to answer. Use your judgement, say what you assumed, and go on; if you can't \
                      go on without an answer, ask in your text and end your turn";
const UNASKED: &str = "question: nobody was asked, because this editor can't show these questions: without forms it shows only \
                       those with one to four options, of which one is the answer. Ask in your text and end your turn, or use \
                       your judgement and say what you assumed";

/// The result of a call that the user rejected.
fn rejection(about: &About) -> &'static str {
    match about {
        About::Permission(_) => "the user rejected this call",
        About::Questions(_) => {
            "the user chose none of the options; ask in your text and end your turn if you need an answer"
        }
        About::ModeSwitch(_) => {
            "the user does not want this yet, and the mode stays as it is. Ask in your text what is to be different, and end \
             your turn"
        }
    }
}

/// The same with the person's own words, if there are any.
fn rejection_with(about: &About, decision: &Decision) -> String {
    let text = rejection(about);
    match decision {
        Decision::RejectBecause(words) => {
            let words: String = words.chars().take(REJECTION_CHARS).collect();
            format!("{text}, and said: {words}")
        }
        Decision::Allow
        | Decision::AllowEdited(_)
        | Decision::Reject
        | Decision::Said(_)
        | Decision::Unsaid
        | Decision::Unasked
        | Decision::Nobody
        | Decision::End(_) => text.to_owned(),
    }
}

/// The same if no person could be asked; `planned` is the call as far as it is understood.
fn nobody(about: &About, planned: Option<&Planned>) -> String {
    match about {
        About::Permission(permission) => {
            let refusal = nobody_allows(&permission.why);
            planned.map_or_else(|| refusal.clone(), |planned| planned.untouched(&refusal))
        }
        About::Questions(_) => {
            "no connected person can answer; use your judgement and say what you assumed, or ask in your text and end \
             your turn"
                .to_owned()
        }
        About::ModeSwitch(_) => "no connected person can switch the mode".to_owned(),
    }
}

/// Why a call does not run that a person would have to allow if there is no person.
pub(super) fn nobody_allows(why: &str) -> String {
    format!("refused because {why}; no connected person can allow it")
}

impl Turn {
    /// A call with questions for a person does not run, unless there is no person: then its tool says what that
    /// means.
    pub(super) fn gate_of_questions(&self, call: &Call, planned: &Planned, judged: Judged) -> Gate {
        let questions = &planned.plan.questions;
        match self.hub.ports.settings.people {
            People::Present if !questions.is_empty() => {
                let about = About::Questions(questions.as_slice().into());
                Gate::Ask(self.ask_about(call, self.approval_id(call), about))
            }
            People::Present | People::Absent | People::OnlyAProgram => {
                let Judged { grants: directories, network, writes, .. } = judged;
                Gate::Open(Grant { directories, network, writes })
            }
        }
    }

    /// The user decides about the mode: a person is asked whatever the approval level is.
    pub(super) fn gate_of_proposal(&self, call: &Call, planned: &Planned) -> Gate {
        match (self.proposal(planned), self.hub.ports.settings.people) {
            (Some(proposal), People::Present) => {
                let about = About::ModeSwitch(proposal);
                Gate::Ask(self.ask_about(call, self.approval_id(call), about))
            }
            (Some(_), People::Absent | People::OnlyAProgram) => {
                Gate::Refused("no connected person can switch the mode".to_owned())
            }
            (None, _) => Gate::Refused("this session has no other mode to switch to".to_owned()),
        }
    }

    /// The agent that a call proposes, if the session has it.
    pub(super) fn proposal(&self, planned: &Planned) -> Option<ModeProposal> {
        let agent = self.setup.agents.primary(planned.plan.proposes.as_deref()?)?;
        Some(ModeProposal { agent: agent.id.clone(), name: agent.name.clone() })
    }

    pub(super) fn ask_about(&self, call: &Call, approval_id: String, about: About) -> Arc<Ask> {
        Arc::new(Ask {
            session_id: self.setup.workspace.session_id.clone(),
            message_id: self.author.message_id.clone(),
            call_id: call.call_id.clone(),
            approval_id,
            tool_name: call.tool_name.clone(),
            input: call.input.clone(),
            presentation: call.presentation(),
            about,
            when: WhenAsked::CallAsked,
            expected: Arc::default(),
        })
    }

    pub(super) async fn record_ask(&self, ask: &Ask) -> Result<(), StepStop> {
        self.record(Chunk::ToolApprovalRequest {
            approval_id: ask.approval_id.clone(),
            call_id: ask.call_id.clone(),
            rest: Rest::none(),
        })
        .await?;
        // The question must be stored before any client shows it: after a crash it is asked again.
        self.journal.settle().await?;
        Ok(())
    }

    /// Records the answer before acting on it.
    pub(super) async fn take_answer(&mut self, answered: Answered) -> Result<(), StepStop> {
        let Answered { ask, decision, switched, .. } = answered;
        let index = self.calls.iter().position(|call| call.call_id == ask.call_id);
        let (action, reason) = self.meaning(&decision, &ask.about, index);
        if let (About::Permission(_) | About::ModeSwitch(_), Some(index)) = (&ask.about, index) {
            // If no person answered, no person decided.
            if decision != Decision::Nobody {
                let asked = self.calls[index].decision.take();
                self.calls[index].decision = asked.map(|asked| asked.answered(action));
            }
            self.tell_answered(index);
        }
        let verdict = index.and_then(|index| self.calls[index].decision.as_ref());
        let answer = approval(&ask, action, reason.as_deref(), verdict);
        match switched {
            Some(switched) => self.go_on_as(switched, answer)?,
            None => self.record(answer).await?,
        }
        let Some(index) = index else { return Ok(()) };
        if action != Action::Allow {
            let denial = self.calls[index].denial(&reason.unwrap_or_default());
            self.settle(index, denial).await?;
            return match decision {
                Decision::End(_) => Err(StepStop::Aborted),
                Decision::Allow
                | Decision::AllowEdited(_)
                | Decision::Reject
                | Decision::RejectBecause(_)
                | Decision::Said(_)
                | Decision::Unsaid
                | Decision::Unasked
                | Decision::Nobody => Ok(()),
            };
        }
        let call = &self.calls[index];
        let result = match (&decision, &ask.about) {
            (Decision::Said(answers), About::Questions(questions)) => {
                finished(self, call, said(call, questions, answers)).await?
            }
            (Decision::Allow, About::ModeSwitch(proposal)) => {
                finished(self, call, switched_to(call, proposal)).await?
            }
            (Decision::Unsaid, About::Questions(_)) => call.failure(UNSAID),
            (Decision::Unasked, About::Questions(_)) => call.failure(UNASKED),
            (
                Decision::Allow
                | Decision::AllowEdited(_)
                | Decision::Reject
                | Decision::RejectBecause(_)
                | Decision::Said(_)
                | Decision::Unsaid
                | Decision::Unasked
                | Decision::Nobody
                | Decision::End(_),
                About::Permission(_) | About::Questions(_) | About::ModeSwitch(_),
            ) => return self.let_run(index).await,
        };
        self.settle(index, result).await
    }

    /// Whether the call may run, and what the model is told if not.
    fn meaning(&self, decision: &Decision, about: &About, index: Option<usize>) -> (Action, Option<String>) {
        let planned = index.and_then(|index| self.calls[index].planned());
        match decision {
            Decision::Allow | Decision::Said(_) | Decision::Unsaid | Decision::Unasked => {
                (Action::Allow, None)
            }
            // Calls of the loop run as their model made them: other arguments are never offered for them.
            Decision::Reject | Decision::RejectBecause(_) | Decision::AllowEdited(_) => {
                let text = match self.hub.ports.settings.people {
                    People::Present => rejection_with(about, decision),
                    People::Absent | People::OnlyAProgram => nobody(about, planned),
                };
                let text = match index {
                    Some(index) => self.calls[index].warned(&text),
                    None => text,
                };
                (Action::Deny, Some(text))
            }
            Decision::Nobody => (Action::Deny, Some(nobody(about, planned))),
            Decision::End(reason) => (Action::Deny, Some((*reason).to_owned())),
        }
    }

    /// Another agent continues the turn. The new agent, the stored row and the chunk for clients change
    /// together.
    fn go_on_as(&mut self, switched: SwitchedMode, answer: Chunk) -> Result<(), StepStop> {
        let SwitchedMode { setup, patch, told } = switched;
        let changes = vec![Change::PatchSession(patch)];
        self.journal.record_with(&self.author, vec![answer, told], changes)?;
        self.permissions.go_on_as(setup.agent.clone());
        self.setup = setup;
        Ok(())
    }

    /// A person has allowed the call.
    async fn let_run(&mut self, index: usize) -> Result<(), StepStop> {
        let Some(planned) = self.calls[index].planned() else { return Ok(()) };
        let judged = self.judged(planned);
        // Rules may have become stricter while the question was open, above all across a restart.
        if judged.verdict.action == Action::Deny {
            let refusal = planned.untouched(&self.refusal(&judged.verdict));
            self.calls[index].decision = Some(judged.verdict);
            let failure = self.calls[index].failure(&refusal);
            return self.settle(index, failure).await;
        }
        if let Some(problem) = &planned.plan.problem {
            let failure = self.calls[index].failure(problem);
            return self.settle(index, failure).await;
        }
        if let Some(refusal) = self.ask_hooks_again(index).await? {
            let failure = self.calls[index].failure(&refusal);
            return self.settle(index, failure).await;
        }
        let Some(planned) = self.calls[index].planned() else { return Ok(()) };
        let network = judged.network_once_allowed(&planned.plan.accesses);
        let writes = match self.permissions.commands() {
            Commands::Any => WriteGrant::Granted,
            Commands::OnlyReading => judged.writes,
        };
        let grant = Grant { directories: judged.grants, network, writes };
        self.calls[index].state = CallState::Allowed(grant);
        Ok(())
    }
}
