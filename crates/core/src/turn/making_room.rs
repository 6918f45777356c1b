//! Makes room in a conversation that would not fit: turns old results into stubs, and if that is not enough,
//! replaces the beginning by a summary. Stores either before any request uses it.

use tokio::sync::mpsc;

use super::attachments::Remedy;
use super::{StepStop, Turn};
use crate::agents::COMPACTION_AGENT;
use crate::compaction::stubs::{self, StubPlan};
use crate::compaction::{Boundary, CompactionMark, CompactionRecord};
use crate::compactor::plan::room;
use crate::estimate;
use crate::limits::{PROGRESS_AHEAD, STUBS_PERCENT};
use crate::ports::compaction::{CompactionRequest, NoteWriter, Occasion, ProgressSender};
use crate::ports::model::ModelError;
use crate::spans::OpenSpan;

/// What was already tried to make room for the current request: each only once, so that this ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoomTried {
    stubs: bool,
    summary: bool,
}

/// The outcome of asking for a summary.
#[derive(Debug)]
pub(super) enum CompactionOutcome {
    Made,
    /// Nothing can be shortened.
    Nothing,
    Failed(ModelError),
    /// The host makes no summaries, or was asked already.
    NotAsked,
    /// A hook objects, for this reason.
    Blocked(String),
}

/// Stubs are enough if the conversation then takes at most this fraction (one in N) of its room: if they freed
/// less, the next requests would need room again, and each time the provider's cache would be lost.
const ENOUGH_SHARE: u64 = 2;

impl Turn {
    /// Called before a request, so that one that can't fit is not sent. A host with compaction makes room in
    /// time for the answer's reserve; on a host without, the turn ends with advice. Uses the provider's count
    /// for the earlier part, so that only the new part is estimated. A window that is only a guess decides
    /// nothing.
    pub(super) async fn check_room(&mut self) -> Result<(), StepStop> {
        self.room_tried = RoomTried::default();
        let info = self.setup.model.clone();
        if info.has_guessed_context() {
            return Ok(());
        }
        // Each round either makes the request smaller or ends the turn.
        while let Some(expected) = self.expected_tokens() {
            let fits = expected < info.context;
            let is_for_compaction = self.hub.ports.compaction.is_some() && !self.room_tried.summary;
            if fits && (!is_for_compaction || expected < self.limit_tokens()) {
                return self.shorten_early(expected).await;
            }
            let mut reason =
                format!("about {expected} tokens of the {} that {} takes", info.context, info.model);
            if is_for_compaction {
                if self.shorten_results(&reason, Some(expected)).await? == Remedy::TryAgain {
                    continue;
                }
                if self.leave_out_unseen(self.room_for(Some(expected)))? == Remedy::TryAgain {
                    continue;
                }
                match self.summarise(&reason, Some(expected), Occasion::Overflow).await? {
                    CompactionOutcome::Made => continue,
                    // The reserve is for the answer: a request that fits without the reserve is still sent.
                    CompactionOutcome::Nothing | CompactionOutcome::Failed(_) if fits => return Ok(()),
                    CompactionOutcome::Nothing
                    | CompactionOutcome::NotAsked
                    | CompactionOutcome::Blocked(_) => {}
                    CompactionOutcome::Failed(error) => {
                        reason.push_str(&format!("; making room failed: {error}"));
                    }
                }
            }
            self.make_room(reason).await?;
        }
        Ok(())
    }

