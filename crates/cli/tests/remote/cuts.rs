//! A proxy that cuts connections at random bytes: nothing is lost and nothing comes twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::plain_http::{Event, Events};
use crate::server::Server;

/// Passes bytes on, so many of them in either direction, and then hangs up on both sides.
pub(crate) struct CuttingProxy {
    pub(crate) address: String,
    pub(crate) cuts: Arc<AtomicUsize>,
}

/// Numbers without end, the same ones for the same seed.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

impl CuttingProxy {
    pub(crate) async fn start(to: &str, longest: u64, most: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, to, longest, most)
    }

    /// Cuts connections after at most `longest` bytes until there were `most` cuts; then it lets everything
    /// pass.
    pub(crate) fn on(listener: TcpListener, to: &str, longest: u64, most: usize) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let (cuts, to) = (Arc::new(AtomicUsize::new(0)), to.to_owned());
        let counted = cuts.clone();
        tokio::spawn(async move {
            let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
            while let Ok((client, _)) = listener.accept().await {
                let budget = match counted.load(Ordering::SeqCst) < most {
                    true => chance.below(longest) + 1,
                    false => u64::MAX,
                };
                let Ok(server) = TcpStream::connect(&to).await else { continue };
                tokio::spawn(pass(client, server, budget, counted.clone()));
            }
        });
        Self { address, cuts }
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, mut budget: u64, cuts: Arc<AtomicUsize>) {
    let (mut from_client, mut from_server) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let (mut client_reader, mut client_writer) = client.split();
    let (mut server_reader, mut server_writer) = server.split();
    loop {
        let (read, written) = tokio::select! {
            read = client_reader.read(&mut from_client) => {
                let Ok(count) = read else { return };
                let passed = count.min(usize::try_from(budget).unwrap_or(usize::MAX));
                (count, server_writer.write_all(&from_client[..passed]).await)
            }
            read = server_reader.read(&mut from_server) => {
                let Ok(count) = read else { return };
                let passed = count.min(usize::try_from(budget).unwrap_or(usize::MAX));
                (count, client_writer.write_all(&from_server[..passed]).await)
            }
        };
        if read == 0 || written.is_err() {
            return;
        }
        budget = budget.saturating_sub(read as u64);
        if budget == 0 {
            cuts.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}

/// How many cuts there have to be; `TEST_SOAK` asks for a thousand.
pub(crate) fn wanted_cuts() -> usize {
    if std::env::var_os("TEST_SOAK").is_some() { 1_000 } else { 40 }
}

/// Event streams with `Last-Event-ID`.
#[tokio::test]
async fn a_stream_that_is_cut_anywhere_loses_and_doubles_nothing() {
    let server = Server::start().await;
    let wanted = wanted_cuts();
    let proxy = CuttingProxy::start(&server.address, 8_000, wanted).await;
    let id = server.begin().await;
    let here = ("acp-connection-id", id.as_str());
    let mut connection = server.events(&[here]).await;
    let place = json!({ "cwd": server.home.workspace(), "mcpServers": [] });
    server
        .post(&[here], &json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": place }))
        .await;
    let answer = connection.until(|message| message["id"] == 1).await.pop().unwrap();
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let of_session = ("acp-session-id", session.as_str());
    let (mut last, mut text, mut rounds) = (None::<u64>, String::new(), 0_u64);
    while proxy.cuts.load(Ordering::SeqCst) < wanted {
        rounds += 1;
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "count" }] });
        let prompt =
            json!({ "jsonrpc": "2.0", "id": 1 + rounds, "method": "session/prompt", "params": params });
        assert_eq!(server.post(&[here, of_session], &prompt).await.status, 202);
        let mut answered = false;
        while !answered {
            let number = last.map(|last| last.to_string()).unwrap_or_default();
            let headers = [here, of_session, ("last-event-id", number.as_str())];
            let Some(mut events) = open(&proxy.address, &server, &headers).await else { continue };
            while let Some(Event { id, kind, data }) = events.next().await {
                assert_eq!(kind, None, "{data}");
                let number: u64 = id.unwrap().parse().unwrap();
                assert!(last.is_none_or(|last| number > last), "{number} behind {last:?}");
                last = Some(number);
                let message: serde_json::Value = serde_json::from_str(&data).unwrap();
                if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                    text += message["params"]["update"]["content"]["text"].as_str().unwrap();
                }
                if message["id"] == 1 + rounds {
                    answered = true;
                    break;
                }
            }
        }
        assert_eq!(text, "number ".repeat(400 * usize::try_from(rounds).unwrap()), "round {rounds}");
    }
    server.stop().await;
}

/// `None`: the head was cut.
async fn open(address: &str, server: &Server, headers: &[(&str, &str)]) -> Option<Events> {
    let host = [("host", server.address.as_str())];
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain(host).collect();
    let opened = Events::try_ask(address, &server.token, &headers).await;
    if opened.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    opened
}
