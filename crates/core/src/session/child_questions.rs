//! Questions of children to the people of the session: any number at once; for each, the first answer counts.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::ask::until_withdrawn;
use super::choose::aside;
use crate::chunk::Chunk;
use crate::data_name::DataName;
use crate::events::{EventKind, RunState};
use crate::ids::CallId;
use crate::ports::Client;
use crate::ports::client::{About, Answer, Ask, WhenAsked};
use crate::task::relay::ChildQuestion;

#[derive(Debug, Default)]
pub(crate) struct ChildQuestions {
    open: Vec<OpenChildQuestion>,
}

#[derive(Debug)]
struct OpenChildQuestion {
    ask: Arc<Ask>,
    is_waited_for: bool,
    reply: oneshot::Sender<Answer>,
    /// Each answer with the participant that gave it.
    asked: JoinSet<(u64, Answer)>,
    /// By participant: who leaves can't answer any more.
    asked_at: HashMap<u64, CancellationToken>,
    /// Those that have no way to put it.
    unable: usize,
}

impl ChildQuestions {
    /// The next answer to any of them; waits indefinitely if no client has been asked.
    pub(super) async fn answered(&mut self) -> (CallId, u64, Answer) {
        poll_fn(|context| {
            for question in &mut self.open {
                // A client that panicked or left has not answered.
                while let Poll::Ready(Some(answered)) = question.asked.poll_join_next(context) {
                    if let Ok((participant, answer)) = answered {
                        return Poll::Ready((question.ask.call_id.clone(), participant, answer));
                    }
                }
            }
            Poll::Pending
        })
        .await
    }

    /// What the current turn waits for, if one of its calls waits for a child that asks.
    pub(super) fn state(&self) -> Option<RunState> {
        let waited_for = self.open.iter().find(|question| question.is_waited_for)?;
        Some(match waited_for.ask.about {
            About::Permission(_) | About::ModeSwitch(_) => RunState::WaitingOnApproval,
            About::Questions(_) => RunState::WaitingOnUserInput,
        })
    }

    fn ask(&mut self, index: usize, participant: u64, client: &Arc<dyn Client>) {
        let question = &mut self.open[index];
        let withdrawn = CancellationToken::new();
        let answer = until_withdrawn(client, question.ask.clone(), withdrawn.clone());
        question.asked.spawn(async move { (participant, answer.await) });
        question.asked_at.insert(participant, withdrawn);
    }

    fn position(&self, call_id: &CallId) -> Option<usize> {
        self.open.iter().position(|question| question.ask.call_id == *call_id)
    }

    /// Removes a question that is over, and withdraws it from all clients.
    async fn take(&mut self, call_id: &CallId) -> Option<OpenChildQuestion> {
        let mut question = self.open.remove(self.position(call_id)?);
        question.asked.shutdown().await;
        Some(question)
    }
}

impl Session {
    pub(super) async fn ask_for_child(&mut self, question: ChildQuestion) {
        let ChildQuestion { call_id, label, ask, is_waited_for, reply } = question;
        let mut ask = Ask { session_id: self.id.clone(), call_id, ..(*ask).clone() };
        let title = match ask.presentation.title.is_empty() {
            true => &ask.tool_name,
            false => &ask.presentation.title,
        };
        ask.presentation.title = format!("{label}: {title}");
        ask.when = WhenAsked::Shown(self.show_asked_call(&ask, "pending").await);
        if let About::Permission(_) = ask.about {
            self.publish(EventKind::ApprovalRequested { call_id: ask.call_id.clone() });
        }
        let (ask, asked, asked_at) = (Arc::new(ask), JoinSet::new(), HashMap::new());
        let questions = &mut self.children.questions;
        questions.open.push(OpenChildQuestion { ask, is_waited_for, reply, asked, asked_at, unable: 0 });
        let last = questions.open.len() - 1;
        for (number, client) in self.participants.ready() {
            questions.ask(last, number, client);
        }
        self.tell_waiting();
    }

