//! Checks and prepares a model's chunks of one step before they are recorded: their order, the ids of calls,
//! the splitting of long parts. Records nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::chunk::order::{OrderChecker, OrderError};
use crate::chunk::{Chunk, Rest, StreamId};
use crate::ids::CallId;
use crate::limits::SILENT_CHUNKS;
use crate::ports::model::ModelError;

/// A text or reasoning part that is open in our journal; a long one continues under another id.
pub(super) struct OpenStream {
    theirs: StreamId,
    pub(super) ours: StreamId,
    pub(super) bytes: usize,
    pub(super) pieces: u32,
}

pub(super) struct Incoming {
    order: OrderChecker,
    open: Vec<OpenStream>,
    /// Ids that calls of the conversation have already. Models repeat ids, but clients and providers need
    /// unique ones.
    taken: Arc<HashSet<CallId>>,
    /// Ids given to calls of this step.
    given: HashSet<CallId>,
    /// Our id of each call in this step, by the model's id.
    names: HashMap<CallId, Named>,
    /// Bytes of text, reasoning, arguments and notices.
    said: u64,
    /// Parts that were opened and are still silent. They are not recorded yet, so a request whose stream breaks
    /// now can be retried without leaving a trace. `None` once the model said something.
    silent: Option<Vec<Chunk>>,
}

struct Named {
    ours: CallId,
    /// Its input is complete: the next input under this id belongs to another call.
    whole: bool,
}

impl Incoming {
    pub(super) fn new(taken: Arc<HashSet<CallId>>) -> Self {
        let mut order = OrderChecker::default();
        let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
        let begun = order.check(&start).and_then(|()| order.check(&Chunk::StartStep { rest: Rest::none() }));
        debug_assert!(begun.is_ok());
        let (given, names) = (HashSet::new(), HashMap::new());
        Self { order, open: Vec::new(), taken, given, names, said: 0, silent: Some(Vec::new()) }
    }

    /// The chunk with our ids, if it may come here.
    pub(super) fn check(&mut self, mut chunk: Chunk) -> Result<Chunk, ModelError> {
        if is_the_loops_own(&chunk) {
            return Err(ModelError::Permanent(format!("the model sent a {} of its own", chunk.kind())));
        }
        self.rename(&mut chunk);
        self.order.check(&chunk).map_err(|error| out_of_order(&error))?;
        Ok(chunk)
    }

    /// Holds a chunk back while the answer is silent; returns a chunk that has to be recorded, after those held
    /// back.
    pub(super) fn hold_while_silent(&mut self, chunk: Chunk) -> Option<Chunk> {
        match &mut self.silent {
            Some(held) if is_silent(&chunk) && held.len() < SILENT_CHUNKS => {
                held.push(chunk);
                None
            }
            Some(_) | None => Some(chunk),
        }
    }

    /// Returns the chunks held back; from now on nothing is.
    pub(super) fn release(&mut self) -> Vec<Chunk> {
        self.silent.take().unwrap_or_default()
    }

    /// How much the model has said, in bytes.
    pub(super) fn said(&self) -> u64 {
        self.said
    }

    pub(super) fn heard(&mut self, bytes: u64) {
        self.said += bytes;
    }

    pub(super) fn open(&mut self, id: &StreamId) {
        self.open.push(OpenStream { theirs: id.clone(), ours: id.clone(), bytes: 0, pieces: 1 });
    }

    pub(super) fn stream(&mut self, id: &StreamId) -> Option<&mut OpenStream> {
        self.open.iter_mut().find(|stream| stream.theirs == *id)
    }

    /// Forgets an open part; returns our id of it.
    pub(super) fn close(&mut self, id: &StreamId) -> StreamId {
        match self.open.iter().position(|stream| stream.theirs == *id) {
            Some(index) => self.open.swap_remove(index).ours,
            None => id.clone(),
        }
    }

