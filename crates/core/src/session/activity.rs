//! The activity of a session: idle, running a turn, waiting for an answer, or following a turn of another
//! process. One at a time, with only the transitions below.

use std::future::pending;

use super::ask::OpenQuestion;
use super::run::{Returned, Running};
use crate::events::RunState;
use crate::ports::client::Answer;
use crate::ports::store::LiveRun;

#[derive(Debug, Default)]
pub(crate) struct Activity(Doing);

#[derive(Debug, Default)]
enum Doing {
    #[default]
    Idle,
    /// In a task of its own.
    Running(Running),
    /// The turn is suspended; the first answer lets it continue.
    OpenQuestion(OpenQuestion),
    /// Another process owns the session; we read its log.
    Following(LiveRun),
}

/// An event of the activity itself.
#[derive(Debug)]
pub(crate) enum Happened {
    /// The turn's task has ended.
    Returned(Returned),
    /// The participant's number, and its answer.
    Answered(u64, Answer),
}

impl Activity {
    /// The current turn, here or elsewhere.
    pub(crate) fn live_run(&self) -> Option<&LiveRun> {
        match &self.0 {
            Doing::Idle => None,
            Doing::Running(running) => Some(&running.handle.live),
            Doing::OpenQuestion(asking) => Some(&asking.handle.live),
            Doing::Following(live) => Some(live),
        }
    }

    /// Whether this process runs or holds the current turn.
    pub(crate) fn is_ours(&self) -> bool {
        match &self.0 {
            Doing::Running(_) | Doing::OpenQuestion(_) => true,
            Doing::Idle | Doing::Following(_) => false,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.asking().is_some()
    }

    pub(crate) fn is_following(&self) -> bool {
        match &self.0 {
            Doing::Following(_) => true,
            Doing::Idle | Doing::Running(_) | Doing::OpenQuestion(_) => false,
        }
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        match &self.0 {
            Doing::Running(running) => Some(running),
            Doing::Idle | Doing::OpenQuestion(_) | Doing::Following(_) => None,
        }
    }

    pub(crate) fn asking(&self) -> Option<&OpenQuestion> {
        match &self.0 {
            Doing::OpenQuestion(asking) => Some(asking),
            Doing::Idle | Doing::Running(_) | Doing::Following(_) => None,
        }
    }

    pub(crate) fn asking_mut(&mut self) -> Option<&mut OpenQuestion> {
        match &mut self.0 {
            Doing::OpenQuestion(asking) => Some(asking),
            Doing::Idle | Doing::Running(_) | Doing::Following(_) => None,
        }
    }

    /// The next event; waits indefinitely if no turn of ours is live.
    pub(crate) async fn next(&mut self) -> Happened {
        match &mut self.0 {
            Doing::Running(running) => Happened::Returned(running.returned().await),
            Doing::OpenQuestion(asking) => {
                let (participant, answer) = asking.answered().await;
                Happened::Answered(participant, answer)
            }
            Doing::Idle | Doing::Following(_) => pending().await,
        }
    }

    /// Waits for the turn to return; indefinitely if none runs.
    pub(crate) async fn returned(&mut self) -> Returned {
        match &mut self.0 {
            Doing::Running(running) => running.returned().await,
            Doing::Idle | Doing::OpenQuestion(_) | Doing::Following(_) => pending().await,
        }
    }

    /// A turn begins, or continues after an answer.
    pub(crate) fn run(&mut self, running: Running) {
        self.0 = Doing::Running(running);
    }

    /// A turn returned with a question.
    pub(crate) fn ask(&mut self, asking: OpenQuestion) -> RunState {
        let state = asking.state();
        self.0 = Doing::OpenQuestion(asking);
        state
    }

    /// Sets what another process runs, if anything. A turn of ours stays: its next write will show that it lost
    /// the lease.
    pub(crate) fn follow(&mut self, live: Option<LiveRun>) {
        match (&self.0, live) {
            (Doing::Running(_) | Doing::OpenQuestion(_), _) => {}
            (Doing::Idle | Doing::Following(_), Some(live)) => self.0 = Doing::Following(live),
            (Doing::Idle | Doing::Following(_), None) => self.0 = Doing::Idle,
        }
    }

    /// The turn is over or suspended: changes from running to idle.
    pub(crate) fn take_running(&mut self) -> Option<Running> {
        match std::mem::take(&mut self.0) {
            Doing::Running(running) => Some(running),
            other @ (Doing::Idle | Doing::OpenQuestion(_) | Doing::Following(_)) => {
                self.0 = other;
                None
            }
        }
    }

    /// The question has an answer: changes from asking to idle.
    pub(crate) fn take_asking(&mut self) -> Option<OpenQuestion> {
        match std::mem::take(&mut self.0) {
            Doing::OpenQuestion(asking) => Some(asking),
            other @ (Doing::Idle | Doing::Running(_) | Doing::Following(_)) => {
                self.0 = other;
                None
            }
        }
    }

    /// The store was read again, so the state in memory is void. Withdraws open questions; one that is still
    /// stored is asked again.
    pub(crate) fn forget(&mut self) {
        self.0 = Doing::Idle;
    }
}
