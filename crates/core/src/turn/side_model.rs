//! The small model of a session, for a tool of its turn: asks the user for permission, sends one question,
//! returns one answer, and counts its usage for the session.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::Turn;
use super::usage::{SessionCost, TurnUsage};
use crate::chunk::Chunk;
use crate::estimate;
use crate::hub;
use crate::ids::{MessageId, SessionId};
use crate::journal::Journal;
use crate::limits::SIDE_ANSWER_TIME;
use crate::part::{Part, Passage};
use crate::ports::delegate::{Permit, PermitAnswer};
use crate::ports::model::{ModelInfo, ModelRequest, StepEvent, ThoughtLevel, Usage};
use crate::ports::side_model::{SideAnswer, SideAnswerEnd, SideModel, SideQuestion};
use crate::ports::store::{Change, ModelRef, SessionPatch};
use crate::ports::telemetry::SpanContext;
use crate::ports::{BoxFuture, BoxStream, Delegate, ModelError};

/// Everything that one question needs; it may outlive its call.
#[derive(Clone, Debug)]
pub(super) struct TurnSideModel {
    hub: Arc<hub::Shared>,
    session: SessionId,
    journal: Journal,
    cost: SessionCost,
    /// The model of the turn, from whose provider the small one is.
    beside: ModelRef,
    parent_span: Option<SpanContext>,
    /// The client whose user is asked; even a client that offers nothing can be asked this.
    client: Option<Arc<dyn Delegate>>,
}

impl TurnSideModel {
    pub(super) fn of(turn: &Turn) -> Self {
        Self {
            hub: turn.hub.clone(),
            session: turn.setup.workspace.session_id.clone(),
            journal: turn.journal.clone(),
            cost: turn.cost.clone(),
            beside: turn.setup.model.model.clone(),
            parent_span: turn.parent_span(),
            client: turn.client.clone(),
        }
    }

    async fn answer(self, permit: Permit, question: SideQuestion) -> Result<SideAnswer, String> {
        let client = self.client.as_ref().ok_or("no client is connected to ask the user")?;
        match client.permit(permit).await {
            Ok(PermitAnswer::Allowed) => {}
            Ok(PermitAnswer::Refused) => return Err("the user refused".to_owned()),
            Err(error) => return Err(format!("the user could not be asked: {error}")),
        }
        let ports = &self.hub.ports;
        let small = ports.settings.small_model.clone().or_else(|| ports.model.small(&self.beside));
        let small =
            small.ok_or("there is no small model here; small_model in the configuration names one")?;
        let info = ports.model.describe(&small);
        let info = Arc::new(info.ok_or_else(|| format!("the small model {small} can't be used"))?);
        let room = question.answer_tokens.min(info.max_output);
        let asked = bytes(&question);
        let request = self.request(question, info.clone());
        let cancel = CancellationToken::new();
        let _ends_with_us = cancel.clone().drop_guard();
        let heard = hear(ports.model.stream(request, cancel), room);
        let heard = tokio::time::timeout(SIDE_ANSWER_TIME, heard).await;
        let late = |_| format!("the model did not answer within {} s", SIDE_ANSWER_TIME.as_secs());
        let (text, counted, end) = heard.map_err(late)?.map_err(|error| error.to_string())?;
        self.count(&info, counted);
        let guess = estimate::tokens(asked + text.len() as u64);
        let tokens = if counted == Usage::default() { guess } else { counted.total() };
        Ok(SideAnswer { text, model: info.model.to_string(), tokens, end })
    }

    fn request(&self, question: SideQuestion, info: Arc<ModelInfo>) -> ModelRequest {
        let passage = |(role, text)| {
            let text = Part::Text { text, state: None, provider_metadata: None };
            Arc::new(Passage::new(MessageId::new(""), role, vec![text]))
        };
        ModelRequest {
            session_id: self.session.clone(),
            thought: Some(ThoughtLevel::Off).filter(|off| info.thought_levels.contains(off)),
            info,
            system: question.system.into(),
            passages: question.messages.into_iter().map(passage).collect::<Vec<_>>().into(),
            runtime_context: Arc::new([]),
            tools: Arc::new([]),
            blobs: self.hub.ports.blobs.clone(),
            parent_span: self.parent_span,
        }
    }

    fn count(&self, info: &ModelInfo, tokens: Usage) {
        if tokens == Usage::default() {
            return;
        }
        let used = TurnUsage { tokens, cost_usd: info.price.map(|price| price.of(&tokens)) };
        self.cost.add(used.cost_usd);
        let updated_at = self.hub.ports.clock.now_ms();
        let patch = SessionPatch { add_usage: Some(used.totals()), updated_at, ..SessionPatch::default() };
        if let Err(error) = self.journal.change(vec![Change::PatchSession(patch)]) {
            tracing::warn!(%error, "what a question beside the conversation used could not be stored");
        }
    }
}

fn bytes(question: &SideQuestion) -> u64 {
    let said: usize = question.messages.iter().map(|(_, text)| text.len()).sum();
    (question.system.len() + said) as u64
}

/// Reads the text of the answer up to the wanted size, and its usage; an answer that was cut has no count.
async fn hear(
    mut events: BoxStream<'static, Result<StepEvent, ModelError>>,
    room: u64,
) -> Result<(String, Usage, SideAnswerEnd), ModelError> {
    let mut text = String::new();
    while let Some(event) = events.next().await {
        match event? {
            StepEvent::Chunk(Chunk::TextDelta { delta, .. }) => text.push_str(&delta),
            // It has no tools, and its thoughts are not passed on.
            StepEvent::Chunk(_) => {}
            StepEvent::End { usage, .. } => return Ok((text, usage, SideAnswerEnd::Complete)),
        }
        if estimate::tokens(text.len() as u64) > room {
            return Ok((text, Usage::default(), SideAnswerEnd::Cut));
        }
    }
    Err(ModelError::Permanent("the answer was cut off".to_owned()))
}

impl SideModel for TurnSideModel {
    fn ask(&self, permit: Permit, question: SideQuestion) -> BoxFuture<'static, Result<SideAnswer, String>> {
        Box::pin(self.clone().answer(permit, question))
    }
}
