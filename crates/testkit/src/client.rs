//! A raw ACP client for tests, over any pair of pipes. Watches all traffic with [`WireChecker`]; has no
//! opinions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::checker::{Client, Direction, Ending, Violation, WireChecker};
use crate::limits::{ANSWER_TIMEOUT, SHOWN_TRAFFIC};

mod pending;
mod pipes;
mod reply;

pub use pending::Pending;
use pipes::{Outgoing, Reading, read_all, write_all};
pub use reply::{Answer, Policy, Reply, RpcError};

/// Cheap to clone; all clones speak over the same connection.
#[derive(Clone, Debug)]
pub struct TestClient {
    shared: Arc<Shared>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    reading: Arc<watch::Sender<Reading>>,
}

#[derive(Debug)]
struct Shared {
    /// Why one lock: a line must be counted by the checker and queued for writing as one act, else an answer
    /// could be checked before its question.
    state: Mutex<State>,
    arrived: Notify,
}

struct State {
    checker: Option<WireChecker>,
    next_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    policy: Policy,
    received: Vec<Value>,
    /// The last lines of both directions, for failures.
    traffic: Vec<String>,
    /// What stood behind the last newline when the output ended: half a line is the fault of whoever cut it.
    cut_line: Vec<u8>,
    ended: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("received", &self.received.len()).finish_non_exhaustive()
    }
}

