//! Questions to people: which clients are asked, and what an answer does.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::authority::AuthorityState;
use super::lease::LeaseAfter;
use super::lineage::Lineage;
use super::run::{Running, TurnHandle};
use super::{Session, SessionCommand};
use crate::chunk::Chunk;
use crate::command_templates::TurnChoice;
use crate::data_name::DataName;
use crate::events::RunState;
use crate::ports::Client;
use crate::ports::backend::{
    AlwaysScope, Answered, BackendTurn, Decision, SwitchedMode, TurnLeftovers, TurnResult, TurnStart,
};
use crate::ports::client::{About, Answer, Ask, CallArguments};
use crate::ports::store::Change;
use crate::spans::end_run_span;
use crate::turn::TurnEnd;
use crate::watchdog::Action;

/// A turn that waits for an answer, and the clients that have been asked.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) turn: Box<dyn BackendTurn>,
    pub(crate) handle: TurnHandle,
    pub(crate) ask: Arc<Ask>,
    /// Each answer with the participant that gave it.
    asked: JoinSet<(u64, Answer)>,
    /// A client that has no way to answer; this counts once no other client is left.
    unable: Option<u64>,
    /// By participant: who leaves can't answer any more.
    asked_at: HashMap<u64, CancellationToken>,
}

impl OpenQuestion {
    pub(crate) fn new(turn: Box<dyn BackendTurn>, handle: TurnHandle, ask: Arc<Ask>) -> Self {
        Self { turn, handle, ask, asked: JoinSet::new(), unable: None, asked_at: HashMap::new() }
    }

    /// The next answer; waits indefinitely if no client has been asked.
    pub(crate) async fn answered(&mut self) -> (u64, Answer) {
        loop {
            match self.asked.join_next().await {
                Some(Ok((participant, Answer::Unable))) => self.unable = Some(participant),
                Some(Ok(answer)) => return answer,
                // A client that panicked or left has not answered.
                Some(Err(_)) => {}
                None => match self.unable.take() {
                    Some(participant) => return (participant, Answer::Unable),
                    None => pending::<()>().await,
                },
            }
        }
    }

    /// Ignores an answer that fits another kind of question.
    fn fitting(&self, answer: Answer) -> Answer {
        match (&self.ask.about, answer) {
            (About::Permission(asked), answer @ Answer::AllowEdited(_)) => match asked.arguments {
                CallArguments::Editable => answer,
                CallArguments::Fixed => Answer::RejectOnce,
            },
            (About::Permission(_), Answer::Said(_) | Answer::Unsaid | Answer::Unable) => Answer::RejectOnce,
            (
                About::Questions(_),
                Answer::AllowOnce
                | Answer::AllowEdited(_)
                | Answer::AllowAlways
                | Answer::AllowEdits
                | Answer::RejectBecause(_)
                | Answer::RejectAlways,
            ) => Answer::Unsaid,
            (
                About::ModeSwitch(_),
                Answer::AllowEdited(_)
                | Answer::AllowAlways
                | Answer::AllowEdits
                | Answer::RejectAlways
                | Answer::Said(_)
                | Answer::Unsaid
                | Answer::Unable,
            ) => Answer::RejectOnce,
            (About::Permission(_) | About::Questions(_) | About::ModeSwitch(_), answer) => answer,
        }
    }

    /// The state that shows what the session waits for.
    pub(crate) fn state(&self) -> RunState {
        match self.ask.about {
            About::Permission(_) => RunState::WaitingOnApproval,
            About::Questions(_) | About::ModeSwitch(_) => RunState::WaitingOnUserInput,
        }
    }

    fn ask(&mut self, participant: u64, client: &Arc<dyn Client>) {
        let withdrawn = CancellationToken::new();
        let question = until_withdrawn(client, self.ask.clone(), withdrawn.clone());
        self.asked.spawn(async move { (participant, question.await) });
        self.asked_at.insert(participant, withdrawn);
    }

    /// Withdraws the question from a participant that leaves.
    fn withdraw(&mut self, participant: u64) {
        if let Some(question) = self.asked_at.remove(&participant) {
            question.cancel();
        }
    }
}

/// Who answers and leaves at once has answered: what there is by then counts.
pub(super) fn until_withdrawn(
    client: &Arc<dyn Client>,
    ask: Arc<Ask>,
    withdrawn: CancellationToken,
) -> impl Future<Output = Answer> + Send + 'static {
    let question = client.ask(ask);
    async move {
        tokio::select! {
            biased;
            answer = question => answer,
            () = withdrawn.cancelled() => Answer::Gone,
        }
    }
}

impl Session {
    pub(super) fn ask_everybody(&mut self) {
        let Some(asking) = self.activity.asking_mut() else { return };
        for (number, client) in self.participants.ready() {
            asking.ask(number, client);
        }
    }

    pub(super) fn participant_ready(&mut self, number: u64) {
        self.begin_to_know();
        let Some(client) = self.participants.make_ready(number) else { return };
        if let Some(asking) = self.activity.asking_mut() {
            asking.ask(number, client);
        }
        self.ask_child_questions(number);
    }

    pub(super) fn participant_left(&mut self, number: u64) {
        self.participants.leave(number);
        if let Some(asking) = self.activity.asking_mut() {
            asking.withdraw(number);
        }
        self.withdraw_child_questions(number);
    }

