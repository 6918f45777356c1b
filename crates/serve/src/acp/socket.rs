//! A WebSocket that carries a connection: text frames both ways, one message each, and a ping now and then.

use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error as SocketError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::connection::{AcpConnection, AdmittedCaller, CarrierGrip, MessageNotTaken};
use super::still_readable::{StillReadable, WriteFailure};
use crate::limits::{FAREWELL_TIME, LAST_READ, PIECE_BYTES, PING_TIME, PONG_TIME, UNREAD_TIME};
use crate::metrics::ServerMetrics;
use crate::outbox::{OutboxEnd, OutboxReader, ReadPiece};

/// Whether each message says its number, so that the client can come back with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventIds {
    Told,
    Untold,
}

/// Why a WebSocket no longer carries its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketEnd {
    /// The client said that it is done, or the connection is over.
    Left,
    /// It broke.
    Lost,
    /// Its client came back over another one.
    TakenOver,
}

/// A reason to close, as it is sent to the client.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    code: CloseCode,
    reason: &'static str,
    end: SocketEnd,
}

impl Farewell {
    fn lost(code: CloseCode, reason: &'static str) -> Self {
        Self { code, reason, end: SocketEnd::Lost }
    }
}

/// How reading or writing ended: with a close frame to send, or without a client to send it to.
enum PumpEnd {
    Say(Farewell),
    Silent(SocketEnd),
}

/// Over an upgraded connection; in tests over a pipe.
pub(super) struct CarriedSocket<S> {
    sink: SplitSink<WebSocketStream<StillReadable<S>>, Message>,
    frames: FrameReader<StillReadable<S>>,
    failure: WriteFailure,
}

/// What the client sends.
struct FrameReader<S> {
    stream: SplitStream<WebSocketStream<S>>,
    /// Read, and not yet taken: who reads on takes it first.
    in_hand: Option<Bytes>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> CarriedSocket<S> {
    pub(super) async fn new(io: S, largest: usize) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(largest))
            .max_frame_size(Some(largest))
            .write_buffer_size(PIECE_BYTES)
            .read_buffer_size(16 * 1024);
        let (io, failure) = StillReadable::new(io);
        let (sink, stream) = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await.split();
        Self { sink, frames: FrameReader { stream, in_hand: None }, failure }
    }

    pub(super) async fn carry(
        mut self,
        connection: &AcpConnection,
        mut reader: OutboxReader,
        grip: &CarrierGrip,
        ids: EventIds,
    ) -> SocketEnd {
        let heard = HeardTime::now();
        let metrics = connection.admitted.admission.metrics();
        let end = tokio::select! {
            biased;
            () = grip.let_go.cancelled() => PumpEnd::Say(Farewell {
                code: CloseCode::Policy,
                reason: "taken over by another WebSocket",
                end: SocketEnd::TakenOver,
            }),
            end = write(&mut self.sink, &mut reader, ids, metrics, &self.failure) => end,
            end = read(&mut self.frames, connection, &heard) => end,
            () = heard.too_long_ago() => PumpEnd::Say(Farewell::lost(CloseCode::Policy, "no pong came")),
        };
        drop(reader);
        let end = match end {
            PumpEnd::Silent(SocketEnd::Lost) if self.failure.has_come() => {
                self.last_messages(connection, &heard, grip, ids).await
            }
            other => other,
        };
        match end {
            PumpEnd::Say(farewell) => {
                self.say(farewell).await;
                farewell.end
            }
            PumpEnd::Silent(end) => end,
        }
    }

    /// What its client wrote before it left, once it can't be written to any more.
    async fn last_messages(
        &mut self,
        connection: &AcpConnection,
        heard: &HeardTime,
        grip: &CarrierGrip,
        ids: EventIds,
    ) -> PumpEnd {
        match ids {
            EventIds::Told => {}
            // It can't come back: what it does not read must not hold up what it said.
            EventIds::Untold => connection.outbox.end(OutboxEnd::Closed),
        }
        let reading = async {
            loop {
                if let Err(end) = read_message(&mut self.frames, connection, heard).await {
                    return end;
                }
            }
        };
        tokio::select! {
            biased;
            // It sends again what was not taken.
            () = grip.let_go.cancelled() => PumpEnd::Silent(SocketEnd::TakenOver),
            end = reading => end,
            () = tokio::time::sleep(LAST_READ) => PumpEnd::Silent(SocketEnd::Lost),
        }
    }

    /// Sends the close frame and waits a moment for the client's; messages that come meanwhile are dropped.
    async fn say(&mut self, farewell: Farewell) {
        let frame = CloseFrame { code: farewell.code, reason: Utf8Bytes::from_static(farewell.reason) };
        let said = async {
            self.sink.send(Message::Close(Some(frame))).await?;
            if farewell.end == SocketEnd::TakenOver {
                // The next one waits for this one to let go.
                return Ok(());
            }
            while let Some(message) = self.frames.stream.next().await {
                message?;
            }
            Ok::<_, SocketError>(())
        };
        match tokio::time::timeout(FAREWELL_TIME, said).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a WebSocket did not take its farewell"),
            Err(_) => tracing::debug!("a WebSocket did not answer its farewell"),
        }
    }
}

