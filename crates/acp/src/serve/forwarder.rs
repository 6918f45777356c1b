//! Forwards the entries of one session to one client, in order, with the answers that belong between them. A
//! slow client delays only its own forwarder.

mod commands;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use attache_core::chunk::Chunk;
use attache_core::entry::SharedSegment;
use attache_core::hub::{Attachment, Hub, Participant};
use attache_core::ids::{CallId, SessionId};
use attache_core::journal::reader::Subscription;
use attache_core::metadata::own;
use attache_core::part::Role;
use attache_core::ports::store::StoreError;
use attache_core::slash_commands::CommandsFeed;
use attache_rpc::{ErrorObject, Peer, Responder};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::SessionPace;
use super::prompt::{EndedPrompt, OwnPrompts};
use super::router::ClientConnection;
use crate::limits::{ANSWER_TIME, BATCH_BYTES, READ_RETRIES, READ_RETRY};
use crate::to_wire::{WireView, write_updates};

/// Commands to a forwarder.
#[derive(Debug)]
pub(super) enum ForwarderCommand {
    /// Start again; the replay decides where the answer comes.
    Start(Box<StartForwarding>),
    /// Release the question once its call has been shown.
    Question {
        call_id: CallId,
        go: oneshot::Sender<()>,
    },
    /// Release the terminal once its call shows it.
    Terminal {
        terminal_id: String,
        go: oneshot::Sender<()>,
    },
    Ended(EndedPrompt),
    /// Answer this once every entry below this index has been shown.
    Shown(u64, oneshot::Sender<()>),
    /// The session closes: answer this after all other answers, then end.
    Stop(StopForwarding),
}

#[derive(Debug)]
pub(super) struct StopForwarding {
    pub(super) responder: Responder,
    /// Dropped when this forwarder sends nothing more; the other end waits for that.
    pub(super) left: oneshot::Sender<()>,
}

#[derive(Debug)]
pub(super) struct StartForwarding {
    pub(super) attachment: Attachment,
    pub(super) responder: Responder,
    pub(super) result: Value,
}

pub(super) struct Forwarder {
    session_id: SessionId,
    hub: Hub,
    peer: Peer,
    pace: Option<Arc<dyn SessionPace>>,
    view: Arc<WireView>,
    own: Arc<OwnPrompts>,
    commands: mpsc::UnboundedReceiver<ForwarderCommand>,
    position: Option<ReadPosition>,
    /// The calls of the run for which a question was recorded. We ask one at a time; an agent that runs
    /// elsewhere may have more of them waiting.
    asked_about: HashSet<CallId>,
    questions: Vec<(CallId, oneshot::Sender<()>)>,
    terminals: Vec<AwaitedTerminal>,
    ended: Vec<EndedPrompt>,
    awaited: Vec<(u64, oneshot::Sender<()>)>,
    /// The prompt of this connection whose turn began last.
    begun: Option<u64>,
    /// Commands that arrived while the forwarder waited for something else.
    deferred: VecDeque<ForwarderCommand>,
    stopping: Option<StopForwarding>,
    buffer: Vec<u8>,
    failures: u32,
    /// The slash commands, after the client got the first list.
    slash_commands: Option<CommandsFeed>,
}

/// A terminal that a tool releases once the client has received it.
struct AwaitedTerminal {
    terminal_id: String,
    /// Written to the buffer, which goes out with the next flush.
    written: bool,
    go: oneshot::Sender<()>,
}

/// Where the forwarder reads in the journal.
struct ReadPosition {
    live: Subscription,
    /// Held so that this connection stays in the session.
    _participant: Participant,
    /// Below this index, a load repeats everything, even what this client itself said.
    own_from: u64,
}

/// Why a forwarder stops its work.
enum Interruption {
    /// The client is gone.
    Closed,
    Store(StoreError),
    /// The client withdrew its request.
    Withdrawn,
}

impl Forwarder {
    pub(super) fn start(
        session_id: SessionId,
        connection: &ClientConnection,
        view: Arc<WireView>,
        own: Arc<OwnPrompts>,
        commands: mpsc::UnboundedReceiver<ForwarderCommand>,
    ) {
        let forwarder = Self {
            session_id,
            hub: connection.agent.hub.clone(),
            peer: connection.peer.clone(),
            pace: connection.pace.clone(),
            view,
            own,
            commands,
            position: None,
            asked_about: HashSet::new(),
            questions: Vec::new(),
            terminals: Vec::new(),
            ended: Vec::new(),
            awaited: Vec::new(),
            begun: None,
            deferred: VecDeque::new(),
            stopping: None,
            buffer: Vec::new(),
            failures: 0,
            slash_commands: None,
        };
        tokio::spawn(forwarder.run());
    }