    /// Called after the provider said that the request is too long. `Ok` if another try may fit.
    pub(super) async fn make_room(&mut self, reason: String) -> Result<(), StepStop> {
        if self.drop_runtime_context()? == Remedy::TryAgain
            || self.shorten_results(&reason, None).await? == Remedy::TryAgain
        {
            return Ok(());
        }
        let will_summarise = self.hub.ports.compaction.is_some() && !self.room_tried.summary;
        if will_summarise && self.leave_out_unseen(self.room_for(None))? == Remedy::TryAgain {
            return Ok(());
        }
        let reason = match self.summarise(&reason, None, Occasion::Overflow).await? {
            CompactionOutcome::Made => return Ok(()),
            CompactionOutcome::Nothing | CompactionOutcome::NotAsked | CompactionOutcome::Blocked(_) => {
                reason
            }
            CompactionOutcome::Failed(error) => format!("{reason}; making room failed: {error}"),
        };
        match self.leave_out_largest_results()? {
            Remedy::TryAgain => Ok(()),
            Remedy::Nothing => {
                let error = ModelError::Overflow(reason + &self.about_the_prompt());
                self.leave_out(error)
            }
        }
    }

    /// How much the conversation may take.
    fn room_for(&self, expected: Option<u64>) -> u64 {
        room(&self.compaction_request("", expected, Occasion::Overflow))
    }

    /// A hint for the error, if the prompt itself is too large.
    fn about_the_prompt(&self) -> String {
        let prompt = self.passages.iter().find(|passage| passage.message_id == self.user_message_id);
        let tokens = prompt.map_or(0, |prompt| estimate::passage_size(prompt).tokens());
        if tokens < self.limit_tokens() / 2 {
            return String::new();
        }
        format!(
            "; the prompt alone is about {tokens} tokens: send less of it, or name files instead of including them"
        )
    }

    /// Replaces old results by stubs, if that alone makes enough room, without asking a model.
    async fn shorten_results(&mut self, reason: &str, expected: Option<u64>) -> Result<Remedy, StepStop> {
        if self.hub.ports.compaction.is_none() || std::mem::replace(&mut self.room_tried.stubs, true) {
            return Ok(Remedy::Nothing);
        }
        let request = self.compaction_request(reason, expected, Occasion::Overflow);
        let (room, conversation) = (room(&request), &request.conversation);
        let needed = match expected {
            // Tokens may be shorter than estimated: then what is freed counts for more, too.
            Some(expected) => {
                let over = expected.saturating_sub(request.limit_tokens - room / ENOUGH_SHARE);
                over.saturating_mul(estimate::request_tokens(&self.request())) / expected.max(1)
            }
            // Only the provider knows the window; it is smaller than what was sent.
            None => conversation.size().tokens() / ENOUGH_SHARE,
        };
        let plan = stubs::plan(conversation, &request.prompt, room, needed);
        drop(request);
        let Some(plan) = plan else { return Ok(Remedy::Nothing) };
        self.shorten_by(plan).await?;
        Ok(Remedy::TryAgain)
    }

    /// When the window is partly full, replaces results older than the last turns by stubs: the model seldom
    /// needs them again, and every request pays for them.
    async fn shorten_early(&mut self, expected: u64) -> Result<(), StepStop> {
        let is_due = expected.saturating_mul(100) >= self.limit_tokens().saturating_mul(STUBS_PERCENT);
        if !is_due || self.hub.ports.compaction.is_none() || self.room_tried.stubs {
            return Ok(());
        }
        let request = self.compaction_request("", Some(expected), Occasion::Overflow);
        let plan = stubs::plan_early(&request.conversation, &request.prompt, room(&request));
        drop(request);
        match plan {
            Some(plan) => self.shorten_by(plan).await,
            None => Ok(()),
        }
    }

    async fn shorten_by(&mut self, plan: StubPlan) -> Result<(), StepStop> {
        tracing::debug!(freed = plan.freed_tokens, "old results become stubs");
        let span = self.begin_compaction_span("stubs", &Occasion::Overflow);
        let record = self.compaction_record(&Occasion::Overflow);
        self.record(record.shortened(&plan.stubs)).await?;
        self.go_on_with(&CompactionMark::Stubs(plan.stubs)).await?;
        self.end_compaction_span(span, &CompactionOutcome::Made);
        Ok(())
    }