    fn rename(&mut self, chunk: &mut Chunk) {
        match chunk {
            Chunk::ToolInputStart { call_id, .. } => *call_id = self.name(call_id).ours.clone(),
            Chunk::ToolInputAvailable { call_id, .. } | Chunk::ToolInputError { call_id, .. } => {
                let named = self.name(call_id);
                named.whole = true;
                *call_id = named.ours.clone();
            }
            Chunk::ToolInputDelta { call_id, .. }
            | Chunk::ToolApprovalRequest { call_id, .. }
            | Chunk::ToolOutputAvailable { call_id, .. }
            | Chunk::ToolOutputError { call_id, .. }
            | Chunk::ToolOutputDenied { call_id, .. } => {
                if let Some(named) = self.names.get(call_id) {
                    *call_id = named.ours.clone();
                }
            }
            Chunk::Start { .. }
            | Chunk::StartStep { .. }
            | Chunk::FinishStep { .. }
            | Chunk::TextStart { .. }
            | Chunk::TextDelta { .. }
            | Chunk::TextEnd { .. }
            | Chunk::ReasoningStart { .. }
            | Chunk::ReasoningDelta { .. }
            | Chunk::ReasoningEnd { .. }
            | Chunk::SourceUrl { .. }
            | Chunk::SourceDocument { .. }
            | Chunk::File { .. }
            | Chunk::Data { .. }
            | Chunk::MessageMetadata { .. }
            | Chunk::Error { .. }
            | Chunk::Abort { .. }
            | Chunk::Finish { .. } => {}
        }
    }

    /// The call that this input belongs to: the one still streaming, or a new one with an unused id.
    fn name(&mut self, theirs: &CallId) -> &mut Named {
        let goes_on = self.names.get(theirs).is_some_and(|named| !named.whole);
        if !goes_on {
            let mut ours = theirs.clone();
            let mut number = 1;
            while self.taken.contains(&ours) || !self.given.insert(ours.clone()) {
                number += 1;
                // Only letters, digits and underscores: some providers accept nothing else.
                ours = CallId::new(format!("{theirs}_{number}"));
            }
            self.names.insert(theirs.clone(), Named { ours, whole: false });
        }
        self.names.entry(theirs.clone()).or_insert_with(|| Named { ours: theirs.clone(), whole: false })
    }
}

/// Whether a chunk merely opens a part, or adds nothing to it.
fn is_silent(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::TextStart { .. } | Chunk::ReasoningStart { .. } => true,
        Chunk::TextDelta { delta, .. } | Chunk::ReasoningDelta { delta, .. } => delta.is_empty(),
        Chunk::Start { .. }
        | Chunk::StartStep { .. }
        | Chunk::FinishStep { .. }
        | Chunk::TextEnd { .. }
        | Chunk::ReasoningEnd { .. }
        | Chunk::ToolInputStart { .. }
        | Chunk::ToolInputDelta { .. }
        | Chunk::ToolInputAvailable { .. }
        | Chunk::ToolInputError { .. }
        | Chunk::ToolApprovalRequest { .. }
        | Chunk::ToolOutputAvailable { .. }
        | Chunk::ToolOutputError { .. }
        | Chunk::ToolOutputDenied { .. }
        | Chunk::SourceUrl { .. }
        | Chunk::SourceDocument { .. }
        | Chunk::File { .. }
        | Chunk::Data { .. }
        | Chunk::MessageMetadata { .. }
        | Chunk::Error { .. }
        | Chunk::Abort { .. }
        | Chunk::Finish { .. } => false,
    }
}

/// Whether a chunk is one that only the loop makes: the begin and end of steps and messages.
fn is_the_loops_own(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Start { .. } | Chunk::StartStep { .. } | Chunk::FinishStep { .. })
        || chunk.is_terminal()
}

fn out_of_order(error: &OrderError) -> ModelError {
    ModelError::Permanent(format!("the model's answer came out of order: {error}"))
}