    /// The first answer wins; withdraws the question from the others.
    pub(super) async fn take_answer(&mut self, participant: u64, answer: Answer) {
        let Some(asking) = self.activity.asking() else { return };
        let decision = match asking.fitting(answer) {
            Answer::Gone => return,
            Answer::Cancelled => {
                self.refuse_open_question("the user cancelled the turn", LeaseAfter::GiveBack).await;
                self.go_on().await;
                return;
            }
            Answer::AllowOnce => Decision::Allow,
            Answer::AllowEdited(arguments) => Decision::AllowEdited(arguments),
            Answer::Said(said) => Decision::Said(said),
            Answer::Unsaid => Decision::Unsaid,
            Answer::Unable => Decision::Unasked,
            Answer::Nobody => Decision::Nobody,
            Answer::RejectOnce => Decision::Reject,
            Answer::RejectBecause(words) => Decision::RejectBecause(words),
            Answer::AllowAlways => {
                self.remember(Action::Allow, AlwaysScope::Call);
                Decision::Allow
            }
            Answer::AllowEdits => {
                self.remember(Action::Allow, AlwaysScope::Edits);
                Decision::Allow
            }
            Answer::RejectAlways => {
                self.remember(Action::Deny, AlwaysScope::Call);
                Decision::Reject
            }
        };
        let Some(open) = self.activity.take_asking() else { return };
        let OpenQuestion { turn, mut handle, ask, mut asked, .. } = open;
        // Withdraws the question from the others before any client sees the call run.
        asked.shutdown().await;
        let client = self.participants.client(participant).and_then(|client| client.delegate());
        let (decision, switched) = self.switch_mode(&ask, decision);
        if let Some(switched) = &switched {
            handle.setup = switched.setup.clone();
        }
        let answered = Answered { ask, decision, client, switched };
        self.activity.run(Running::start(turn, handle, TurnStart::Answered(Box::new(answered))));
        self.set_state(RunState::Busy);
    }

    /// If a person agreed to another mode, the session and the current turn have it from here on. If that mode
    /// is not available, the answer counts as a refusal.
    fn switch_mode(&mut self, ask: &Ask, decision: Decision) -> (Decision, Option<SwitchedMode>) {
        let (About::ModeSwitch(proposal), Decision::Allow) = (&ask.about, &decision) else {
            return (decision, None);
        };
        let before = self.row.metadata.clone();
        self.row.metadata.set_mode(&proposal.agent);
        let switched = self.setup(&TurnChoice::default()).and_then(|setup| Ok((setup, self.chosen()?)));
        match switched {
            Ok((setup, chosen)) => {
                let mut patch = self.empty_patch();
                patch.metadata.set_mode(&proposal.agent);
                let told = Chunk::transient_data(DataName::Mode, chosen.to_json());
                (decision, Some(SwitchedMode { setup, patch, told }))
            }
            Err(error) => {
                tracing::warn!(%error, agent = %proposal.agent, "the mode could not be switched");
                self.row.metadata = before;
                (Decision::Reject, None)
            }
        }
    }

    /// Stores a rule before its answer; a rule from a child's question goes to the session at the top, whose
    /// people answered.
    fn remember(&mut self, action: Action, scope: AlwaysScope) {
        let Some(asking) = self.activity.asking() else { return };
        let Some(always) = asking.turn.always(&asking.ask, scope) else { return };
        self.authority.remember(&always, action);
        match &self.lineage {
            Lineage::Root | Lineage::Lost(_) => self.store_authority(),
            Lineage::Child(child) => self.hub.tell(&child.root, SessionCommand::StoreAuthority),
        }
    }

    /// Stores what answers allow by now.
    fn store_authority(&mut self) {
        let AuthorityState { rules, granted, .. } = self.authority.get();
        let mut patch = self.empty_patch();
        patch.permissions = Some(rules.to_json());
        if granted != self.row.metadata.granted_directories() {
            patch.metadata.set_granted_directories(&granted);
            self.row.metadata.set_granted_directories(&granted);
        }
        self.row.permissions = rules.to_json();
        self.keep_ruled_tools(&rules, &mut patch.metadata);
        if let Err(error) = self.journal.change(vec![Change::PatchSession(patch)]) {
            tracing::warn!(%error, "a permission rule could not be stored");
        }
    }

    /// The same for an answer to a child's question.
    pub(super) async fn store_authority_of_child(&mut self) {
        match self.take_lease().await {
            Ok(()) => self.store_authority(),
            Err(error) => tracing::warn!(%error, "a permission rule could not be stored"),
        }
        self.go_on().await;
    }

    /// Denies the open question with this reason, and ends its turn as cancelled.
    pub(super) async fn refuse_open_question(&mut self, reason: &'static str, lease: LeaseAfter) {
        let Some(OpenQuestion { mut turn, handle, ask, .. }) = self.activity.take_asking() else { return };
        let pending_approval = match &ask.about {
            About::Permission(_) | About::ModeSwitch(_) => Some(ask.call_id.clone()),
            About::Questions(_) => None,
        };
        let answered = Answered { ask, decision: Decision::End(reason), client: None, switched: None };
        let span = handle.begin_run_span();
        let result = turn.run(TurnStart::Answered(Box::new(answered))).await;
        end_run_span(span, &result);
        let end = match result {
            TurnResult::Ended(end) => end,
            TurnResult::Suspended(_) => TurnEnd::Aborted,
        };
        let leftovers = TurnLeftovers { pending_approval, ..turn.leftovers() };
        self.end_run(handle.live, end, leftovers, lease).await;
    }
}
