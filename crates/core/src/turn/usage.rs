//! Records what a step used: tells the client, stores it in the message and adds it to the session. Counts
//! nothing itself.
//!
//! The cost is the sum over the steps whose price is known; clients get it from the first such step on. A step
//! without counts adds nothing to any sum: only its context is estimated, and marked as an estimate.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::Turn;
use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::estimate;
use crate::metadata::MessageMeta;
use crate::ports::compaction::Compacted;
use crate::ports::model::Usage;
use crate::ports::store::{Change, SessionPatch, StoreError, UsageTotals};

/// What the current answer has used so far, as in its message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TurnUsage {
    pub(crate) tokens: Usage,
    /// `None` until a step had a price.
    pub(crate) cost_usd: Option<f64>,
}

impl TurnUsage {
    pub(crate) fn metadata(&self) -> MessageMeta {
        let mut metadata = MessageMeta::default();
        metadata.set_usage(counts(&self.tokens), self.cost_usd);
        metadata
    }

    /// Reads it from a message.
    pub(crate) fn of_metadata(metadata: &MessageMeta) -> Self {
        Self { tokens: metadata.usage().unwrap_or_default(), cost_usd: metadata.cost_usd() }
    }

    pub(crate) fn totals(&self) -> UsageTotals {
        UsageTotals {
            prompt_tokens: self.tokens.input as i64,
            completion_tokens: self.tokens.output as i64,
            reasoning_tokens: self.tokens.reasoning as i64,
            cache_read: self.tokens.cache_read as i64,
            cache_write: self.tokens.cache_write as i64,
            cost_usd: self.cost_usd.unwrap_or_default(),
        }
    }

    pub(crate) fn add(&mut self, step: &Self) {
        self.tokens.add(&step.tokens);
        if let Some(cost) = step.cost_usd {
            self.cost_usd = Some(to_nano(self.cost_usd.unwrap_or_default() + cost));
        }
    }
}

/// The cost of a session. Why shared: each turn adds to it, and if a turn crashes the sum must survive.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionCost(Arc<Mutex<f64>>);

impl SessionCost {
    /// Sets the stored sum.
    pub(crate) fn set(&self, cost_usd: f64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cost_usd;
    }

    /// Adds a step and returns the sum. `None` while no step had a price.
    pub(crate) fn add(&self, step: Option<f64>) -> Option<f64> {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *spent = to_nano(*spent + step.unwrap_or_default());
        (step.is_some() || *spent > 0.0).then_some(*spent)
    }
}

impl Turn {
    /// Records what a step used; `said` is the number of bytes it streamed.
    pub(super) fn record_usage(&mut self, tokens: Usage, said: u64) -> Result<(), StoreError> {
        let model = &self.setup.model;
        let counted = tokens != Usage::default();
        let price = model.price.filter(|_| counted);
        let step = TurnUsage { tokens, cost_usd: price.map(|price| price.of(&tokens)) };
        self.used.add(&step);
        let mut data = counts(&tokens);
        data["context_used"] = match counted {
            true => tokens.total().into(),
            false => (estimate::request_tokens(&self.request()) + estimate::tokens(said)).into(),
        };
        data["context_size"] = model.context.into();
        if !counted {
            data["estimated"] = true.into();
        }
        if let Some(cost) = self.cost.add(step.cost_usd) {
            data["cost_usd"] = cost.into();
        }
        let crowding = data["context_used"].as_u64().and_then(|used| self.crowding(used));
        let (name, id) = (DataName::Usage.into(), Some(DataName::Usage.into()));
        let mut chunks = vec![Chunk::Data { name, id, data, transient: None, rest: Rest::none() }];
        chunks.extend(crowding);
        let changes = self.usage_changes(&step);
        self.journal.record_with(&self.author, chunks, changes)
    }

    /// Records what compaction used. Says nothing about the context, which the next step does. `writer`: the
    /// model that the message names.
    pub(super) fn record_compaction(
        &mut self,
        made: Chunk,
        used: &Compacted,
        writer: Option<String>,
    ) -> Result<(), StoreError> {
        let counted = used.used != Usage::default();
        let price = used.model.as_ref().and_then(|model| model.price).filter(|_| counted);
        let step = TurnUsage { tokens: used.used, cost_usd: price.map(|price| price.of(&used.used)) };
        self.used.add(&step);
        self.cost.add(step.cost_usd);
        let mut changes = self.usage_changes(&step);
        if let (Some(writer), Some(Change::PatchMessage { metadata, .. })) = (writer, changes.last_mut()) {
            metadata.set_model(&writer);
        }
        self.journal.record_with(&self.author, vec![made], changes)
    }

    /// Changes the session and, with every step, the message: whatever happens to the turn, its usage is known.
    fn usage_changes(&self, step: &TurnUsage) -> Vec<Change> {
        let now = self.hub.ports.clock.now_ms();
        let patch =
            SessionPatch { add_usage: Some(step.totals()), updated_at: now, ..SessionPatch::default() };
        let message = Change::PatchMessage {
            id: self.author.message_id.clone(),
            seq: None,
            metadata: self.used.metadata(),
            updated_at: now,
        };
        vec![Change::PatchSession(patch), message]
    }
}

pub(crate) fn counts(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "reasoning": usage.reasoning,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    })
}

/// Sums of binary fractions drift; no provider charges less than a billionth of a dollar.
fn to_nano(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9
}
