//! Makes room in a conversation: a model writes a hand-over note about all but the last turns. The list of what
//! tools changed comes from the conversation, not from a model's memory. A small model reads a text with stubs
//! instead of old results; the session's own model reads what its provider has in the cache.
//!
//! If no model can write a note, the compactor makes one without a model: the work continues with less rather
//! than not at all.

mod headings;
pub(crate) mod plan;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::chunk::Chunk;
use crate::estimate;
use crate::ids::MessageId;
use crate::limits::{BYTES_PER_TOKEN, SUMMARY_PIECES, SUMMARY_TOKENS, SUMMARY_TRIES};
use crate::part::{Part, Passage, Role};
use crate::ports::compaction::{Compacted, Compaction, CompactionProgress, CompactionRequest, Occasion};
use crate::ports::model::{ModelError, ModelInfo, ModelRequest, StepEvent, ThoughtLevel, Usage};
use crate::ports::store::{Blobs, ModelRef};
use crate::ports::{BoxFuture, Model};

use headings::{HEADINGS, headed};
use plan::CompactionPlan;
use transcript::ConversationText;

/// Summarises with a model of this host.
#[derive(Clone, Debug)]
pub struct Compactor {
    /// The model that writes the summary.
    pub model: Arc<dyn Model>,
    /// The attachments of the conversation.
    pub blobs: Arc<dyn Blobs>,
    /// Used instead of the turn's own model if the conversation fits its window.
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
        let transcript = ConversationText::of(&request.conversation[..plan.tail]);
        let small = self.other_model(&request, &transcript);
        let info = small.clone().map_or_else(|| request.info.clone(), Arc::new);
        let mut summarising = Summarising {
            compactor: self,
            request: &request,
            info,
            cancel,
            used: Usage::default(),
            again: Again::Allowed,
            said: NoteAnswer::Something,
        };
        let asked = match small {
            Some(_) => summarising.note(&transcript).await,
            None => summarising.note_by_prefix_or_pieces(&plan, &transcript).await,
        };
        let note = match (asked, &request.occasion) {
            (Ok(note), _) => note,
            // Only a key helps here, and the turn itself would fail in the same way. A user who asked for a
            // summary learns why there is none, except when the model merely refused to write it.
            (Err(error @ ModelError::Auth(_)), _) => return Err(error),
            (Err(error), Occasion::Command { .. }) if summarising.said == NoteAnswer::Something => {
                return Err(error);
            }
            (Err(error), Occasion::Overflow | Occasion::Command { .. }) => {
                tracing::warn!(%error, session = %request.session_id, "no model could summarise");
                transcript.without_a_model()
            }
        };
        let (used, model) = (summarising.used, summarising.info.clone());
        let state = request.conversation.work().sections(&request.root);
        let last = plan.last_prompt(&request.conversation);
        let last = last.filter(|_| plan.unanswered.is_none() && request.conversation.work().has_open_tasks());
        let mut summary = transcript::handed_over(&note, &state, plan.unanswered.as_deref());
        if let Some(last) = last {
            summary.push_str(&transcript::last_prompt(&last));
        }
        let summary_tokens = Some(estimate::tokens(summary.len() as u64));
        let CompactionPlan { tail_start, tail_call, .. } = plan;
        Ok(Some(Compacted { summary, tail_start, tail_call, summary_tokens, used, model: Some(model) }))
    }

    /// The model of the agent's manifest, or the small one, if it can read the whole text at once.
    fn other_model(&self, request: &CompactionRequest, transcript: &ConversationText) -> Option<ModelInfo> {
        let own = &request.info;
        let described = |model: &ModelRef| self.model.describe(model);
        let small = || described(&self.small_model.clone().or_else(|| self.model.small(&own.model))?);
        let small = request.writer.model.as_ref().and_then(described).or_else(small)?;
        let needed = estimate::tokens(transcript.text.len() as u64) + 2 * SUMMARY_TOKENS;
        let is_another = !small.model.names_same_model(&own.model);
        (is_another && small.context >= needed && !small.has_guessed_context()).then_some(small)
    }
}

/// One note under way.
struct Summarising<'a> {
    compactor: &'a Compactor,
    request: &'a CompactionRequest,
    info: Arc<ModelInfo>,
    cancel: CancellationToken,
    used: Usage,
    again: Again,
    /// What its last answer was.
    said: NoteAnswer,
}

/// What a model answered when asked for a note; tool calls count as no answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoteAnswer {
    Something,
    Nothing,
}

/// Whether to ask a model once more that wrote no headings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Allowed,
    Asked,
}

