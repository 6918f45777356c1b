//! Questions to people: who sits in the session, who has been asked, and what an answer does.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use super::Session;
use super::lease::LeaseAfter;
use super::remains::Remains;
use super::run::Running;
use crate::events::RunState;
use crate::ports::Client;
use crate::ports::client::{About, Answer, Ask};
use crate::ports::delegate::Offers;
use crate::ports::store::{Change, LiveRun, SessionPatch};
use crate::turn::calls::Call;
use crate::turn::{Answered, Decision, Entrance, Turn, TurnEnd, TurnResult};
use crate::watchdog::{Action, Always};

/// A turn that waits for an answer, and the clients that have been asked.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) turn: Box<Turn>,
    pub(crate) live: LiveRun,
    pub(crate) ask: Arc<Ask>,
    /// With the seat that gave it.
    asked: JoinSet<(u64, Answer)>,
    /// Somebody was asked who has no way to answer; it counts when nobody else is left.
    unable: Option<u64>,
    /// By seat: who leaves can't answer any more.
    asked_at: HashMap<u64, AbortHandle>,
}

impl Asking {
    pub(crate) fn new(turn: Box<Turn>, live: LiveRun, ask: Arc<Ask>) -> Self {
        Self { turn, live, ask, asked: JoinSet::new(), unable: None, asked_at: HashMap::new() }
    }

    /// The next answer; for ever when nobody has been asked.
    pub(crate) async fn answered(&mut self) -> (u64, Answer) {
        loop {
            match self.asked.join_next().await {
                Some(Ok((seat, Answer::Unable))) => self.unable = Some(seat),
                Some(Ok(answer)) => return answer,
                // A client that panicked or left has not answered.
                Some(Err(_)) => {}
                None => match self.unable.take() {
                    Some(seat) => return (seat, Answer::Unsaid),
                    None => pending::<()>().await,
                },
            }
        }
    }

    /// An answer to another kind of question is none.
    fn fitting(&self, answer: Answer) -> Answer {
        match (&self.ask.about, answer) {
            (About::Permission { .. }, Answer::Said(_) | Answer::Unsaid | Answer::Unable) => {
                Answer::RejectOnce
            }
            (
                About::Questions(_),
                Answer::AllowOnce
                | Answer::AllowAlways
                | Answer::AllowEdits
                | Answer::RejectAlways
                | Answer::Unable,
            ) => Answer::Unsaid,
            (About::Permission { .. } | About::Questions(_), answer) => answer,
        }
    }

    /// What the session waits for.
    pub(crate) fn state(&self) -> RunState {
        match self.ask.about {
            About::Permission { .. } => RunState::WaitingOnApproval,
            About::Questions(_) => RunState::WaitingOnUserInput,
        }
    }

    fn ask(&mut self, seat: u64, client: &Arc<dyn Client>) {
        let question = client.ask(self.ask.clone());
        let withdraw = self.asked.spawn(async move { (seat, question.await) });
        self.asked_at.insert(seat, withdraw);
    }

    /// Whoever leaves is not asked any more.
    fn withdraw(&mut self, seat: u64) {
        if let Some(question) = self.asked_at.remove(&seat) {
            question.abort();
        }
    }
}

impl Session {
    pub(super) fn ask_everybody(&mut self) {
        let Some(asking) = self.activity.asking_mut() else { return };
        for (number, client) in self.seats.ready() {
            asking.ask(number, client);
        }
    }

    pub(super) fn seat_ready(&mut self, number: u64) {
        let Some(client) = self.seats.make_ready(number) else { return };
        if let Some(asking) = self.activity.asking_mut() {
            asking.ask(number, client);
        }
    }

    pub(super) fn seat_left(&mut self, number: u64) {
        self.seats.leave(number);
        if let Some(asking) = self.activity.asking_mut() {
            asking.withdraw(number);
        }
    }

    /// The first answer wins; the others' questions are withdrawn.
    pub(super) async fn take_answer(&mut self, seat: u64, answer: Answer) {
        let Some(asking) = self.activity.asking() else { return };
        let decision = match asking.fitting(answer) {
            Answer::Gone => return,
            Answer::Cancelled => {
                self.refuse_open_question("the user cancelled the turn", LeaseAfter::GiveBack).await;
                self.drain().await;
                return;
            }
            Answer::AllowOnce => Decision::Allow,
            Answer::Said(said) => Decision::Said(said),
            Answer::Unsaid | Answer::Unable => Decision::Unsaid,
            Answer::RejectOnce => Decision::Reject,
            Answer::AllowAlways => {
                self.remember(Action::Allow, Turn::always);
                Decision::Allow
            }
            Answer::AllowEdits => {
                self.remember(Action::Allow, Turn::always_edits);
                Decision::Allow
            }
            Answer::RejectAlways => {
                self.remember(Action::Deny, Turn::always);
                Decision::Reject
            }
        };
        let Some(Asking { mut turn, live, ask, .. }) = self.activity.take_asking() else { return };
        turn.rules = self.rulebook(&turn.setting);
        turn.granted = self.granted.clone().into();
        if !turn.client.as_ref().is_some_and(|client| client.offers() != Offers::default()) {
            // Whoever prompted is gone, or was before a restart: the one who answered takes their place.
            turn.client = self.seats.client(seat).and_then(|client| client.delegate());
        }
        let entrance = Entrance::Answered(Box::new(Answered { ask, decision }));
        self.activity.run(Running::start(turn, live, entrance));
        self.set_state(RunState::Busy);
    }

    /// Session rules as wide as what was asked for; they are stored before the answer is.
    fn remember(&mut self, action: Action, meaning: fn(&Turn, &Call) -> Option<Always>) {
        let Some(asking) = self.activity.asking() else { return };
        let call = asking.turn.calls.iter().find(|call| call.call_id == asking.ask.call_id);
        let Some(always) = call.and_then(|call| meaning(&asking.turn, call)) else { return };
        for rule in always.rules(action) {
            self.rules.add(rule);
        }
        let mut patch = SessionPatch {
            permissions: Some(self.rules.to_json()),
            updated_at: self.hub.parts.clock.now_ms(),
            ..SessionPatch::default()
        };
        if action == Action::Allow && !always.directories.is_empty() {
            self.granted.extend(always.directories);
            patch.metadata.set_granted_directories(&self.granted);
        }
        self.row.permissions = self.rules.to_json();
        if let Err(error) = self.journal.change(vec![Change::PatchSession(patch)]) {
            tracing::warn!(%error, "a permission rule could not be stored");
        }
    }

    /// Denies the open question, for this reason, and ends its turn as cancelled.
    pub(super) async fn refuse_open_question(&mut self, reason: &'static str, lease: LeaseAfter) {
        let Some(Asking { mut turn, live, ask, .. }) = self.activity.take_asking() else { return };
        let decision = Decision::End(reason);
        let result = turn.run(Entrance::Answered(Box::new(Answered { ask, decision }))).await;
        let remains = Remains::of(&turn);
        drop(turn);
        let end = match result {
            TurnResult::Ended(end) => end,
            TurnResult::Suspended(_) => TurnEnd::Aborted,
        };
        self.end_run(live, end, remains, lease).await;
    }
}
