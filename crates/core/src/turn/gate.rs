//! Whether a call may run and where: the watchdog judges it, and makes a question if a person has to decide.
//! `answer` handles the answers.

use std::path::PathBuf;
use std::sync::Arc;

use super::Turn;
use super::answer::nobody_allows;
use super::call::{Call, CallPlan, Grant, Planned};
use crate::hub::People;
use crate::ports::client::{About, Ask, CallArguments, Permission};
use crate::ports::delegate::Offers;
use crate::ports::tool::{Access, Effect, Site};
use crate::watchdog::{
    Action, Always, EDIT, HostContainment, Judged, Matter, READ, READING_COMMANDS_RUN, Reason, Scope,
    Verdict, escaped,
};

/// What happens to a call before it runs.
pub(super) enum Gate {
    Open(Grant),
    Ask(Arc<Ask>),
    /// Refused, with the answer to the model.
    Refused(String),
}

impl Planned {
    fn matter(&self) -> Matter<'_> {
        let spec = self.tool.spec();
        Matter { tool: self.tool.permission(), effect: spec.effect, accesses: &self.plan.accesses }
    }

    /// Makes clear in a refusal that no part of the call was done.
    pub(super) fn untouched(&self, refusal: &str) -> String {
        let runs = self.plan.accesses.iter().any(|access| matches!(access, Access::Command(_)));
        match (runs, self.tool.spec().effect) {
            (true, _) => format!("{refusal}. Nothing was run"),
            (false, Effect::Mutates) => format!("{refusal}. Nothing was changed"),
            (false, Effect::ReadOnly | Effect::SessionOnly) => refusal.to_owned(),
        }
    }
}

impl Turn {
    fn containment(&self) -> &HostContainment {
        &self.hub.ports.settings.containment
    }

    pub(super) fn judged(&self, planned: &Planned) -> Judged {
        let judged = self.permissions.judged(self.containment(), &planned.matter());
        match (&planned.plan.proposes, judged.verdict.action) {
            (Some(_), Action::Allow) => {
                let reason = Reason::Default { why: "the mode is the user's to switch".to_owned() };
                Judged { verdict: Verdict { action: Action::Ask, reason }, ..judged }
            }
            (Some(_), Action::Ask | Action::Deny) | (None, _) => judged,
        }
    }

    /// Checks capabilities, then rules. Records only the reason.
    pub(super) fn gate(&mut self, index: usize) -> Gate {
        self.permissions.refresh();
        let call = &self.calls[index];
        let planned = match &call.plan {
            CallPlan::Made(planned) => planned,
            CallPlan::Failed(text) => return Gate::Refused(text.clone()),
            CallPlan::Later => {
                return Gate::Refused("internal error: the call was not understood".to_owned());
            }
        };
        let judged = self.judged(planned);
        let verdict = judged.verdict.clone();
        let gate = match (verdict.action, self.hub.ports.settings.people) {
            (Action::Ask, _) if planned.plan.proposes.is_some() => self.gate_of_proposal(call, planned),
            (Action::Allow, _) => match &planned.plan.problem {
                Some(problem) => Gate::Refused(problem.clone()),
                None => self.gate_of_questions(call, planned, judged),
            },
            (Action::Deny, _) => Gate::Refused(planned.untouched(&self.refusal(&verdict))),
            (Action::Ask, People::Absent) => {
                Gate::Refused(planned.untouched(&nobody_allows(&verdict.why_asked())))
            }
            (Action::Ask, People::Present | People::OnlyAProgram) => {
                let about = self.about_permission(call, judged);
                Gate::Ask(self.ask_about(call, self.approval_id(call), about))
            }
        };
        self.calls[index].decision = Some(verdict);
        gate
    }

    /// Whether a call would ask a person for permission if its turn had come. Hooks are not asked: they run
    /// once, and then.
    pub(super) fn would_ask(&self, plan: &CallPlan) -> bool {
        let CallPlan::Made(planned) = plan else { return false };
        let asks = self.judged(planned).verdict.action == Action::Ask;
        match self.hub.ports.settings.people {
            People::Present | People::OnlyAProgram => asks && planned.plan.proposes.is_none(),
            People::Absent => false,
        }
    }

    /// What the question of a call is known by.
    pub(super) fn approval_id(&self, call: &Call) -> String {
        call.approval_id.clone().unwrap_or_else(|| self.hub.ports.ids.approval())
    }

