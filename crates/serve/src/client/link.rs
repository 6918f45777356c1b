//! Messages both ways over WebSockets that may break: what was sent is kept until the server has it, what was
//! received is counted.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use super::connector::{KnownConnection, LostConnection, OpenedSocket, ServerSocket};
use super::memory::ConversationMemory;
use crate::limits::{ANSWERS_TIME, FAREWELL_TIME, PING_TIME, PONG_TIME, UNCONFIRMED_BYTES};

/// The text before a message's number, and the text after it.
const NUMBER: &[u8] = br#"{"_meta":{"attache/eventId":"#;
const BEHIND_NUMBER: &[u8] = b"},";

/// How a WebSocket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardEnd {
    /// It broke, or the server sent us away; the connection may still be there.
    SocketLost,
    /// The server ended the connection itself.
    ConnectionOver,
    /// The server sent more at once than is taken; resumed, it would send it again.
    MessageTooLong,
    /// The editor closed its side, and the server has what it said.
    EditorLeft,
}

/// Whether the editor still says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditorSide {
    Open,
    /// It has said everything, and its last answers are waited for until then.
    Ended(Instant),
}

impl EditorSide {
    /// Nothing more is to be said or heard, or there is no time for it.
    fn is_through(self, link: &ServerLink, ends: &EditorEnds) -> bool {
        match self {
            Self::Open => false,
            Self::Ended(answers_until) => {
                link.is_confirmed() && ends.want_nothing() || Instant::now() >= answers_until
            }
        }
    }

    async fn out_of_time(self) {
        match self {
            Self::Open => std::future::pending().await,
            Self::Ended(answers_until) => tokio::time::sleep_until(answers_until).await,
        }
    }
}

/// Both directions of the editor's stream, and what is remembered of it.
#[derive(Debug)]
pub(super) struct EditorEnds {
    pub(super) from_editor: mpsc::Receiver<Bytes>,
    pub(super) to_editor: mpsc::Sender<Bytes>,
    pub(super) memory: ConversationMemory,
}

impl EditorEnds {
    /// There is room, unless the editor is left: one that does not listen any more may still have something to
    /// say.
    fn tell(&self, line: Bytes) {
        if let Err(error) = self.to_editor.try_send(line) {
            tracing::debug!(%error, "the editor can't be told any more");
        }
    }

    fn is_full(&self) -> bool {
        self.to_editor.capacity() == 0 && !self.to_editor.is_closed()
    }

    /// Whether an editor that has said everything waits for no answer either.
    pub(super) fn want_nothing(&self) -> bool {
        self.to_editor.is_closed() || !self.memory.owes_answers()
    }
}

/// One connection to a server, over however many WebSockets.
#[derive(Debug, Default)]
pub(super) struct ServerLink {
    id: Option<String>,
    last: u64,
    /// Sent, but not confirmed; the first one has the number `confirmed`.
    unconfirmed: VecDeque<Bytes>,
    unconfirmed_bytes: usize,
    /// How many of our messages the server has.
    confirmed: u64,
    /// Whether it was asked for more of them.
    is_asked: bool,
}

impl ServerLink {
    /// Whether the server has everything that was said.
    pub(super) fn is_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// What a server needs to go on with this connection.
    pub(super) fn lost(&self) -> Option<LostConnection> {
        self.id.as_ref().map(|id| LostConnection { id: id.clone(), last: self.last })
    }

    /// A new connection, whose first messages are these.
    pub(super) fn begin(first: impl IntoIterator<Item = Bytes>) -> Self {
        let mut link = Self::default();
        first.into_iter().for_each(|message| link.keep(message));
        link
    }

