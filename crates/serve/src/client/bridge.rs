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
use crate::limits::{GIVE_UP_TIME, INCOMING, PIECE_BYTES, RETRY_PAUSES};

/// Runs until the editor leaves. A lost server is waited for.
pub async fn bridge(server: ReachedServer, source: impl MessageSource, sink: impl MessageSink) {
    let ReachedServer { connector, first } = server;
    let (says, said) = mpsc::channel(INCOMING);
    let (told, answers) = mpsc::channel(INCOMING);
    let left = CancellationToken::new();
    let reading = tokio::spawn(read(source, says, left.clone()));
    let writing = tokio::spawn(write(sink, answers, left.clone()));
    let ends = EditorEnds { from_editor: said, to_editor: told, memory: ConversationMemory::default() };
    Bridge { connector, ends, link: ServerLink::default(), left }.run(first).await;
    reading.abort();
    if let Err(error) = writing.await {
        tracing::error!(%error, "the editor's output did not end well");
    }
}

async fn read(mut source: impl MessageSource, said: mpsc::Sender<Bytes>, left: CancellationToken) {
    let _left = left.drop_guard();
    loop {
        let line = match source.receive(None).await {
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

async fn write(mut sink: impl MessageSink, mut answers: mpsc::Receiver<Bytes>, left: CancellationToken) {
    let _left = left.drop_guard();
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
    /// Fires when the editor has left.
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

/// The answer to the editor's requests while there is no server.
const GONE: &str = "the server can't be reached; it is tried again until it is back";

impl Bridge {
    async fn run(mut self, first: OpenedSocket) {
        let mut opened = first;
        loop {
            let memory = match self.link.forward(opened, &mut self.ends).await {
                ForwardEnd::EditorLeft => return,
                ForwardEnd::SocketLost => ServerMemory::Remembers,
                ForwardEnd::ConnectionOver => {
                    self.forget("the server ended the connection while this was under way").await;
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
        while self.pause(RETRY_PAUSES[tries.min(RETRY_PAUSES.len() - 1)], &mut lost).await {
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
        None
    }

    /// Waits. A server that is away for too long counts as gone: what was under way ends with an error, and
    /// what the editor wants meanwhile, too. False: the editor has left.
    async fn pause(&mut self, time: Duration, lost: &mut LostServer) -> bool {
        let (end, give_up) = (Instant::now() + time, lost.since + GIVE_UP_TIME);
        loop {
            tokio::select! {
                biased;
                () = self.left.cancelled() => return false,
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