    /// Asks a participant that has just become ready.
    pub(super) fn ask_child_questions(&mut self, number: u64) {
        let Some(client) = self.participants.client(number) else { return };
        for index in 0..self.children.questions.open.len() {
            self.children.questions.ask(index, number, client);
        }
    }

    /// Withdraws the questions from a participant that leaves.
    pub(super) fn withdraw_child_questions(&mut self, number: u64) {
        for question in &mut self.children.questions.open {
            if let Some(asked) = question.asked_at.remove(&number) {
                asked.cancel();
            }
        }
    }

    /// The first answer wins and goes to the child.
    pub(super) async fn child_question_answered(&mut self, call_id: &CallId, number: u64, answer: Answer) {
        let Some(index) = self.children.questions.position(call_id) else { return };
        let question = &mut self.children.questions.open[index];
        match answer {
            Answer::Gone => return drop(question.asked_at.remove(&number)),
            Answer::Unable => {
                question.unable += 1;
                // Another client may be able to.
                if question.unable < question.asked_at.len() {
                    return;
                }
            }
            Answer::AllowOnce
            | Answer::AllowEdited(_)
            | Answer::AllowAlways
            | Answer::AllowEdits
            | Answer::RejectOnce
            | Answer::RejectBecause(_)
            | Answer::RejectAlways
            | Answer::Said(_)
            | Answer::Unsaid
            | Answer::Nobody
            | Answer::Cancelled => {}
        }
        let ends_turn = answer == Answer::Cancelled && question.is_waited_for;
        self.end_child_question(call_id, answer).await;
        if ends_turn {
            self.cancel().await;
        }
    }

    /// The child has withdrawn its question.
    pub(super) async fn withdraw_for_child(&mut self, call_id: &CallId) {
        if self.children.questions.position(call_id).is_some() {
            self.end_child_question(call_id, Answer::Gone).await;
        }
    }

    async fn end_child_question(&mut self, call_id: &CallId, answer: Answer) {
        let Some(question) = self.children.questions.take(call_id).await else { return };
        let status = match answer {
            Answer::AllowOnce
            | Answer::AllowEdited(_)
            | Answer::AllowAlways
            | Answer::AllowEdits
            | Answer::Said(_) => "completed",
            Answer::RejectOnce
            | Answer::RejectBecause(_)
            | Answer::RejectAlways
            | Answer::Unsaid
            | Answer::Unable
            | Answer::Nobody
            | Answer::Cancelled
            | Answer::Gone => "failed",
        };
        self.show_asked_call(&question.ask, status).await;
        // A child that is gone needs no answer.
        drop(question.reply.send(answer));
        self.tell_waiting();
    }

    /// Shows all clients the call that a question is about; returns the index after which they may be asked.
    async fn show_asked_call(&mut self, ask: &Ask, status: &str) -> u64 {
        let shown = json!({
            "call_id": ask.call_id,
            "name": ask.tool_name,
            "title": ask.presentation.title,
            "kind": ask.presentation.kind,
            "status": status,
        });
        let recorded = match self.take_lease().await {
            Ok(()) => {
                let chunk = Chunk::transient_data(DataName::AskedCall, shown);
                match self.journal.record_with(&aside(), vec![chunk], Vec::new()) {
                    Ok(()) => self.journal.settle().await.map_err(Into::into),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error),
        };
        let index = recorded.unwrap_or_else(|error| {
            tracing::debug!(%error, "a call of a child was not shown");
            self.journal.durable()
        });
        self.go_on().await;
        index
    }

    /// Reports the state of a turn that waits for a child that waits for people.
    fn tell_waiting(&mut self) {
        if self.activity.is_running() {
            let state = self.children.questions.state().unwrap_or(RunState::Busy);
            if self.status.state != state {
                self.set_state(state);
            }
        }
    }
}