    /// Forwards messages in both directions until the WebSocket ends, and keeps what a new one would need.
    pub(super) async fn forward(&mut self, opened: OpenedSocket, ends: &mut EditorEnds) -> ForwardEnd {
        self.known_as(opened.known_as);
        let (mut sink, mut stream) = opened.socket.split();
        if self.send_again(&mut sink).await.is_err() {
            return ForwardEnd::SocketLost;
        }
        let mut pings = tokio::time::interval_at(Instant::now() + PING_TIME, PING_TIME);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if self.ask_for_rest(&mut sink).await.is_err() {
            return ForwardEnd::SocketLost;
        }
        let (mut heard, mut editor) = (Instant::now(), EditorSide::Open);
        loop {
            if editor.is_through(self, ends) {
                self.leave(&mut sink, &mut stream, ends).await;
                return ForwardEnd::EditorLeft;
            }
            let has_room = self.unconfirmed_bytes < UNCONFIRMED_BYTES && editor == EditorSide::Open;
            let sent = tokio::select! {
                biased;
                message = next_with_room(&mut stream, &ends.to_editor) => match message {
                    Ok(message) => {
                        heard = Instant::now();
                        match self.take(message, ends) {
                            TakenFrame::Nothing => Ok(()),
                            TakenFrame::Confirmed => self.ask_for_rest(&mut sink).await,
                            TakenFrame::End(end) => return end,
                        }
                    }
                    Err(end) => return end,
                },
                line = ends.from_editor.recv(), if has_room => match line {
                    None => {
                        editor = EditorSide::Ended(Instant::now() + ANSWERS_TIME);
                        Ok(())
                    }
                    Some(line) => match ends.memory.outgoing(line) {
                        None => Ok(()),
                        Some(message) => self.say(&mut sink, message).await,
                    },
                },
                _ = pings.tick() => {
                    // While the editor reads nothing, neither do we.
                    if ends.is_full() {
                        heard = Instant::now();
                    }
                    match heard.elapsed() > PONG_TIME {
                        true => return ForwardEnd::SocketLost,
                        false => self.ask(&mut sink).await,
                    }
                }
                () = editor.out_of_time() => Ok(()),
            };
            if sent.is_err() {
                return ForwardEnd::SocketLost;
            }
        }
    }

    fn known_as(&mut self, connection: Option<KnownConnection>) {
        self.confirm(connection.as_ref().map_or(0, |connection| connection.received));
        self.id = connection.map(|connection| connection.id);
    }

    async fn send_again(&self, sink: &mut SplitSink<ServerSocket, Message>) -> Result<(), SocketError> {
        for message in &self.unconfirmed {
            send(sink, message.clone()).await?;
        }
        Ok(())
    }

    async fn say(
        &mut self,
        sink: &mut SplitSink<ServerSocket, Message>,
        message: Bytes,
    ) -> Result<(), SocketError> {
        self.keep(message.clone());
        send(sink, message).await?;
        match self.is_asked {
            true => Ok(()),
            false => self.ask_for_rest(sink).await,
        }
    }

    /// Asks whether the server has what is not confirmed yet, where there is something.
    async fn ask_for_rest(&mut self, sink: &mut SplitSink<ServerSocket, Message>) -> Result<(), SocketError> {
        self.is_asked = !self.is_confirmed();
        if self.is_asked { self.ask(sink).await } else { Ok(()) }
    }

    /// A pong to this says that the server has everything up to here.
    async fn ask(&self, sink: &mut SplitSink<ServerSocket, Message>) -> Result<(), SocketError> {
        let sent = self.confirmed + self.unconfirmed.len() as u64;
        sink.send(Message::Ping(Bytes::copy_from_slice(&sent.to_be_bytes()))).await
    }

    fn keep(&mut self, message: Bytes) {
        self.unconfirmed_bytes += message.len();
        self.unconfirmed.push_back(message);
    }

    fn confirm(&mut self, received: u64) {
        while self.confirmed < received {
            let Some(message) = self.unconfirmed.pop_front() else { return };
            self.unconfirmed_bytes -= message.len();
            self.confirmed += 1;
        }
    }

    /// Says goodbye, so that the server need not wait for us to come back, and hears it out: what lies unread
    /// when a socket is closed makes it break, for the server too.
    async fn leave(
        &mut self,
        sink: &mut SplitSink<ServerSocket, Message>,
        stream: &mut SplitStream<ServerSocket>,
        ends: &mut EditorEnds,
    ) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
        let left = async {
            sink.send(Message::Close(Some(frame))).await?;
            while let Some(message) = stream.next().await {
                if let TakenFrame::End(_) = self.take(message?, ends) {
                    break;
                }
            }
            Ok::<_, SocketError>(())
        };
        match tokio::time::timeout(FAREWELL_TIME, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the server did not answer the goodbye"),
            Err(_) => tracing::debug!("the server did not answer the goodbye in time"),
        }
    }

    fn take(&mut self, message: Message, ends: &mut EditorEnds) -> TakenFrame {
        match message {
            Message::Text(text) => {
                let (number, line) = without_number(text.into());
                if number.is_some_and(|number| number <= self.last) {
                    return TakenFrame::Nothing;
                }
                self.last = number.unwrap_or(self.last);
                if let Some(line) = ends.memory.incoming(line) {
                    ends.tell(line);
                }
                TakenFrame::Nothing
            }
            Message::Pong(payload) => match <[u8; 8]>::try_from(&*payload) {
                Ok(count) => {
                    self.confirm(u64::from_be_bytes(count));
                    TakenFrame::Confirmed
                }
                Err(_) => TakenFrame::Nothing,
            },
            Message::Close(frame) => {
                let code: u16 = frame.map_or(0, |frame| frame.code.into());
                // The server ended the connection (1000, 1011) or itself (1012).
                TakenFrame::End(if [1000, 1011, 1012].contains(&code) {
                    ForwardEnd::ConnectionOver
                } else {
                    ForwardEnd::SocketLost
                })
            }
            Message::Ping(_) | Message::Binary(_) | Message::Frame(_) => TakenFrame::Nothing,
        }
    }
}

