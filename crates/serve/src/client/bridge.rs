//! An editor's messages to a server elsewhere and back, over connections that come and go.

use std::time::Duration;

use attache_rpc::{MessageSink, MessageSource, Received};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connector::{ConnectFailure, OpenedSocket, ReachedServer, ServerConnector};
use super::link::{EditorEnds, ForwardEnd, ServerLink};
use super::memory::ConversationMemory;
use crate::limits::{GIVE_UP_TIME, INCOMING, LAST_ANSWERS, LAST_LINE, LEAVE_TIME, PIECE_BYTES, RETRY_PAUSES};

/// Runs until the editor has left, or `end` says that it is to be treated so. A lost server is waited for. What
/// the editor said before reaches the server, and what it asked is answered, within [`LEAVE_TIME`]: only turns
/// under way are not waited for.
pub async fn bridge(
    server: ReachedServer,
    source: impl MessageSource,
    sink: impl MessageSink,
    end: CancellationToken,
) {
    let ReachedServer { connector, first } = server;
    let (says, said) = mpsc::channel(INCOMING);
    let (told, answers) = mpsc::channel(INCOMING);
    let (left, end) = (CancellationToken::new(), end.child_token());
    let reading = tokio::spawn(read(source, says, left.clone(), end.clone()));
    let mut writing = tokio::spawn(write(sink, answers, end.clone()));
    let ends = EditorEnds { from_editor: said, to_editor: told, memory: ConversationMemory::default() };
    let mut bridge = Bridge { connector, ends, link: ServerLink::default(), left: left.clone() };
    tokio::select! {
        biased;
        () = bridge.run(first) => {}
        () = out_of_time(&left, &end) => {
            tracing::warn!("the server did not take everything that the editor had said");
        }
    }
    reading.abort();
    let last_answers = async {
        bridge.finish().await;
        (&mut writing).await
    };
    match tokio::time::timeout(LAST_ANSWERS, last_answers).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the editor's output did not end well"),
        Err(_) => {
            writing.abort();
            tracing::info!("the editor did not take its last answers");
        }
    }
}

async fn out_of_time(left: &CancellationToken, end: &CancellationToken) {
    tokio::select! {
        () = left.cancelled() => {}
        () = end.cancelled() => {}
    }
    tokio::time::sleep(LEAVE_TIME).await;
}

async fn read(
    mut source: impl MessageSource,
    said: mpsc::Sender<Bytes>,
    left: CancellationToken,
    end: CancellationToken,
) {
    let _left = left.drop_guard();
    loop {
        let received = tokio::select! {
            biased;
            received = source.receive(None) => received,
            () = silent_at_the_end(&end) => return,
        };
        let line = match received {
            Received::Message(line) => Bytes::from(line.into_owned()),
            // The server says what is wrong with a line, this one included.
            Received::Unusable(_) => Bytes::from_static(b"\"a line that is too long\""),
            Received::End => return,
        };
        if !line.trim_ascii().is_empty() && said.send(line).await.is_err() {
            return;
        }
    }
}

/// What was written before the end may still lie in the pipe.
async fn silent_at_the_end(end: &CancellationToken) {
    end.cancelled().await;
    tokio::time::sleep(LAST_LINE).await;
}

/// An editor that can't be told anything has left, whatever it still says.
async fn write(mut sink: impl MessageSink, mut answers: mpsc::Receiver<Bytes>, end: CancellationToken) {
    let _end = end.drop_guard();
    let mut batch = BytesMut::new();
    while let Some(line) = answers.recv().await {
        batch.clear();
        put(&mut batch, &line);
        while batch.len() < PIECE_BYTES
            && let Ok(line) = answers.try_recv()
        {
            put(&mut batch, &line);
        }
        if let Err(error) = write_all(&mut sink, &batch).await {
            return tracing::debug!(%error, "the editor can't be told any more");
        }
    }
    if let Err(error) = sink.close().await {
        tracing::debug!(%error, "the editor's output was closed already");
    }
}

fn put(batch: &mut BytesMut, line: &[u8]) {
    batch.put_slice(line);
    batch.put_u8(b'\n');
}

async fn write_all(sink: &mut impl MessageSink, mut rest: &[u8]) -> std::io::Result<()> {
    while !rest.is_empty() {
        let written = sink.write(rest).await?;
        rest = &rest[written..];
    }
    sink.flush().await
}

struct Bridge {
    connector: ServerConnector,
    ends: EditorEnds,
    link: ServerLink,
    /// Fires when the editor has said everything.
    left: CancellationToken,
}

/// A server that was lost, until there is one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LostServer {
    since: Instant,
    memory: ServerMemory,
    absence: ServerAbsence,
}