    /// Asks for a summary and continues with the shortened conversation.
    pub(super) async fn summarise(
        &mut self,
        reason: &str,
        expected: Option<u64>,
        occasion: Occasion,
    ) -> Result<CompactionOutcome, StepStop> {
        let asked = std::mem::replace(&mut self.room_tried.summary, true);
        let compaction = self.hub.ports.compaction.clone().filter(|_| !asked);
        let Some(compaction) = compaction else { return Ok(CompactionOutcome::NotAsked) };
        if let Some(why) = self.before_compaction(&occasion).await? {
            return Ok(CompactionOutcome::Blocked(why));
        }
        let span = self.begin_compaction_span("summary", &occasion);
        let record = self.compaction_record(&occasion);
        self.record(record.begun()).await?;
        let (progress, mut told) = mpsc::channel(PROGRESS_AHEAD);
        let mut request = self.compaction_request(reason, expected, occasion);
        request.progress = ProgressSender::new(progress);
        request.parent_span = span.as_ref().and_then(OpenSpan::context);
        let mut making = compaction.compact(request, self.cancel.child_token());
        let made = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break None,
                Some(progress) = told.recv() => self.record(record.progress(progress)).await?,
                made = &mut making => break Some(made),
            }
        };
        while let Ok(progress) = told.try_recv() {
            self.record(record.progress(progress)).await?;
        }
        let outcome = match made {
            None => {
                self.record(record.cancelled()).await?;
                return Err(StepStop::Aborted);
            }
            Some(Ok(Some(made))) => {
                // An answer of a model names that model; for `/compact`, the answer names the model that wrote
                // the note.
                let writer = made.model.as_ref().filter(|_| !record.is_automatic());
                let writer = writer.map(|info| info.model.to_string());
                self.record_compaction(record.summarised(&made), &made, writer)?;
                self.go_on_with(&CompactionMark::Summary(Boundary::from(&made))).await?;
                self.summarised = true;
                CompactionOutcome::Made
            }
            Some(Ok(None)) => {
                self.record(record.failed("nothing can be made shorter")).await?;
                CompactionOutcome::Nothing
            }
            Some(Err(error)) => {
                self.record(record.failed(&error.to_string())).await?;
                CompactionOutcome::Failed(error)
            }
        };
        self.end_compaction_span(span, &outcome);
        Ok(outcome)
    }

    fn compaction_record(&self, occasion: &Occasion) -> CompactionRecord {
        CompactionRecord::new(self.hub.ports.ids.part().to_string(), occasion)
    }

    /// Waits until the mark is stored: no request may depend on a mark that is not.
    async fn go_on_with(&mut self, mark: &CompactionMark) -> Result<(), StepStop> {
        self.journal.settle().await?;
        let marked = self.passages.marked(mark, self.passages.len(), &self.author.message_id);
        self.seen.forget(self.passages.seen(), marked.seen());
        self.passages = marked;
        Ok(())
    }

    fn compaction_request(
        &self,
        reason: &str,
        expected_tokens: Option<u64>,
        occasion: Occasion,
    ) -> CompactionRequest {
        let agent = self.setup.agents.get(COMPACTION_AGENT);
        CompactionRequest {
            session_id: self.setup.workspace.session_id.clone(),
            root: self.setup.workspace.root.clone(),
            info: self.setup.model.clone(),
            instructions: agent.map_or_else(|| "".into(), |agent| agent.system_prompt.clone()),
            writer: agent.map_or_else(NoteWriter::default, |agent| NoteWriter {
                model: agent.model.clone(),
                thought: agent.thought,
            }),
            thought: self.setup.thought,
            system: self.setup.system.text.clone(),
            tools: self.setup.tools.specs(),
            conversation: self.passages.clone(),
            prompt: self.user_message_id.clone(),
            occasion,
            progress: ProgressSender::default(),
            expected_tokens,
            limit_tokens: self.limit_tokens(),
            reason: reason.to_owned(),
            parent_span: None,
        }
    }
}