impl TestClient {
    /// Starts reading at once. Permission is refused until a policy says otherwise.
    pub fn connect<R, W>(reader: R, writer: W) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let state = State {
            checker: Some(WireChecker::new(Client::Adversary)),
            next_id: 1,
            waiting: HashMap::new(),
            policy: Box::new(|_, params| Reply::choose("reject_once", params)),
            received: Vec::new(),
            traffic: Vec::new(),
            cut_line: Vec::new(),
            ended: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), arrived: Notify::new() });
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (reading, gate) = watch::channel(Reading::Going);
        tokio::spawn(write_all(writer, queue));
        let client = Self { shared, outgoing, reading: Arc::new(reading) };
        tokio::spawn(read_all(reader, client.clone(), gate));
        client
    }

    /// How requests of the agent are answered from now on.
    pub fn set_policy(&self, policy: impl FnMut(&str, &Value) -> Reply + Send + 'static) {
        self.shared.lock().policy = Box::new(policy);
    }

    /// Answers every permission request with the first option of that kind.
    pub fn always_choose(&self, kind: &'static str) {
        self.set_policy(move |_, params| Reply::choose(kind, params));
    }

    /// For an agent that was started with another cap on incoming lines.
    pub fn set_max_client_line_bytes(&self, bytes: usize) {
        let mut state = self.shared.lock();
        state.checker = state.checker.take().map(|checker| checker.with_max_client_line_bytes(bytes));
    }

    /// Sends and waits; an error answer is a value, a missing answer a panic.
    pub async fn request(&self, method: &str, params: Value) -> Answer {
        self.start(method, params).answer().await
    }

    /// Sends and waits for a result; an error answer is a panic.
    pub async fn expect(&self, method: &str, params: Value) -> Value {
        match self.request(method, params).await {
            Ok(result) => result,
            Err(error) => panic!("{method} failed: {error:?}\n{}", self.shared.lock().recent_traffic()),
        }
    }

    pub fn start(&self, method: &str, params: Value) -> Pending {
        let (sender, answer) = oneshot::channel();
        let mut state = self.shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.waiting.insert(id, sender);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        self.send(&mut state, line.into_bytes());
        Pending { id, method: method.to_owned(), answer, shared: self.shared.clone() }
    }

    pub fn notify(&self, method: &str, params: Value) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        self.send(&mut self.shared.lock(), line.into_bytes());
    }

    /// Answers a request of the agent that the policy left open.
    pub fn reply(&self, id: &Value, reply: Reply) {
        self.send_reply(&mut self.shared.lock(), id, reply);
    }

    /// Sends these bytes as one line, whatever they are.
    pub fn send_line(&self, line: &[u8]) {
        self.send(&mut self.shared.lock(), line.to_vec());
    }

    /// Tells the checker that a line which it is not shown may be refused once.
    pub fn expect_refusal(&self) {
        if let Some(checker) = &mut self.shared.lock().checker {
            checker.expect_refusal();
        }
    }

    /// Sends bytes the checker does not see: pieces of lines, endless lines.
    pub fn send_unwatched(&self, bytes: Vec<u8>) {
        // A closed pipe shows as a missing answer, where it can be explained.
        drop(self.outgoing.send(Outgoing::Bytes(bytes)));
    }

    /// Closes the agent's input.
    pub fn end_input(&self) {
        drop(self.outgoing.send(Outgoing::End));
    }

    /// From here on nothing is read, until [`Self::read_again`]; what was in flight may still arrive.
    pub fn stop_reading(&self) {
        self.reading.send_replace(Reading::Paused);
    }

    pub fn read_again(&self) {
        self.reading.send_replace(Reading::Going);
    }

    /// Closes the agent's output from this end: it has no reader any more.
    pub fn close_output(&self) {
        self.reading.send_replace(Reading::Closed);
    }

    /// Every message received so far, in order.
    pub fn received(&self) -> Vec<Value> {
        self.shared.lock().received.clone()
    }

    /// The `update` objects of one session's conversation, in order: all but those that tell its commands.
    pub fn updates(&self, session_id: &str) -> Vec<Value> {
        self.updates_since(0, session_id)
    }

    /// How often a session's commands were told.
    pub fn command_updates(&self, session_id: &str) -> usize {
        let state = self.shared.lock();
        let updates = state.received.iter().filter_map(|message| update_of(message, session_id));
        updates.filter(|update| tells_commands(update)).count()
    }

    /// How many messages arrived so far; a mark for [`Self::updates_since`].
    pub fn mark(&self) -> usize {
        self.shared.lock().received.len()
    }

    pub fn updates_since(&self, mark: usize, session_id: &str) -> Vec<Value> {
        let state = self.shared.lock();
        let updates = state.received[mark..].iter().filter_map(|message| update_of(message, session_id));
        updates.filter(|update| !tells_commands(update)).cloned().collect()
    }

    /// The text of all agent messages of a session, joined.
    pub fn agent_text(&self, session_id: &str) -> String {
        self.updates(session_id)
            .iter()
            .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// The first message, received or still to come, that `is_it` accepts.
    pub async fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_within(ANSWER_TIMEOUT, what, is_it).await
    }

    pub async fn wait_for_within(&self, time: Duration, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut looked_at = 0;
        let search = async {
            loop {
                let arrived = self.shared.arrived.notified();
                {
                    let state = self.shared.lock();
                    if let Some(found) = state.received[looked_at..].iter().find(|message| is_it(message)) {
                        return found.clone();
                    }
                    looked_at = state.received.len();
                    assert!(!state.ended, "the agent closed before: {what}\n{}", state.recent_traffic());
                }
                arrived.await;
            }
        };
        match tokio::time::timeout(time, search).await {
            Ok(found) => found,
            Err(_) => panic!("waited {time:?} for: {what}\n{}", self.shared.lock().recent_traffic()),
        }
    }

    /// The first matching update of a session.
    pub async fn wait_for_update(&self, session_id: &str, kind: &str) -> Value {
        let what = format!("{kind} of {session_id}");
        let message = self
            .wait_for(&what, |message| {
                update_of(message, session_id).is_some_and(|update| update["sessionUpdate"] == kind)
            })
            .await;
        message["params"]["update"].clone()
    }

    /// Waits until the agent has closed its output.
    pub async fn wait_for_end(&self) {
        let end = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if self.shared.lock().ended {
                    return;
                }
                arrived.await;
            }
        };
        if tokio::time::timeout(ANSWER_TIMEOUT, end).await.is_err() {
            panic!("the agent did not close its output\n{}", self.shared.lock().recent_traffic());
        }
    }

    /// Ends the watch and panics if anything was violated. Call it when all answers that must come have come.
    pub fn finish(&self) {
        self.report(self.violations(Ending::Complete));
    }

    /// The same after a kill: what was open stays open.
    pub fn finish_cut(&self) {
        self.report(self.violations(Ending::Cut));
    }

    /// Ends the watch and hands out what was violated.
    pub fn violations(&self, ending: Ending) -> Vec<Violation> {
        let mut state = self.shared.lock();
        let cut_line = std::mem::take(&mut state.cut_line);
        let Some(mut checker) = state.checker.take() else { return Vec::new() };
        if ending == Ending::Complete && !cut_line.is_empty() {
            checker.feed(Direction::FromAgent, &cut_line);
        }
        checker.finish(ending)
    }

    fn report(&self, violations: Vec<Violation>) {
        if violations.is_empty() {
            return;
        }
        let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
        panic!("{} violations on the wire:\n{}", violations.len(), list.join("\n"));
    }

    fn send(&self, state: &mut State, mut line: Vec<u8>) {
        if let Some(checker) = &mut state.checker {
            checker.feed(Direction::FromClient, &line);
        }
        state.note("→", &line);
        line.push(b'\n');
        // As above: a closed pipe shows as a missing answer.
        drop(self.outgoing.send(Outgoing::Bytes(line)));
    }

    fn send_reply(&self, state: &mut State, id: &Value, reply: Reply) {
        let message = match reply {
            Reply::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Reply::Error { code, message } => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
            Reply::Never => return,
        };
        self.send(state, message.to_string().into_bytes());
    }

    fn receive(&self, line: &[u8]) {
        let mut state = self.shared.lock();
        if let Some(checker) = &mut state.checker {
            checker.feed(Direction::FromAgent, line);
        }
        state.note("←", line);
        // What is no JSON is the checker's to report.
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let reply = (state.policy)(method, &message["params"]);
                let id = id.clone();
                self.send_reply(&mut state, &id, reply);
            }
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| state.waiting.remove(&id));
                if let Some(waiting) = waiting {
                    // A test may have stopped waiting.
                    drop(waiting.send(reply::answer_of(&message)));
                }
            }
            (_, None) => {}
        }
        state.received.push(message);
        drop(state);
        self.shared.arrived.notify_waiters();
    }

    fn ended(&self, cut_line: Vec<u8>) {
        let mut state = self.shared.lock();
        state.cut_line = cut_line;
        state.ended = true;
        state.waiting.clear();
        drop(state);
        self.shared.arrived.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, arrow: &str, line: &[u8]) {
        if self.traffic.len() >= SHOWN_TRAFFIC {
            self.traffic.remove(0);
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(400)]).into_owned();
        self.traffic.push(format!("{arrow} {}", text.trim_end()));
    }

    fn recent_traffic(&self) -> String {
        format!("last lines:\n{}", self.traffic.join("\n"))
    }
}

fn tells_commands(update: &Value) -> bool {
    update["sessionUpdate"] == "available_commands_update"
}

fn update_of<'a>(message: &'a Value, session_id: &str) -> Option<&'a Value> {
    let params = &message["params"];
    (message["method"] == "session/update" && params["sessionId"] == session_id).then_some(&params["update"])
}

#[cfg(test)]
mod tests;