/// Whether it may still know the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerMemory {
    Remembers,
    Forgot,
}

/// Whether the editor gets a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerAbsence {
    Short,
    Long,
}

/// The answer to requests that their editor does not wait for.
const LEFT: &str = "the client has left before this was answered; a turn goes on without it";

/// The answer to the editor's requests while there is no server.
const GONE: &str = "the server can't be reached; it is tried again until it is back";

/// The same when the server sent more at once than a client takes.
const TOO_LONG: &str =
    "the server sent a message that is too long (more than 32 MiB) while this was under way";

impl Bridge {
    async fn run(&mut self, first: OpenedSocket) {
        let mut opened = first;
        loop {
            let memory = match self.link.forward(opened, &mut self.ends).await {
                ForwardEnd::EditorLeft => return,
                ForwardEnd::SocketLost if self.link.lost().is_some() => ServerMemory::Remembers,
                ForwardEnd::SocketLost | ForwardEnd::ConnectionOver => {
                    self.forget("the server ended the connection while this was under way").await;
                    ServerMemory::Forgot
                }
                ForwardEnd::MessageTooLong => {
                    self.forget(TOO_LONG).await;
                    ServerMemory::Forgot
                }
            };
            let lost = LostServer { since: Instant::now(), memory, absence: ServerAbsence::Short };
            match self.reach_again(lost).await {
                Some(next) => opened = next,
                None => return,
            }
        }
    }

    /// Tries until there is a server again. `None`: the editor has left meanwhile.
    async fn reach_again(&mut self, mut lost: LostServer) -> Option<OpenedSocket> {
        let mut tries = 0_usize;
        loop {
            let pause = match self.left.is_cancelled() {
                true => RETRY_PAUSES[0],
                false => RETRY_PAUSES[tries.min(RETRY_PAUSES.len() - 1)],
            };
            if !self.pause(pause, &mut lost).await {
                return None;
            }
            tries += 1;
            if lost.memory == ServerMemory::Remembers {
                match self.connector.open(self.link.lost().as_ref()).await {
                    Ok(opened) => return Some(opened),
                    Err(ConnectFailure::Forgotten(_)) => {
                        let reason = "the server was started anew while this was under way; load the session to see it";
                        self.forget(reason).await;
                        lost.memory = ServerMemory::Forgot;
                    }
                    Err(failure) => {
                        tracing::debug!(%failure, "the server is tried again");
                        continue;
                    }
                }
            }
            match self.connector.open(None).await {
                Ok(opened) => {
                    self.link = ServerLink::begin(self.ends.memory.introduction());
                    return Some(opened);
                }
                Err(failure) => tracing::debug!(%failure, "the server is tried again"),
            }
        }
    }

    /// Waits. A server that is away for too long counts as gone: what was under way ends with an error, and
    /// what the editor wants meanwhile, too. False: the editor has left, and a server would be told nothing
    /// more.
    async fn pause(&mut self, time: Duration, lost: &mut LostServer) -> bool {
        let (end, give_up) = (Instant::now() + time, lost.since + GIVE_UP_TIME);
        let has_left = self.left.is_cancelled();
        loop {
            let waits = has_left && self.has_more_to_say(lost);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(end) => return true,
                () = tokio::time::sleep_until(give_up), if lost.absence == ServerAbsence::Short => {
                    self.forget(GONE).await;
                    (lost.memory, lost.absence) = (ServerMemory::Forgot, ServerAbsence::Long);
                }
                line = self.ends.from_editor.recv(), if lost.absence == ServerAbsence::Long => {
                    let Some(line) = line else { return false };
                    if let Some(refused) = self.ends.memory.refuse(&line, GONE)
                        && self.ends.to_editor.send(refused).await.is_err()
                    {
                        return false;
                    }
                }
                // There is no time to lose now.
                () = self.left.cancelled(), if !waits => return self.has_more_to_say(lost),
            }
        }
    }

    /// Whether a server that comes back would still hear something of an editor that has left.
    fn has_more_to_say(&self, lost: &LostServer) -> bool {
        lost.absence == ServerAbsence::Short
            && !(self.ends.from_editor.is_empty() && self.link.is_confirmed() && self.ends.want_nothing())
    }

    /// The editor has left: nothing stays without an answer.
    async fn finish(mut self) {
        for line in self.ends.memory.refuse_owed(LEFT) {
            if self.ends.to_editor.send(line).await.is_err() {
                return;
            }
        }
    }

    /// The conversation has to begin anew: nothing that was under way is answered any more.
    async fn forget(&mut self, reason: &str) {
        self.link = ServerLink::default();
        for line in self.ends.memory.forget_server(reason) {
            if self.ends.to_editor.send(line).await.is_err() {
                return;
            }
        }
    }
}