enum TakenFrame {
    Nothing,
    Confirmed,
    End(ForwardEnd),
}

/// Waits until the editor can be told one message more: its own messages are sent meanwhile.
async fn next_with_room(
    stream: &mut SplitStream<ServerSocket>,
    to_editor: &mpsc::Sender<Bytes>,
) -> Result<Message, ForwardEnd> {
    // Nobody else puts anything in. Once it is closed, everything goes nowhere.
    drop(to_editor.reserve().await);
    next(stream).await
}

async fn next(stream: &mut SplitStream<ServerSocket>) -> Result<Message, ForwardEnd> {
    match stream.next().await {
        Some(Ok(message)) => Ok(message),
        Some(Err(SocketError::Capacity(error))) => {
            tracing::warn!(%error, "the server sent a message that is too long");
            Err(ForwardEnd::MessageTooLong)
        }
        Some(Err(error)) => {
            tracing::debug!(%error, "the connection to the server broke");
            Err(ForwardEnd::SocketLost)
        }
        None => Err(ForwardEnd::SocketLost),
    }
}

async fn send(sink: &mut SplitSink<ServerSocket, Message>, message: Bytes) -> Result<(), SocketError> {
    // Bytes that are no text the server could not read either; the error is worded as the server's own would
    // be.
    let text = Utf8Bytes::try_from(message)
        .unwrap_or_else(|_| Utf8Bytes::from_static("\"a line that is no UTF-8\""));
    sink.send(Message::Text(text)).await
}

/// The number that the server gave a message, and the message as its sender wrote it.
fn without_number(text: Bytes) -> (Option<u64>, Bytes) {
    let found = text.strip_prefix(NUMBER).and_then(|rest| {
        let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        Some((number, rest[end..].strip_prefix(BEHIND_NUMBER)?))
    });
    match found {
        Some((number, rest)) => (Some(number), [b"{", rest].concat().into()),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use attache_http::BearerToken;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::address::ServerAddress;
    use super::super::connector::ServerConnector;
    use super::*;
    use crate::handshake::accept_key;
    use crate::limits::SERVER_MESSAGE_BYTES;

    /// Accepts one WebSocket and announces a message of so many bytes.
    async fn announce(listener: TcpListener, bytes: usize) -> TcpStream {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {}\r\n\r\n",
            accept_key(key)
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        let length = u64::try_from(bytes).unwrap().to_be_bytes();
        stream.write_all(&[&[0x81, 127][..], &length].concat()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_message_that_would_fill_the_memory_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(announce(listener, SERVER_MESSAGE_BYTES + 1));
        let address = ServerAddress::parse(&address).unwrap();
        let connector = ServerConnector::new(address, BearerToken::generate().unwrap());
        let opened = connector.open(None).await.unwrap_or_else(|failure| panic!("{failure}"));
        let (_says, from_editor) = mpsc::channel(1);
        let (to_editor, _told) = mpsc::channel(1);
        let mut ends = EditorEnds { from_editor, to_editor, memory: ConversationMemory::default() };
        let end = ServerLink::default().forward(opened, &mut ends).await;
        assert_eq!(end, ForwardEnd::MessageTooLong);
        drop(server.await.unwrap());
    }

    #[test]
    fn a_number_is_taken_off() {
        let text = Bytes::from_static(br#"{"_meta":{"attache/eventId":17},"jsonrpc":"2.0","id":1}"#);
        assert_eq!(without_number(text), (Some(17), Bytes::from_static(br#"{"jsonrpc":"2.0","id":1}"#)));
        for plain in [&br#"{"jsonrpc":"2.0"}"#[..], br#"{"_meta":{"attache/eventId":x},"a":1}"#] {
            assert_eq!(without_number(Bytes::from_static(plain)), (None, Bytes::from_static(plain)));
        }
    }

    #[test]
    fn what_is_confirmed_is_not_sent_again() {
        let mut link = ServerLink::default();
        for text in ["a", "b", "c"] {
            link.keep(Bytes::from_static(text.as_bytes()));
        }
        link.confirm(2);
        link.confirm(1);
        assert_eq!((link.unconfirmed.len(), link.unconfirmed_bytes), (1, 1));
        link.confirm(9);
        assert_eq!(link.confirmed, 3);
    }
}
