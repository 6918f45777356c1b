//! The turn of `/compact`: summarises the conversation because the user asked for it. Its text is for people,
//! and no model sees it; its boundary applies.

use super::making_room::CompactionOutcome;
use super::{StepStop, Turn, TurnEnd};
use crate::chunk::{Chunk, FinishReason, Rest};
use crate::part::Role;
use crate::ports::BoxFuture;
use crate::ports::backend::{BackendTurn, NextHistory, TurnContext, TurnLeftovers, TurnResult, TurnStart};
use crate::ports::compaction::Occasion;
use crate::ports::model::Usage;

#[derive(Debug)]
pub(crate) struct CompactionTurn {
    turn: Turn,
    /// What the user wants the summary to keep.
    keep: String,
}

impl CompactionTurn {
    pub(crate) fn new(context: TurnContext, keep: String) -> Self {
        Self { turn: Turn::new(context), keep }
    }
}

impl BackendTurn for CompactionTurn {
    fn run(&mut self, _start: TurnStart) -> BoxFuture<'_, TurnResult> {
        let keep = std::mem::take(&mut self.keep);
        Box::pin(async move {
            TurnResult::Ended(match self.turn.compact_by_command(keep).await {
                Ok(()) => TurnEnd::Finished(FinishReason::Stop),
                Err(stop) => self.turn.stopped(stop).await,
            })
        })
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        TurnLeftovers {
            conversation: Some(self.turn.passages),
            history: NextHistory::Unchanged,
            summarised: self.turn.summarised,
            ..TurnLeftovers::default()
        }
    }
}

impl Turn {
    async fn compact_by_command(&mut self, keep: String) -> Result<(), StepStop> {
        self.record(Chunk::StartStep { rest: Rest::none() }).await?;
        let before = self.passages.size().tokens();
        let answer = match self.passages.iter().any(|passage| passage.role == Role::Assistant) {
            false => "There is nothing to summarise yet.".to_owned(),
            true => {
                let reason = "the user asked for it";
                let expected = self.expected_tokens();
                match self.summarise(reason, expected, Occasion::Command { keep }).await? {
                    CompactionOutcome::Made => {
                        let after = self.passages.size().tokens();
                        // Recorded now, because clients would otherwise show a full window until the next step.
                        self.record_usage(Usage::default(), 0)?;
                        format!("Summarised: about {before} tokens of conversation became {after}.")
                    }
                    CompactionOutcome::Nothing => "There is nothing to summarise yet.".to_owned(),
                    CompactionOutcome::NotAsked => "Conversations can't be summarised here.".to_owned(),
                    CompactionOutcome::Blocked(why) => format!("Not summarised, a hook is against it: {why}"),
                    CompactionOutcome::Failed(error) => return Err(StepStop::Model(error)),
                }
            }
        };
        self.record(Chunk::TextStart { id: "answer".into(), rest: Rest::none() }).await?;
        self.record(Chunk::text_delta(&"answer".into(), answer)).await?;
        self.record(Chunk::TextEnd { id: "answer".into(), rest: Rest::none() }).await?;
        self.record(Chunk::FinishStep { rest: Rest::none() }).await
    }
}