impl Summarising<'_> {
    /// The model of the session has most of the conversation in its provider's cache: it is sent exactly the
    /// same beginning, with the instruction behind it. If that does not fit or gives no note, it reads the text
    /// in pieces.
    async fn note_by_prefix_or_pieces(
        &mut self,
        plan: &CompactionPlan,
        transcript: &ConversationText,
    ) -> Result<String, ModelError> {
        let mut prefix = self.prefix_request(plan);
        let taken = self.prefix_tokens(&prefix, plan);
        if taken + self.note_tokens() <= self.info.context && !self.info.has_guessed_context() {
            prefix = self.within_window(prefix, taken);
            match self.headed_answer(prefix, CompactionProgress::Piece { number: 1, of: 1 }).await {
                Ok(note) => return Ok(note),
                Err(error @ ModelError::Auth(_)) => return Err(error),
                Err(error) => tracing::debug!(%error, "no note behind the conversation itself"),
            }
        }
        self.note(transcript).await
    }

    /// Piece by piece if the model can't read the text at once; in smaller pieces if the provider says that
    /// they are too long.
    async fn note(&mut self, transcript: &ConversationText) -> Result<String, ModelError> {
        let mut bytes = self.piece_bytes();
        loop {
            match self.note_by_pieces(transcript, bytes).await {
                Err(ModelError::Overflow(_)) if bytes > 2 * transcript::LEAST_PIECE => bytes /= 2,
                made => return made,
            }
        }
    }

    async fn note_by_pieces(
        &mut self,
        transcript: &ConversationText,
        bytes: usize,
    ) -> Result<String, ModelError> {
        let mut note = String::new();
        let pieces = transcript.pieces(bytes, SUMMARY_PIECES);
        let of = pieces.len();
        for (index, piece) in pieces.into_iter().enumerate() {
            let before = match note.is_empty() {
                true => String::new(),
                false => format!("<note_so_far>\n{note}\n</note_so_far>\n"),
            };
            let keep = self.what_to_keep();
            let asked = format!("{before}<conversation>\n{piece}\n</conversation>\n\n{keep}{WRITE_NOW}");
            let progress = CompactionProgress::Piece { number: index + 1, of };
            note = self.headed_answer(self.piece_request(&asked), progress).await?;
        }
        Ok(note)
    }

    /// What the user wants to be kept, in their words.
    fn what_to_keep(&self) -> String {
        match &self.request.occasion {
            Occasion::Command { keep } if !keep.is_empty() => {
                let words = keep.replace("</keep", "<\\/keep");
                format!("The user says what to keep in particular:\n<keep>\n{words}\n</keep>\n\n")
            }
            Occasion::Command { .. } | Occasion::Overflow => String::new(),
        }
    }

    async fn tell(&self, progress: CompactionProgress) {
        self.request.progress.tell(progress).await;
    }

    /// Bytes of a conversation that the model reads at once, beside its own note.
    fn piece_bytes(&self) -> usize {
        let words = self.request.instructions.len() + self.what_to_keep().len();
        let frame = FRAME_TOKENS.max(estimate::tokens(words as u64) + FRAME_TOKENS / 4);
        let tokens = self.info.context.saturating_sub(2 * self.note_tokens() + frame);
        // A token may have fewer bytes than the estimate assumes.
        let bytes = tokens.saturating_mul(BYTES_PER_TOKEN) / 4 * 3;
        usize::try_from(bytes).unwrap_or(usize::MAX).max(transcript::LEAST_PIECE)
    }

    fn note_tokens(&self) -> u64 {
        SUMMARY_TOKENS.min(self.info.context / 8).min(self.request.limit_tokens / 8)
    }

    /// What the conversation takes with the instruction behind it.
    fn prefix_tokens(&self, prefix: &ModelRequest, plan: &CompactionPlan) -> u64 {
        let CompactionRequest { conversation, expected_tokens, .. } = self.request;
        let tail = conversation[plan.tail..].iter();
        let tail: u64 = tail.map(|passage| estimate::passage_size(passage).tokens()).sum();
        // The provider's count is more exact than an estimate.
        let counted = expected_tokens.map_or(0, |expected| expected.saturating_sub(tail) + FRAME_TOKENS);
        estimate::request_tokens(prefix).max(counted)
    }

    /// The request with a limit on the answer that fits in the window beside it: providers refuse larger ones.
    /// A note always has room; a model that thinks first gets the rest of the window for that.
    fn within_window(&self, mut request: ModelRequest, taken: u64) -> ModelRequest {
        let room = self.info.context.saturating_sub(taken).max(self.note_tokens());
        if request.info.max_output > room && !self.info.has_guessed_context() {
            request.info = Arc::new(ModelInfo { max_output: room, ..(*request.info).clone() });
        }
        request
    }

    /// A note with headings in our form; the model that continues looks for them. A model that wrote none is
    /// asked once more; if that does not help, the longer of its two notes is kept under one of ours.
    async fn headed_answer(
        &mut self,
        request: ModelRequest,
        progress: CompactionProgress,
    ) -> Result<String, ModelError> {
        self.tell(progress.clone()).await;
        let mut note = self.answer(request.clone()).await?;
        // An agent of the user's own may want a note of another form.
        if headed(&self.request.instructions).is_none() {
            return Ok(note);
        }
        if let Some(headed) = headed(&note) {
            return Ok(headed);
        }
        let again = with_headings_asked(request, &note);
        let fits = estimate::request_tokens(&again) + self.note_tokens() <= self.info.context;
        if fits && std::mem::replace(&mut self.again, Again::Asked) == Again::Allowed {
            self.tell(progress).await;
            match self.answer(again).await {
                Ok(second) => match headed(&second) {
                    Some(headed) => return Ok(headed),
                    None if second.len() > note.len() => note = second,
                    None => {}
                },
                Err(error) => tracing::debug!(%error, "no second note"),
            }
        }
        Ok(format!("{OWN_HEADING}\n{note}"))
    }

    /// Tries again if that can help.
    async fn answer(&mut self, request: ModelRequest) -> Result<String, ModelError> {
        let taken = estimate::request_tokens(&request);
        let request = self.within_window(request, taken);
        let mut wait = FIRST_WAIT;
        for _ in 1..SUMMARY_TRIES {
            match self.answer_once(request.clone()).await {
                Err(ModelError::Transient { retry_after, .. }) => {
                    tokio::time::sleep(retry_after.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 4;
                }
                answered => return answered,
            }
        }
        self.answer_once(request).await
    }

    async fn answer_once(&mut self, request: ModelRequest) -> Result<String, ModelError> {
        let most = usize::try_from(self.note_tokens() * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
        let mut events = self.compactor.model.stream(request, self.cancel.clone());
        let mut note = String::new();
        self.said = NoteAnswer::Something;
        while let Some(event) = events.next().await {
            match event? {
                StepEvent::Chunk(Chunk::TextDelta { mut delta, .. }) => {
                    let room = most.saturating_sub(note.len());
                    delta.truncate(delta.floor_char_boundary(room));
                    note.push_str(&delta);
                    self.tell(CompactionProgress::Text(delta)).await;
                }
                // Thoughts and everything else are not part of the note.
                StepEvent::Chunk(_) => {}
                StepEvent::End { usage, .. } => {
                    self.used.add(&usage);
                    return match note.trim() {
                        "" => {
                            self.said = NoteAnswer::Nothing;
                            Err(ModelError::Permanent("the model wrote no summary".into()))
                        }
                        note => Ok(note.to_owned()),
                    };
                }
            }
        }
        let message = "the summary was cut off".to_owned();
        Err(ModelError::Transient { message, retry_after: None })
    }

    /// The level that the agent's manifest names, if the model that writes has it.
    fn thought(&self) -> Option<ThoughtLevel> {
        self.request.writer.thought.filter(|level| self.has_level(level))
    }

    fn has_level(&self, level: &ThoughtLevel) -> bool {
        self.info.thought_levels.contains(level)
    }

    /// A request with a piece of the conversation as text, for a model that has not seen any of it.
    fn piece_request(&self, asked: &str) -> ModelRequest {
        ModelRequest {
            session_id: self.request.session_id.clone(),
            thought: self.thought().or(Some(ThoughtLevel::Off).filter(|off| self.has_level(off))),
            info: self.info.clone(),
            system: self.request.instructions.clone(),
            passages: vec![Arc::new(user_passage(asked.to_owned()))].into(),
            runtime_context: Arc::new([]),
            tools: Arc::new([]),
            blobs: self.compactor.blobs.clone(),
            parent_span: self.request.parent_span,
        }
    }

    /// A request with the conversation up to the tail, byte for byte as it was sent, and the instruction behind
    /// it.
    fn prefix_request(&self, plan: &CompactionPlan) -> ModelRequest {
        let CompactionRequest { session_id, thought, system, tools, conversation, .. } = self.request;
        let mut passages = conversation[..plan.tail].to_vec();
        let asked = format!("{ABOVE}\n\n{}\n\n{}{WRITE_NOW}", self.request.instructions, self.what_to_keep());
        passages.push(Arc::new(user_passage(asked)));
        ModelRequest {
            session_id: session_id.clone(),
            thought: self.thought().or(*thought),
            info: self.info.clone(),
            system: system.clone(),
            passages: passages.into(),
            runtime_context: Arc::new([]),
            tools: tools.clone(),
            blobs: self.compactor.blobs.clone(),
            parent_span: self.request.parent_span,
        }
    }
}

/// The same request with the model's note as its answer, and a message that says what the note lacks.
fn with_headings_asked(mut request: ModelRequest, note: &str) -> ModelRequest {
    let text = Part::Text { text: note.to_owned(), state: None, provider_metadata: None };
    let answer = Passage::new(MessageId::new(""), Role::Assistant, vec![text]);
    let asked = format!("That note has none of the headings {}. {WRITE_NOW}", HEADINGS.join(", "));
    let more = [Arc::new(answer), Arc::new(user_passage(asked))];
    request.passages = request.passages.iter().cloned().chain(more).collect::<Vec<_>>().into();
    request
}

fn user_passage(text: String) -> Passage {
    let text = Part::Text { text, state: None, provider_metadata: None };
    Passage::new(MessageId::new(""), Role::User, vec![text])
}

/// Precedes the agent's own prompt when that follows the conversation.
const ABOVE: &str = "Stop the work here: the conversation is about to be replaced by a note. The conversation that the \
                     following speaks of is the one above.";

/// The heading for a note without one.
const OWN_HEADING: &str = "## State";

const WRITE_NOW: &str = "Write the note now.";

/// Rough size of the agent's prompt and the words around a piece.
const FRAME_TOKENS: u64 = 600;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
