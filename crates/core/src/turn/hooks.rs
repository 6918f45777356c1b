//! Runs hooks during a turn: before a call runs, before a person is asked, after a call, at the end, and before
//! a summary. A session without hooks never gets here.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::call::{Call, Hooked, Planned};
use super::gate::Gate;
use super::snapshots::CallSnapshots;
use super::{StepStop, Turn};
use crate::hooks::{self, HookDecision, HookEvent, HookMatter, HookMoment, HookSurroundings, HookWord};
use crate::hooks::{Hooks, HooksSaid, MatterOfCall, ask_hooks, has_any};
use crate::hub::People;
use crate::limits::HOOK_CONTINUATIONS;
use crate::notice;
use crate::part::Part;
use crate::ports::client::About;
use crate::ports::compaction::Occasion;
use crate::ports::tool::{Site, ToolOutcome, WriteGrant};
use crate::prompt;
use crate::turn::call::Grant;
use crate::watchdog::{Action, Commands, PatternBase, Reason, Verdict};

/// The hooks of a turn and their state.
#[derive(Debug, Default)]
pub(crate) struct TurnHooks {
    all: Hooks,
    /// The positions of hooks whose failure people were told of. Why a lock: calls run at the same time.
    told: Mutex<HashSet<usize>>,
    /// Why the turn ends after this step. Set at most once.
    stop: OnceLock<HookWord>,
    /// How often a hook made the turn continue.
    continued: u32,
}

/// Whether the turn continues after its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtTheEnd {
    GoesOn,
    Ends,
}

impl TurnHooks {
    pub(crate) fn new(all: Hooks) -> Self {
        Self { all, ..Self::default() }
    }

    pub(super) fn are_for(&self, event: HookEvent) -> bool {
        has_any(&self.all, event)
    }
}

impl Turn {
    /// Whether a call may run, after the hooks for calls and for questions ran.
    pub(super) async fn hooked_gate(&mut self, index: usize, gate: Gate) -> Result<Gate, StepStop> {
        let gate = match (gate, self.hooks.are_for(HookEvent::BeforeTool)) {
            (gate @ (Gate::Open(_) | Gate::Ask(_)), true) => self.before_tool(index, gate).await?,
            // It is refused only because there is no person to ask.
            (gate @ Gate::Refused(_), true) if self.asks_by_default(index) => {
                self.before_tool(index, gate).await?
            }
            (gate, _) => gate,
        };
        match (gate, self.hooks.are_for(HookEvent::Permission)) {
            (gate @ Gate::Ask(_), true) => self.before_asking(index, gate).await,
            (gate, _) => Ok(gate),
        }
    }

    async fn before_tool(&mut self, index: usize, gate: Gate) -> Result<Gate, StepStop> {
        let Some(said) = self.ask_before_tool(index).await? else { return Ok(gate) };
        if let Some(word) = said.against() {
            return Ok(self.refused_by(index, &word));
        }
        Ok(match (said.decision, gate) {
            (Some((HookDecision::Ask, word)), Gate::Open(_)) => self.asked_for(index, word),
            // Recorded, so that no other hook can drop this question.
            (Some((HookDecision::Ask, word)), Gate::Ask(_)) if self.asks_by_default(index) => {
                self.asked_for(index, word)
            }
            (Some((HookDecision::Allow, word)), gate @ (Gate::Ask(_) | Gate::Refused(_))) => {
                self.allowed_by(index, word, gate)
            }
            (_, gate) => gate,
        })
    }

    /// `None` if the call can't be understood.
    async fn ask_before_tool(&mut self, index: usize) -> Result<Option<HooksSaid>, StepStop> {
        let call = &self.calls[index];
        let Some(planned) = call.planned() else { return Ok(None) };
        let matter = HookMatter::BeforeTool(matter_of(call, planned));
        let said = self.asked(HookEvent::BeforeTool, matter).await?;
        said.context.iter().for_each(|word| call.note(&word.text));
        self.calls[index].hooked = Hooked::Asked;
        Ok(Some(said))
    }

    /// After a person allowed a call that an earlier process asked about: runs its hooks, which have not seen
    /// it in this process. Returns the refusal if they object.
    pub(super) async fn ask_hooks_again(&mut self, index: usize) -> Result<Option<String>, StepStop> {
        if self.calls[index].hooked == Hooked::Asked || !self.hooks.are_for(HookEvent::BeforeTool) {
            return Ok(None);
        }
        let said = self.ask_before_tool(index).await?.unwrap_or_default();
        let Some(word) = said.against() else { return Ok(None) };
        match self.refused_by(index, &word) {
            Gate::Refused(text) => Ok(Some(text)),
            Gate::Open(_) | Gate::Ask(_) => Ok(None),
        }
    }