    async fn run(mut self) {
        loop {
            if self.stopping.is_some() && self.own.is_empty() {
                break;
            }
            let step = tokio::select! {
                biased;
                changed = commands::changed(&mut self.slash_commands) => self.tell_commands(&changed).await,
                command = next_command(&mut self.deferred, &mut self.commands) => match command {
                    Some(command) => self.execute(command).await,
                    None => break,
                },
                segment = next_segment(&mut self.position) => match segment {
                    Ok(segment) => {
                        self.answer_previous_prompt(&segment).await;
                        self.forward(&segment).await
                    }
                    Err(error) => Err(Interruption::Store(error)),
                },
            };
            match step {
                Ok(()) => self.failures = 0,
                // What the client said before it was gone may still come in: it takes part until then.
                Err(Interruption::Closed) => break self.peer.ended().await,
                Err(Interruption::Withdrawn) => {}
                Err(Interruption::Store(error)) => self.wait_for_store(&error).await,
            }
        }
        self.finish();
    }

    async fn execute(&mut self, command: ForwarderCommand) -> Result<(), Interruption> {
        match command {
            ForwarderCommand::Start(start) => return self.begin(*start).await,
            ForwarderCommand::Question { call_id, go } => self.questions.push((call_id, go)),
            ForwarderCommand::Terminal { terminal_id, go } => {
                // If the call was dropped, it no longer waits for its terminal.
                self.terminals.retain(|awaited| !awaited.go.is_closed());
                self.terminals.push(AwaitedTerminal { terminal_id, written: false, go });
            }
            ForwarderCommand::Ended(ended) => self.ended.push(ended),
            ForwarderCommand::Shown(index, go) => self.awaited.push((index, go)),
            ForwarderCommand::Stop(stop) => self.stopping = Some(stop),
        }
        self.give_answers();
        Ok(())
    }

    /// Replays what belongs before the answer, answers, and continues with the live entries.
    async fn begin(&mut self, start: StartForwarding) -> Result<(), Interruption> {
        let StartForwarding { attachment, responder, result } = start;
        let Attachment { replay, mut live, head, chosen: _, commands, participant } = attachment;
        let Some(mut replay) = replay else {
            responder.ok(&result);
            participant.ready();
            self.position = Some(ReadPosition { live, _participant: participant, own_from: 0 });
            return self.tell_first_commands(commands).await;
        };
        // Drop the old position, if any: the replay contains everything that it would still have shown.
        self.position = None;
        let replayed = async {
            while let Some(segment) = replay.next().await.map_err(Interruption::Store)? {
                self.show(&segment, u64::MAX).await?;
                if responder.is_withdrawn() {
                    return Err(Interruption::Withdrawn);
                }
            }
            while live.cursor() < head {
                let segment = live.next().await.map_err(Interruption::Store)?;
                self.show(&segment, u64::MAX).await?;
            }
            self.flush().await
        };
        match replayed.await {
            Ok(()) => {
                responder.ok(&result);
                participant.ready();
                self.position = Some(ReadPosition { live, _participant: participant, own_from: head });
                self.tell_first_commands(commands).await?;
                self.give_answers();
                Ok(())
            }
            Err(stop) => {
                responder.error(match &stop {
                    Interruption::Withdrawn | Interruption::Closed => ErrorObject::request_cancelled(),
                    Interruption::Store(error) => ErrorObject::internal(error.to_string()),
                });
                // The replay is incomplete; send live entries all the same, so that the client's prompts get
                // answers.
                self.buffer.clear();
                self.position = Some(ReadPosition { live, _participant: participant, own_from: head });
                Err(stop)
            }
        }
    }