async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    reader: &mut OutboxReader,
    ids: EventIds,
    metrics: &ServerMetrics,
    failure: &WriteFailure,
) -> PumpEnd {
    let mut pings = tokio::time::interval_at(Instant::now() + PING_TIME, PING_TIME);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sent = tokio::select! {
            taken = reader.take() => match taken {
                ReadPiece::Messages(messages) => {
                    metrics.sent_over_socket(messages.iter().map(|(_, line)| line.len()).sum());
                    send_all(sink, messages, ids).await
                }
                ReadPiece::End(OutboxEnd::Closed) => {
                    let end = SocketEnd::Left;
                    let reason = "the connection is over";
                    return PumpEnd::Say(Farewell { code: CloseCode::Normal, reason, end });
                }
                ReadPiece::End(OutboxEnd::GoingDown) => {
                    let end = SocketEnd::Left;
                    let reason = "the server goes down; come back later";
                    return PumpEnd::Say(Farewell { code: CloseCode::Restart, reason, end });
                }
                ReadPiece::Reset(_) => {
                    return PumpEnd::Say(Farewell {
                        code: CloseCode::Error,
                        reason: "messages were lost; begin anew",
                        end: SocketEnd::Left,
                    });
                }
            },
            // A pong says that everything before its ping has arrived.
            _ = pings.tick() => {
                let place = Bytes::copy_from_slice(&reader.place().to_be_bytes());
                sink.send(Message::Ping(place)).await
            }
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a WebSocket broke");
            return PumpEnd::Silent(SocketEnd::Lost);
        }
        if failure.has_come() {
            return PumpEnd::Silent(SocketEnd::Lost);
        }
    }
}

async fn send_all<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    messages: Vec<(u64, Bytes)>,
    ids: EventIds,
) -> Result<(), SocketError> {
    for (number, line) in messages {
        let line = match ids {
            EventIds::Untold => line,
            EventIds::Told => numbered(number, &line),
        };
        match Utf8Bytes::try_from(line) {
            Ok(text) => sink.feed(Message::Text(text)).await?,
            Err(error) => tracing::error!(%error, "a message of ours is no text and is left out"),
        }
    }
    sink.flush().await
}

/// The message with its number in front: it is an object, whatever else it is.
fn numbered(number: u64, line: &[u8]) -> Bytes {
    let rest = line.strip_prefix(b"{").unwrap_or(line);
    let mut text = format!("{{\"_meta\":{{\"attache/eventId\":{number}}},").into_bytes();
    text.extend_from_slice(rest);
    text.into()
}