    async fn before_asking(&mut self, index: usize, gate: Gate) -> Result<Gate, StepStop> {
        let Gate::Ask(ask) = &gate else { return Ok(gate) };
        let why = match &ask.about {
            About::Permission(permission) => permission.why.clone(),
            About::Questions(_) => "it has a question".to_owned(),
            About::ModeSwitch(_) => "it proposes another mode".to_owned(),
        };

        let call = &self.calls[index];
        let Some(planned) = call.planned() else { return Ok(gate) };
        let matter = HookMatter::Permission(matter_of(call, planned), &why);
        let said = self.asked(HookEvent::Permission, matter).await?;
        said.context.iter().for_each(|word| call.note(&word.text));
        if let Some(word) = said.against() {
            return Ok(self.refused_by(index, &word));
        }
        Ok(match said.decision {
            Some((HookDecision::Allow, word)) => self.allowed_by(index, word, gate),
            Some((HookDecision::Ask, _)) | None => gate,
        })
    }

    fn refused_by(&mut self, index: usize, word: &HookWord) -> Gate {
        let call = &mut self.calls[index];
        call.decision = Some(verdict(Action::Deny, word));
        let refusal = format!("denied by a hook: {}", word.text.trim_end_matches('.'));
        Gate::Refused(call.planned().map_or_else(|| refusal.clone(), |planned| planned.untouched(&refusal)))
    }

    /// Makes a question of a call that would have passed.
    fn asked_for(&mut self, index: usize, word: HookWord) -> Gate {
        let Some(planned) = self.calls[index].planned() else {
            return Gate::Refused("not understood".into());
        };
        let mut judged = self.judged(planned);
        judged.verdict = verdict(Action::Ask, &word);
        let refusal = planned.untouched("a hook wants a person to decide, but no person is connected");
        self.calls[index].decision = Some(judged.verdict.clone());
        match self.hub.ports.settings.people {
            People::Present | People::OnlyAProgram => {
                let call = &self.calls[index];
                let about = self.about_permission(call, judged);
                Gate::Ask(self.ask_about(call, self.approval_id(call), about))
            }
            People::Absent => Gate::Refused(refusal),
        }
    }

    /// A user's own hook can allow a call that asks only by default. A call still asks because of a rule, a
    /// place outside, a command that can't be understood, or too little containment.
    fn allowed_by(&mut self, index: usize, word: HookWord, gate: Gate) -> Gate {
        if !self.asks_by_default(index) {
            return gate;
        }
        let Some(planned) = self.calls[index].planned() else { return gate };
        // Only a person can answer questions and change the mode.
        if planned.plan.proposes.is_some() || !planned.plan.questions.is_empty() {
            return gate;
        }
        let judged = self.judged(planned);
        if let Some(problem) = &planned.plan.problem {
            return Gate::Refused(problem.clone());
        }
        let writes = match self.permissions.commands() {
            Commands::Any => WriteGrant::Granted,
            Commands::OnlyReading => judged.writes,
        };
        let grant = Grant { directories: judged.grants, network: judged.network, writes };
        self.calls[index].decision = Some(verdict(Action::Allow, &word));
        Gate::Open(grant)
    }

    /// Whether the call asks only by default: neither a rule nor, so far, a hook decided.
    fn asks_by_default(&self, index: usize) -> bool {
        let Some(planned) = self.calls[index].planned() else { return false };
        let by_default = |verdict: &Verdict| {
            verdict.action == Action::Ask && matches!(verdict.reason, Reason::Default { .. })
        };
        let as_decided = self.calls[index].decision.as_ref().is_some_and(by_default);
        as_decided && by_default(&self.judged(planned).verdict)
    }

    /// Runs hooks after a call and before its result is recorded: what they say becomes part of the result.
    pub(super) async fn after_tool(
        &self,
        call: &Call,
        planned: &Planned,
        outcome: &ToolOutcome,
        snapshots: Option<&CallSnapshots>,
    ) {
        if self.cancel.is_cancelled() || !self.hooks.are_for(HookEvent::AfterTool) {
            return;
        }
        let matter = HookMatter::AfterTool(matter_of(call, planned), outcome);
        let said = self.hear(HookEvent::AfterTool, matter).await;
        if let (Some(snapshots), Some(files), 1..) = (snapshots, &self.hub.ports.files, said.asked) {
            snapshots.look_again(&**files, self.site()).await;
        }
        said.context.iter().for_each(|word| call.note(&word.text));
        if let Some(word) = &said.block {
            call.note(&word.text);
            let title = format!("A hook objects to what {} did", call.tool_name);
            self.tell("warning", &title, word);
        }
    }

