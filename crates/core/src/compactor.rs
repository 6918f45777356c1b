//! Makes room in a conversation: a model writes a hand-over note about all but the last turns. What tools
//! changed is listed from the conversation itself, not from a model's memory.
//!
//! A note that no model can write is made without one: work goes on with less rather than not at all.

mod plan;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::agents::{Agents, COMPACTION_AGENT};
use crate::chunk::Chunk;
use crate::estimate;
use crate::ids::MessageId;
use crate::limits::{BYTES_PER_TOKEN, SUMMARY_PIECES, SUMMARY_TOKENS, SUMMARY_TRIES};
use crate::part::{Part, Passage, Role};
use crate::ports::compaction::{Compacted, Compaction, CompactionRequest};
use crate::ports::model::{ModelError, ModelInfo, ModelRequest, StepEvent, ThoughtLevel, Usage};
use crate::ports::store::{Blobs, ModelRef};
use crate::ports::{BoxFuture, Model};

use plan::CompactionPlan;
use transcript::Transcript;

/// Summarises by a model of this host.
#[derive(Clone, Debug)]
pub struct Compactor {
    pub model: Arc<dyn Model>,
    pub blobs: Arc<dyn Blobs>,
    /// Asked instead of the turn's own where the conversation fits its window.
    pub small_model: Option<ModelRef>,
}

impl Compaction for Compactor {
    fn compact(
        &self,
        request: CompactionRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Compacted>, ModelError>> {
        let compactor = self.clone();
        Box::pin(async move { compactor.made(request, cancel).await })
    }
}

impl Compactor {
    async fn made(
        &self,
        request: CompactionRequest,
        cancel: CancellationToken,
    ) -> Result<Option<Compacted>, ModelError> {
        let Some(plan) = CompactionPlan::of(&request) else { return Ok(None) };
        let transcript = Transcript::of(&request.conversation[..plan.tail]);
        let info = self.chosen(&request.info, &transcript);
        let mut summarising = Summarising {
            compactor: self,
            request: &request,
            info: Arc::new(info),
            cancel,
            used: Usage::default(),
        };
        let note = match summarising.note(&transcript).await {
            Ok(note) => note,
            // Nothing but a key helps here, and the turn itself would fail the same way.
            Err(error @ ModelError::Auth(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, session = %request.session_id, "no model could summarise");
                transcript.without_a_model()
            }
        };
        let (used, model) = (summarising.used, summarising.info.clone());
        let summary = transcript.with_changed_files(&note, plan.unanswered.as_deref());
        let summary_tokens = Some(estimate::tokens(summary.len() as u64));
        Ok(Some(Compacted { summary, tail_start: plan.tail_start, summary_tokens, used, model: Some(model) }))
    }

    /// The small model where it can read all of it at once, else the turn's own.
    fn chosen(&self, own: &Arc<ModelInfo>, transcript: &Transcript) -> ModelInfo {
        let small = self.small_model.clone().or_else(|| self.model.small(&own.model));
        let small = small.and_then(|small| self.model.describe(&small));
        let needed = estimate::tokens(transcript.text.len() as u64) + 2 * SUMMARY_TOKENS;
        small
            .filter(|info| info.context >= needed && !info.has_guessed_context())
            .unwrap_or_else(|| (**own).clone())
    }
}

/// One note under way.
struct Summarising<'a> {
    compactor: &'a Compactor,
    request: &'a CompactionRequest,
    info: Arc<ModelInfo>,
    cancel: CancellationToken,
    used: Usage,
}

impl Summarising<'_> {
    /// Piece by piece where the model can't read all of it at once; smaller pieces where it says that they are
    /// too long.
    async fn note(&mut self, transcript: &Transcript) -> Result<String, ModelError> {
        let mut bytes = self.piece_bytes();
        loop {
            match self.note_by_pieces(transcript, bytes).await {
                Err(ModelError::Overflow(_)) if bytes > 2 * transcript::LEAST_PIECE => bytes /= 2,
                made => return made,
            }
        }
    }

    async fn note_by_pieces(&mut self, transcript: &Transcript, bytes: usize) -> Result<String, ModelError> {
        let mut note = String::new();
        for piece in transcript.pieces(bytes, SUMMARY_PIECES) {
            let before = match note.is_empty() {
                true => String::new(),
                false => format!("<note_so_far>\n{note}\n</note_so_far>\n"),
            };
            let asked = format!("{before}<conversation>\n{piece}\n</conversation>\n\nWrite the note now.");
            note = self.answer(&asked).await?;
        }
        Ok(note)
    }

    /// Bytes of a conversation that the model reads at once, beside its own note.
    fn piece_bytes(&self) -> usize {
        let tokens = self.info.context.saturating_sub(2 * self.note_tokens() + FRAME_TOKENS);
        // A token may be shorter than it is taken for.
        let bytes = tokens.saturating_mul(BYTES_PER_TOKEN) / 4 * 3;
        usize::try_from(bytes).unwrap_or(usize::MAX).max(transcript::LEAST_PIECE)
    }

    fn note_tokens(&self) -> u64 {
        SUMMARY_TOKENS.min(self.info.context / 8).min(self.request.limit_tokens / 8)
    }

    /// Tries again where that can help.
    async fn answer(&mut self, asked: &str) -> Result<String, ModelError> {
        let mut wait = FIRST_WAIT;
        for _ in 1..SUMMARY_TRIES {
            match self.answer_once(asked).await {
                Err(ModelError::Transient { retry_after, .. }) => {
                    tokio::time::sleep(retry_after.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 4;
                }
                answered => return answered,
            }
        }
        self.answer_once(asked).await
    }

    async fn answer_once(&mut self, asked: &str) -> Result<String, ModelError> {
        let most = usize::try_from(self.note_tokens() * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
        let mut events = self.compactor.model.stream(self.model_request(asked), self.cancel.clone());
        let mut note = String::new();
        while let Some(event) = events.next().await {
            match event? {
                StepEvent::Chunk(Chunk::TextDelta { delta, .. }) => {
                    let room = most.saturating_sub(note.len());
                    note.push_str(&delta[..delta.floor_char_boundary(room)]);
                }
                // Thoughts and whatever else it says are no note.
                StepEvent::Chunk(_) => {}
                StepEvent::End { usage, .. } => {
                    self.used.add(&usage);
                    return match note.trim() {
                        "" => Err(ModelError::Permanent("the model wrote no summary".into())),
                        note => Ok(note.to_owned()),
                    };
                }
            }
        }
        let message = "the summary was cut off".to_owned();
        Err(ModelError::Transient { message, retry_after: None })
    }

    fn model_request(&self, asked: &str) -> ModelRequest {
        let agents = Agents::builtin();
        let system = agents.get(COMPACTION_AGENT).map_or("", |agent| agent.system_prompt);
        let text = Part::Text { text: asked.to_owned(), state: None, provider_metadata: None };
        let passage = Passage::new(MessageId::new(""), Role::User, vec![text]);
        ModelRequest {
            session_id: self.request.session_id.clone(),
            thought: Some(ThoughtLevel::Off).filter(|off| self.info.thought_levels.contains(off)),
            info: self.info.clone(),
            system: system.into(),
            passages: vec![Arc::new(passage)].into(),
            runtime_context: Arc::new([]),
            tools: Arc::new([]),
            blobs: self.compactor.blobs.clone(),
        }
    }
}

/// The agent's prompt and the words around a piece, roughly.
const FRAME_TOKENS: u64 = 600;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