    /// What a call is told that may not run; an agent's own rules refuse in its own words.
    pub(super) fn refusal(&self, verdict: &Verdict) -> String {
        match (&self.setup.agent.instead, &verdict.reason) {
            (Some(instead), Reason::Rule { scope: Scope::Manifest, .. }) => {
                format!("denied: nothing is changed {instead}")
            }
            (instead, Reason::Default { why }) if why.ends_with(READING_COMMANDS_RUN) => {
                format!("{} {}", verdict.refusal(), instead.as_deref().unwrap_or("for this agent"))
            }
            (Some(_) | None, _) => verdict.refusal(),
        }
    }

    /// The question that an earlier process left open, for the call as it is understood now.
    pub(super) fn question_again(&self, call: &mut Call, approval_id: String) -> Arc<Ask> {
        let judged = call.planned().map(|planned| self.judged(planned));
        call.decision = judged.as_ref().map(|judged| judged.verdict.clone());
        let proposal = call.planned().and_then(|planned| self.proposal(planned));
        let about = match (call.planned(), judged) {
            (Some(planned), _) if !planned.plan.questions.is_empty() => {
                About::Questions(planned.plan.questions.as_slice().into())
            }
            (Some(_), Some(judged)) => {
                proposal.map_or_else(|| self.about_permission(call, judged), About::ModeSwitch)
            }
            (None, Some(judged)) => self.about_permission(call, judged),
            (_, None) => About::Permission(Permission {
                why: "the call can no longer be understood".to_owned(),
                ..Permission::default()
            }),
        };
        self.ask_about(call, approval_id, about)
    }

    pub(super) fn about_permission(&self, call: &Call, judged: Judged) -> About {
        let always = self.always_like(call);
        let rules = always.as_ref().map(|always| self.typed(always)).unwrap_or_default();
        let rule_name = always.map(|always| always.name);
        let edits_name = self.always_edits(call).map(|always| always.name);
        let why = judged.verdict.why_asked();
        let (outside, arguments) = (judged.outside, CallArguments::Fixed);
        About::Permission(Permission { why, rule_name, rules, edits_name, outside, arguments })
    }

    /// The rules of an "always" answer as people type them, with short paths in the workspace.
    fn typed(&self, always: &Always) -> Vec<String> {
        let root = format!("{}/", escaped(&self.setup.workspace.root.to_string_lossy()));
        let rules = always.rules(Action::Allow).into_iter();
        let typed = rules.map(|rule| {
            let names_paths = rule.permission == READ || rule.permission == EDIT;
            let below = rule.pattern.strip_prefix(&root).filter(|rest| names_paths && !rest.starts_with('~'));
            format!("{}:{}", rule.permission, below.unwrap_or(&rule.pattern))
        });
        typed.collect()
    }

    /// What an "always" answer about this call means; `None` if it would have no effect.
    pub(super) fn always_like(&self, call: &Call) -> Option<Always> {
        self.permissions.always(self.containment(), &call.planned()?.matter())
    }

    /// The same for an answer that covers all edits.
    pub(super) fn always_edits(&self, call: &Call) -> Option<Always> {
        self.permissions.always_edits(self.containment(), &call.planned()?.matter())
    }

    /// Where calls are understood: in the workspace and the directories granted to the session.
    pub(super) fn site(&self) -> Site {
        // A client that offers nothing (any more) counts as none.
        let client = self.client.clone().filter(|client| client.offers() != Offers::default());
        let workspace = self.setup.workspace.clone();
        let closed = self.permissions.read_rules();
        let (granted, seen) = (self.permissions.granted().clone(), self.seen.clone());
        Site { workspace, granted, judged: None, writes: Arc::default(), closed, client, seen }
    }

    /// Where one call works: also in the directories granted to it alone. A process could write in every
    /// directory that it is granted, so of the session's directories it gets only the writable ones.
    pub(super) fn site_of(&self, planned: &Planned, to_call: &[PathBuf]) -> Site {
        let runs_commands = planned.plan.accesses.iter().any(|access| matches!(access, Access::Command(_)));
        let of_session = match runs_commands {
            true => self.permissions.writable(self.containment()),
            false => self.permissions.granted().to_vec(),
        };
        let granted = of_session.iter().chain(to_call).cloned().collect();
        let judged = planned.plan.accesses.iter().filter_map(|access| match access {
            Access::ReadPath(path) | Access::WritePath(path) => Some(path.clone()),
            Access::Command(_) | Access::Network { .. } => None,
        });
        let writes = planned.plan.accesses.iter().filter_map(|access| match access {
            Access::WritePath(path) => Some(path.clone()),
            Access::ReadPath(_) | Access::Command(_) | Access::Network { .. } => None,
        });
        Site { granted, judged: Some(judged.collect()), writes: writes.collect(), ..self.site() }
    }
}