/// Leaves its client's messages where they are while it has sent too much: TCP holds it up.
async fn pause(connection: &AcpConnection, heard: &HeardTime) {
    let AdmittedCaller { caller, admission, .. } = &connection.admitted;
    while let Some(wait) = admission.wait_for_bytes(caller) {
        tokio::time::sleep(wait.min(UNREAD_TIME)).await;
        heard.set();
    }
}

async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut FrameReader<S>,
    connection: &AcpConnection,
    heard: &HeardTime,
) -> PumpEnd {
    loop {
        pause(connection, heard).await;
        if let Err(end) = read_message(frames, connection, heard).await {
            return end;
        }
    }
}

/// Safe to drop and call again.
async fn read_message<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut FrameReader<S>,
    connection: &AcpConnection,
    heard: &HeardTime,
) -> Result<(), PumpEnd> {
    if let Some(message) = &frames.in_hand {
        let taken = connection.take_frame(message.clone()).await;
        frames.in_hand = None;
        return taken.map_err(|not_taken| match not_taken {
            MessageNotTaken::Over => PumpEnd::Silent(SocketEnd::Left),
            MessageNotTaken::Busy => PumpEnd::Say(Farewell::lost(CloseCode::Again, "too much is unanswered")),
        });
    }
    let message = match frames.stream.next().await {
        Some(Ok(message)) => message,
        Some(Err(error)) => return Err(wrong_frame(&error)),
        None => return Err(PumpEnd::Silent(SocketEnd::Lost)),
    };
    match message {
        Message::Text(text) => {
            frames.in_hand = Some(text.into());
            Ok(())
        }
        Message::Binary(_) => {
            let reason = "messages are sent as text";
            Err(PumpEnd::Say(Farewell::lost(CloseCode::Unsupported, reason)))
        }
        Message::Pong(payload) => {
            heard.set();
            if let Ok(place) = <[u8; 8]>::try_from(&*payload) {
                connection.outbox.acknowledge(u64::from_be_bytes(place));
            }
            Ok(())
        }
        Message::Close(frame) => {
            let done = frame.is_some_and(|frame| frame.code == CloseCode::Normal);
            Err(PumpEnd::Silent(if done { SocketEnd::Left } else { SocketEnd::Lost }))
        }
        Message::Ping(_) | Message::Frame(_) => Ok(()),
    }
}

/// The reason that a client gets for frames that can't be read.
fn wrong_frame(error: &SocketError) -> PumpEnd {
    let say = |code, reason| PumpEnd::Say(Farewell::lost(code, reason));
    match error {
        SocketError::Capacity(CapacityError::MessageTooLong { .. }) => {
            say(CloseCode::Size, "the message is too long (limits.max_line_bytes)")
        }
        SocketError::Utf8(_) => say(CloseCode::Invalid, "the text is no UTF-8"),
        SocketError::Protocol(_) => say(CloseCode::Protocol, "this is no frame of a WebSocket client"),
        other => {
            tracing::debug!(error = %other, "a WebSocket broke");
            PumpEnd::Silent(SocketEnd::Lost)
        }
    }
}

/// When the client last answered a ping.
struct HeardTime(Mutex<Instant>);