    /// The model has no more calls. A hook that objects to the end gives it one more step.
    pub(super) async fn at_turn_end(&mut self) -> Result<AtTheEnd, StepStop> {
        let event = match self.permissions.has_sessions_above() {
            true => HookEvent::SubagentEnd,
            false => HookEvent::TurnEnd,
        };
        if !self.hooks.are_for(event) || self.steering.is_wanted() {
            return Ok(AtTheEnd::Ends);
        }
        let said = self.journal.with_fold(|fold| {
            let parts: Vec<Part> = fold.reducer().parts().map(Cow::into_owned).collect();
            prompt::text_of(&parts)
        });
        let said = said.unwrap_or_default();
        let matter = HookMatter::TurnEnd { continued: self.hooks.continued, said: &said };
        let said = self.asked(event, matter).await?;
        let Some(word) = said.block.filter(|_| said.stop.is_none()) else { return Ok(AtTheEnd::Ends) };
        if self.hooks.continued == HOOK_CONTINUATIONS {
            let title = format!("The turn ends, although a hook was against it {HOOK_CONTINUATIONS} times");
            self.tell("warning", &title, &word);
            return Ok(AtTheEnd::Ends);
        }
        self.hooks.continued += 1;
        self.record(hooks::word_chunk(event, &word.hook, &word.text)).await?;
        Ok(AtTheEnd::GoesOn)
    }

    /// Runs hooks before a summary; returns why there is none if the user asked for it and a hook objects. A
    /// summary that is necessary is made in any case.
    pub(super) async fn before_compaction(&self, occasion: &Occasion) -> Result<Option<String>, StepStop> {
        if !self.hooks.are_for(HookEvent::Compaction) {
            return Ok(None);
        }
        let keep = match occasion {
            Occasion::Overflow => None,
            Occasion::Command { keep } => Some(keep.as_str()),
        };
        let said = self.asked(HookEvent::Compaction, HookMatter::Compaction { keep }).await?;
        match (said.against(), keep) {
            (Some(word), Some(_)) => Ok(Some(word.text)),
            (Some(word), None) => {
                self.tell("warning", "A hook is against the summary, which has to be made", &word);
                Ok(None)
            }
            (None, _) => Ok(None),
        }
    }

    /// Ends a turn that a hook wants to end, with a notice.
    pub(super) fn stopped_by_hook(&self) -> AtTheEnd {
        match self.hooks.stop.get() {
            None => AtTheEnd::GoesOn,
            Some(word) => {
                self.tell("warning", "A hook ended the turn", word);
                AtTheEnd::Ends
            }
        }
    }

    /// Runs hooks for a moment that is void if the turn is cancelled.
    async fn asked(&self, event: HookEvent, matter: HookMatter<'_>) -> Result<HooksSaid, StepStop> {
        let said = self.hear(event, matter).await;
        if said.cancelled { Err(StepStop::Aborted) } else { Ok(said) }
    }

    /// Runs the hooks of a moment and shows people their messages.
    async fn hear(&self, event: HookEvent, matter: HookMatter<'_>) -> HooksSaid {
        let Some(runner) = &self.hub.ports.hooks else { return HooksSaid::default() };
        let workspace = &self.setup.workspace;
        let around = HookSurroundings {
            session_id: &workspace.session_id,
            ground: PatternBase { root: &workspace.root, home: workspace.guarded.home() },
            agent: &self.setup.agent.id,
            approval: self.permissions.approval(),
        };
        let moment = HookMoment { event, matter, around, site: Site::of_roots(workspace.clone()) };
        let said = ask_hooks(&self.hooks.all, &**runner, moment, &self.cancel).await;
        for (place, word) in &said.failed {
            let is_news = self.hooks.told.lock().unwrap_or_else(PoisonError::into_inner).insert(*place);
            if is_news {
                self.tell("warning", &format!("A hook failed ({})", event.as_str()), word);
            }
        }
        said.messages.iter().for_each(|word| self.tell("info", "A hook says", word));
        if let Some(word) = &said.stop {
            // Only the first one counts.
            drop(self.hooks.stop.set(word.clone()));
        }
        said
    }

    /// Stores a notice for people with the answer.
    fn tell(&self, severity: &str, title: &str, word: &HookWord) {
        let description = format!("`{}`: {}", word.hook, word.text);
        let said = notice::kept(severity, title, Some(&description));
        if let Err(error) = self.journal.record_with(&self.author, vec![said], Vec::new()) {
            // If recording fails here, the turn's next record fails, too, and ends it.
            tracing::debug!(%error, "a notice about a hook was lost");
        }
    }
}

impl HooksSaid {
    /// The hook that objects; one that ends the turn objects, too.
    fn against(&self) -> Option<HookWord> {
        self.block.clone().or_else(|| self.stop.clone())
    }
}

fn matter_of<'a>(call: &'a Call, planned: &'a Planned) -> MatterOfCall<'a> {
    MatterOfCall {
        call_id: &call.call_id,
        tool: &planned.tool.spec().id,
        input: &call.input,
        accesses: &planned.plan.accesses,
    }
}

fn verdict(action: Action, word: &HookWord) -> Verdict {
    Verdict { action, reason: Reason::Hook { hook: word.hook.clone(), why: word.text.clone() } }
}