    /// The session has answered a prompt before the next turn begins, but that answer reaches us by another
    /// channel: show nothing of the next turn before it.
    async fn answer_previous_prompt(&mut self, segment: &SharedSegment) {
        let number = self.own.number_of(&segment.message_id).filter(|_| segment.role == Role::User);
        let Some(number) = number else { return };
        let Some(before) = self.begun.replace(number).filter(|before| *before != number) else { return };
        while self.own.awaits(before) {
            match tokio::time::timeout(ANSWER_TIME, self.commands.recv()).await {
                Ok(Some(ForwarderCommand::Ended(ended))) => {
                    self.ended.push(ended);
                    self.give_answers();
                }
                Ok(Some(other)) => self.deferred.push_back(other),
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn forward(&mut self, segment: &SharedSegment) -> Result<(), Interruption> {
        let own_from = self.position.as_ref().map_or(0, |position| position.own_from);
        self.show(segment, own_from).await?;
        self.flush().await?;
        self.give_answers();
        Ok(())
    }

    /// Writes the updates of a segment; skips what this client itself said from `own_from` on.
    async fn show(&mut self, segment: &SharedSegment, own_from: u64) -> Result<(), Interruption> {
        let own = segment.role == Role::User
            && segment.first_index >= own_from
            && self.own.sent(&segment.message_id);
        if own {
            return Ok(());
        }
        let segment = self.hub.brought_back(segment.clone()).await;
        self.buffer.reserve(segment.bytes.min(BATCH_BYTES));
        for entry in segment.entries() {
            if let Chunk::ToolApprovalRequest { call_id, .. } = entry.chunk {
                self.asked_about.insert(call_id.clone());
            } else if let Chunk::Start { .. } = entry.chunk {
                self.asked_about.clear();
            }
            for awaited in &mut self.terminals {
                awaited.written |= shows_terminal(entry.chunk, &awaited.terminal_id);
            }
            if let Err(error) = write_updates(entry, &self.view, &mut self.buffer) {
                tracing::error!(%error, index = entry.index, "an update could not be encoded and is left out");
            }
            if self.buffer.len() >= BATCH_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Interruption> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(pace) = &self.pace {
            pace.room_for(&self.session_id).await;
        }
        // Give the buffer away completely: a thousand idle forwarders must not keep a thousand buffers.
        let lines = std::mem::take(&mut self.buffer);
        self.peer.send_lines(lines).await.map_err(|_| Interruption::Closed)
    }

    /// Sends the answers and questions that belong before the next entry.
    fn give_answers(&mut self) {
        // Without a position we show nothing more, so there is nothing to wait for.
        let cursor = self.position.as_ref().map_or(u64::MAX, |position| position.live.cursor());
        for ended in self.ended.extract_if(.., |ended| ended.after_index() <= cursor) {
            self.own.forget(ended.number);
            ended.answer();
        }
        for (_, go) in self.awaited.extract_if(.., |(index, _)| *index <= cursor) {
            if go.send(()).is_err() {
                tracing::debug!("an answer was no longer waited for");
            }
        }
        for awaited in self.terminals.extract_if(.., |awaited| awaited.written) {
            if awaited.go.send(()).is_err() {
                tracing::debug!("a terminal was no longer waited for");
            }
        }
        for (_, go) in self.questions.extract_if(.., |(call_id, _)| self.asked_about.contains(&*call_id)) {
            if go.send(()).is_err() {
                tracing::debug!("a question was withdrawn before it was asked");
            }
        }
    }

    /// The log is unreadable: waits and tries again. In the end answers the prompts without their updates,
    /// which a later load will bring.
    async fn wait_for_store(&mut self, error: &StoreError) {
        self.failures += 1;
        tracing::warn!(%error, failures = self.failures, "updates can't be read");
        tokio::time::sleep(READ_RETRY).await;
        if self.failures >= READ_RETRIES {
            self.position = None;
            for ended in self.ended.drain(..) {
                self.own.forget(ended.number);
                ended.responder.error(ErrorObject::internal(format!(
                    "the turn has ended, but its updates can't be read: {error}; load the session again"
                )));
            }
        }
    }

    /// Sends the answers still owed, even if updates were lost.
    fn finish(self) {
        for ended in self.ended {
            ended.answer();
        }
        if let Some(StopForwarding { responder, left }) = self.stopping {
            responder.ok(&Value::Object(serde_json::Map::new()));
            drop(left);
        }
    }
}

async fn next_command(
    deferred: &mut VecDeque<ForwarderCommand>,
    commands: &mut mpsc::UnboundedReceiver<ForwarderCommand>,
) -> Option<ForwarderCommand> {
    match deferred.pop_front() {
        Some(command) => Some(command),
        None => commands.recv().await,
    }
}

/// The next entries; without a position, waits for ever.
async fn next_segment(position: &mut Option<ReadPosition>) -> Result<SharedSegment, StoreError> {
    match position {
        Some(position) => position.live.next().await,
        None => std::future::pending().await,
    }
}

/// Whether this chunk shows a call with this terminal in it.
fn shows_terminal(chunk: &Chunk, terminal_id: &str) -> bool {
    let Chunk::ToolOutputAvailable { rest, .. } = chunk else { return false };
    let content = rest.tool_metadata().and_then(|metadata| own(metadata)?.get("content"));
    let mut blocks = content.and_then(Value::as_array).into_iter().flatten();
    blocks.any(|block| block["terminal_id"] == terminal_id)
}

/// A forwarder that has ended drops what it gets, which counts as its answer; that happens only when the
/// connection is gone.
pub(super) fn send(forwarder: &mpsc::UnboundedSender<ForwarderCommand>, command: ForwarderCommand) {
    if forwarder.send(command).is_err() {
        tracing::debug!("a forwarder has ended already");
    }
}