impl HeardTime {
    fn now() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    async fn too_long_ago(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + PONG_TIME;
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::Extensions;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::mpsc;

    use super::super::connection::CarrierKind;
    use super::super::routes::{Routes, StreamLayout};
    use super::*;
    use crate::admission::{Admission, RemoteCaller, ServeLimits};
    use crate::outbox::{Outbox, StreamName};

    /// A connection, its client's end, and how its WebSocket ends.
    async fn carried() -> (Arc<AcpConnection>, DuplexStream, tokio::task::JoinHandle<SocketEnd>) {
        let (incoming, _received) = mpsc::channel(1);
        carried_into(incoming).await
    }

    /// The same with what its client says.
    async fn carried_into(
        incoming: mpsc::Sender<Bytes>,
    ) -> (Arc<AcpConnection>, DuplexStream, tokio::task::JoinHandle<SocketEnd>) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (outbox, routes) = (Outbox::new(usize::MAX), Arc::new(Routes::new(StreamLayout::One)));
        let kind = CarrierKind::WebSocket;
        let admission = Admission::new(ServeLimits::default(), ServerMetrics::default());
        let caller = RemoteCaller::of(&Extensions::new());
        let place = admission.connect(&caller).unwrap();
        let admitted = AdmittedCaller { caller, admission, _place: place };
        let id = "id".to_owned();
        let connection = Arc::new(AcpConnection::new(id, kind, outbox, routes, incoming, admitted));
        let reader = connection.outbox.read(StreamName::Connection).unwrap();
        let (socket, served) = (CarriedSocket::new(near, 1 << 16).await, connection.clone());
        let carrying = tokio::spawn(async move {
            let grip = served.grip().await.unwrap();
            socket.carry(&served, reader, &grip, EventIds::Told).await
        });
        (connection, far, carrying)
    }

    #[tokio::test(start_paused = true)]
    async fn who_answers_no_ping_is_cut_off_and_may_come_back() {
        let (_connection, mut client, carrying) = carried().await;
        let begun = Instant::now();
        // Nothing is answered.
        assert_eq!(carrying.await.unwrap(), SocketEnd::Lost);
        assert!(
            begun.elapsed() >= PONG_TIME && begun.elapsed() < PONG_TIME + PING_TIME,
            "{:?}",
            begun.elapsed()
        );
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.unwrap();
        let code =
            [&[0x88, 2 + "no pong came".len() as u8][..], &1008_u16.to_be_bytes(), b"no pong came"].concat();
        assert!(said.ends_with(&code), "{said:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_answers_stays_and_what_has_arrived_is_forgotten() {
        let (connection, client, carrying) = carried().await;
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        assert!(connection.outbox.put(None, Bytes::from_static(b"{}")));
        let (mut sink, mut stream) = client.split();
        let reading = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
        tokio::time::sleep(PONG_TIME * 3).await;
        assert!(!carrying.is_finished());
        assert!(!connection.outbox.can_resume(0) && connection.outbox.can_resume(1));
        sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })))
            .await
            .unwrap();
        assert_eq!(carrying.await.unwrap(), SocketEnd::Left);
        reading.await.unwrap();
    }

    /// A text of a client, masked with zeros.
    fn text(text: &str) -> Vec<u8> {
        [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0], text.as_bytes()].concat()
    }

    #[tokio::test]
    async fn what_a_client_wrote_before_it_was_gone_is_taken() {
        // Its queue is full now and then, and there is something to tell it at any moment.
        for told in [0, 1, 100] {
            let (incoming, mut received) = mpsc::channel(1);
            let (connection, mut client, carrying) = carried_into(incoming).await;
            let (ping, close) = ([0x89, 0x80, 0, 0, 0, 0], [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]);
            let said =
                [text("one"), ping.to_vec(), text("two"), ping.to_vec(), text("three"), close.to_vec()];
            client.write_all(&said.concat()).await.unwrap();
            drop(client);
            for _ in 0..told {
                connection.outbox.put(None, Bytes::from_static(b"{}"));
            }
            for expected in ["one", "two", "three"] {
                assert_eq!(received.recv().await.as_deref(), Some(expected.as_bytes()), "{told}");
            }
            assert_eq!(carrying.await.unwrap(), SocketEnd::Left);
        }
    }

    #[test]
    fn a_number_stands_in_front_of_everything_else() {
        let line = numbered(7, br#"{"jsonrpc":"2.0","id":1,"result":null}"#);
        let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["_meta"]["attache/eventId"], 7);
        assert_eq!((&read["jsonrpc"], &read["id"]), (&"2.0".into(), &1.into()));
    }
}
