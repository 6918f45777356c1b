//! A connection over a transport that has no lines: whole messages through channels in memory.

use std::borrow::Cow;
use std::io;

use attache_acp::connect;
use attache_rpc::{MessageSink, MessageSource, Options, Received, TraceLane};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::world::*;

struct ChannelSource(UnboundedReceiver<Vec<u8>>);

struct ChannelSink(UnboundedSender<Vec<u8>>);

impl MessageSource for ChannelSource {
    async fn receive(&mut self, trace: Option<&TraceLane>) -> Received<'_> {
        let Some(message) = self.0.recv().await else { return Received::End };
        if let Some(trace) = trace {
            trace.record_incoming(&message);
        }
        match message.as_slice() {
            b"" => Received::Unusable("an empty frame".to_owned()),
            _ => Received::Message(Cow::Owned(message)),
        }
    }
}

impl MessageSink for ChannelSink {
    /// One message per call, without the newline behind it.
    async fn write(&mut self, messages: &[u8]) -> io::Result<usize> {
        let end = messages.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::InvalidData)?;
        self.0.send(messages[..end].to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(end + 1)
    }

    async fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct ChannelClient {
    sender: UnboundedSender<Vec<u8>>,
    receiver: UnboundedReceiver<Vec<u8>>,
}

impl ChannelClient {
    /// Sends a request over several lines, and gives what comes before its answer, then the answer.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> (Vec<Value>, Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let message = serde_json::to_vec_pretty(&request).unwrap();
        assert!(message.contains(&b'\n'));
        self.sender.send(message).unwrap();
        let mut before = Vec::new();
        loop {
            let message = self.message().await;
            match message.get("id") == Some(&json!(id)) {
                true => return (before, message["result"].clone()),
                false => before.push(message),
            }
        }
    }

    async fn message(&mut self) -> Value {
        serde_json::from_slice(&self.receiver.recv().await.unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_served_over_messages_that_are_no_lines() {
    let world = World::new("on *\n text \"hi\"");
    let (sender, incoming) = unbounded_channel();
    let (outgoing, receiver) = unbounded_channel();
    let agent = world.process().services();
    let mut connection = connect(agent, ChannelSource(incoming), ChannelSink(outgoing), Options::default());
    let mut client = ChannelClient { sender, receiver };

    let (_, hello) = client.ask(1, "initialize", json!({ "protocolVersion": 1 })).await;
    assert_eq!(hello["protocolVersion"], 1);
    client.sender.send(Vec::new()).unwrap();
    let refused = client.message().await;
    assert_eq!((&refused["id"], &refused["error"]["message"]), (&Value::Null, &json!("an empty frame")));
    let (_, made) = client.ask(2, "session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
    let session = made["sessionId"].as_str().unwrap();
    let (updates, answer) = client.ask(3, "session/prompt", prompt(session, "hello")).await;
    assert_eq!(answer["stopReason"], "end_turn");
    let said = updates.iter().any(|update| update["params"]["update"]["content"]["text"] == "hi");
    assert!(said, "{updates:?}");

    drop(client.sender);
    connection.wait_closed().await;
}
