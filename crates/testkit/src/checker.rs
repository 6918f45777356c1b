//! Watches one connection and names every broken invariant. Judges the agent; a client may misbehave on
//! purpose.
//!
//! Feed it every line of both directions in the order one side saw them: what the client sends before it is
//! written, what the agent sends when it is read.

use serde_json::Value;

use crate::schema::{Side, Validator};
use crate::snake_case::leaked_keys;

mod answers;
mod line;
mod permissions;
mod sessions;
mod tool_calls;

use answers::Answers;
use line::{Line, RequestKey};
use permissions::Permissions;
use sessions::Sessions;
use tool_calls::ToolCalls;

/// Some clients read lines of at most 64 KiB; updates can always be split or cut below this.
pub const MAX_UPDATE_LINE_BYTES: usize = 48 * 1024;

/// What the agent accepts as one line unless it is configured otherwise.
const DEFAULT_MAX_CLIENT_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Longest piece of a line that a violation repeats.
const SHOWN_BYTES: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    FromClient,
    FromAgent,
}

/// What was broken, by the names of robustness.md's invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// I9: every line of the agent is one JSON-RPC 2.0 message.
    Purity,
    /// I9: every payload is valid against its method's definition.
    Schema,
    /// I9: no snake_case key on the wire.
    SnakeCase,
    /// I9: no update above [`MAX_UPDATE_LINE_BYTES`], the base64 of an attachment aside.
    LineLength,
    /// I3: each request is answered exactly once, and nothing else is answered.
    OneAnswer,
    /// I4: no update carries an id of a turn whose prompt was answered.
    LateUpdate,
    /// I5: each tool call starts once, ends at most once, and is known before it is updated.
    ToolCall,
    /// I5: no tool call runs while its permission is open, or after it was refused.
    Permission,
    /// Updates of a session come after the session was answered into being, and not after it was closed.
    SessionOrder,
}

#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: Rule,
    pub detail: String,
    /// Counted from 1 over both directions; 0 when the fault is one of the whole connection.
    pub line: usize,
    pub direction: Direction,
    /// The line itself, cut for reading.
    pub text: String,
}

/// How the connection ended, which decides what may be left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client waited for everything: each request must have been answered.
    Complete,
    /// The agent was killed or the pipe cut: open requests are no mistake.
    Cut,
}

/// Whether faults in the client's own lines count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A test's client, which may send garbage on purpose.
    Adversary,
    /// A real client: its lines must be valid too, else the test proves nothing.
    WellBehaved,
}

#[derive(Debug)]
pub struct WireChecker {
    validator: &'static Validator,
    client: Client,
    /// The agent's cap: what is longer is answered without an id, whatever it said.
    max_client_line_bytes: usize,
    lines: usize,
    answers: Answers,
    sessions: Sessions,
    tool_calls: ToolCalls,
    permissions: Permissions,
    violations: Vec<Violation>,
}

/// What the rules report; the checker adds the line.
type Faults = Vec<(Rule, String)>;

/// What of a block can be neither split nor cut: half an image is none.
fn base64_bytes(content: &Value) -> usize {
    let data = content["data"].as_str().or_else(|| content["resource"]["blob"].as_str());
    data.map_or(0, str::len)
}

impl WireChecker {
    pub fn new(client: Client) -> Self {
        Self {
            validator: Validator::shared(),
            client,
            max_client_line_bytes: DEFAULT_MAX_CLIENT_LINE_BYTES,
            lines: 0,
            answers: Answers::default(),
            sessions: Sessions::default(),
            tool_calls: ToolCalls::default(),
            permissions: Permissions::default(),
            violations: Vec::new(),
        }
    }

    /// For an agent that was started with another cap on incoming lines.
    pub fn with_max_client_line_bytes(mut self, bytes: usize) -> Self {
        self.max_client_line_bytes = bytes;
        self
    }

    /// One line, with or without its newline.
    pub fn feed(&mut self, direction: Direction, line: &[u8]) {
        self.lines += 1;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut faults = Faults::new();
        match direction {
            Direction::FromClient => self.client_line(line, &mut faults),
            Direction::FromAgent => self.agent_line(line, &mut faults),
        }
        for (rule, detail) in faults {
            let text = shown(line);
            self.violations.push(Violation { rule, detail, line: self.lines, direction, text });
        }
    }

    /// A line that is not fed, because it never ends or is sent in pieces, may cost one error without an id.
    pub fn expect_refusal(&mut self) {
        self.answers.client_sent_garbage(None);
    }

    /// Violations so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Lines seen so far, in both directions.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// All violations, with what only shows at the end.
    pub fn finish(mut self, ending: Ending) -> Vec<Violation> {
        if ending == Ending::Complete {
            for detail in self.answers.unanswered() {
                self.violations.push(Violation {
                    rule: Rule::OneAnswer,
                    detail,
                    line: 0,
                    direction: Direction::FromAgent,
                    text: String::new(),
                });
            }
        }
        self.violations
    }

    fn client_line(&mut self, bytes: &[u8], faults: &mut Faults) {
        if bytes.len() > self.max_client_line_bytes {
            self.answers.client_sent_garbage(None);
            self.blame_client(faults, Rule::LineLength, format!("a line of {} bytes", bytes.len()));
            return;
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let line = match Line::parse(bytes) {
            Ok(line) => line,
            Err(fault) => {
                if !bytes.trim_ascii().is_empty() {
                    self.answers.client_sent_garbage(fault.readable_id);
                    self.blame_client(faults, Rule::Purity, fault.reason);
                }
                return;
            }
        };
        match line {
            Line::Request { id, method, params } => {
                if let Err(fault) = self.validator.request(&method, &params) {
                    self.blame_client(faults, Rule::Schema, format!("{method}: {fault}"));
                }
                self.sessions.client_asked(&id, &method, &params);
                self.tool_calls.client_asked(&method, &params);
                self.answers.client_asked(id, method, params);
            }
            Line::Notification { method, params } => {
                if let Err(fault) = self.validator.notification(&method, &params) {
                    self.blame_client(faults, Rule::Schema, format!("{method}: {fault}"));
                }
            }
            Line::Result { id, result } => match self.answers.client_answered(&id) {
                Some(method) => {
                    if let Err(fault) = self.validator.response(&method, &result) {
                        self.blame_client(faults, Rule::Schema, format!("{method}: {fault}"));
                    }
                    self.permissions.answered(&id, Some(&result));
                }
                None => {
                    self.blame_client(faults, Rule::OneAnswer, format!("nothing was asked under id {id}"))
                }
            },
            Line::Error { id, .. } => match self.answers.client_answered(&id) {
                Some(_) => self.permissions.answered(&id, None),
                None => {
                    self.blame_client(faults, Rule::OneAnswer, format!("nothing was asked under id {id}"))
                }
            },
        }
    }

    fn agent_line(&mut self, bytes: &[u8], faults: &mut Faults) {
        let line = match Line::parse(bytes) {
            Ok(line) => line,
            Err(fault) => {
                faults.push((Rule::Purity, fault.reason));
                return;
            }
        };
        match line {
            Line::Request { id, method, params } => self.agent_request(id, &method, &params, faults),
            Line::Notification { method, params } => {
                let cuttable = bytes.len().saturating_sub(base64_bytes(&params["update"]["content"]));
                if method == "session/update" && cuttable > MAX_UPDATE_LINE_BYTES {
                    faults.push((Rule::LineLength, format!("an update of {} bytes", bytes.len())));
                }
                self.agent_notification(&method, &params, faults);
            }
            Line::Result { id, result } => self.agent_result(&id, &result, faults),
            Line::Error { id, error } => self.agent_error(&id, &error, faults),
        }
    }

    fn agent_request(&mut self, id: RequestKey, method: &str, params: &Value, faults: &mut Faults) {
        self.check_payload(faults, method, params, self.validator.request(method, params));
        self.check_side(faults, method);
        if let Err(detail) = self.answers.agent_asked(id.clone(), method) {
            faults.push((Rule::OneAnswer, detail));
        }
        if method == "session/request_permission" {
            self.permissions.asked(id, params);
            self.tool_calls.permission_asked(params, self.sessions.entered(params), faults);
        }
    }

    fn agent_notification(&mut self, method: &str, params: &Value, faults: &mut Faults) {
        self.check_payload(faults, method, params, self.validator.notification(method, params));
        self.check_side(faults, method);
        match method {
            "session/update" => {
                self.sessions.updated(params, faults);
                self.tool_calls.updated(params, faults);
                self.permissions.updated(params, faults);
            }
            "$/cancel_request" => {
                let id = RequestKey::of(&params["requestId"]);
                if !self.answers.agent_used(&id) {
                    faults.push((Rule::OneAnswer, format!("cancels request {id}, which was never sent")));
                }
                self.permissions.withdrawn(&id);
            }
            _ => {}
        }
    }

    fn agent_result(&mut self, id: &RequestKey, result: &Value, faults: &mut Faults) {
        let Some(asked) = self.answers.agent_answered(id, None, faults) else { return };
        // A method we cannot name was garbage, and garbage has no result.
        let Some(method) = asked.method else {
            faults.push((Rule::OneAnswer, format!("request {id} was malformed but has a result")));
            return;
        };
        self.check_payload(faults, &method, result, self.validator.response(&method, result));
        self.sessions.agent_succeeded(id, &method, &asked.params, result);
        self.tool_calls.agent_finished(&method, &asked.params);
    }

    fn agent_error(&mut self, id: &RequestKey, error: &Value, faults: &mut Faults) {
        if let Err(fault) = self.validator.error(error) {
            faults.push((Rule::Schema, format!("error: {fault}")));
        }
        for key in leaked_keys(error) {
            faults.push((Rule::SnakeCase, key));
        }
        let code = error["code"].as_i64();
        if code == Some(-32002) && !error["data"]["sessionId"].is_string() {
            faults.push((Rule::Schema, "error -32002 without data.sessionId".to_owned()));
        }
        let Some(asked) = self.answers.agent_answered(id, code, faults) else { return };
        if let Some(method) = asked.method {
            self.sessions.agent_failed(id, &method, &asked.params);
            self.tool_calls.agent_finished(&method, &asked.params);
        }
    }

    fn check_payload(
        &self,
        faults: &mut Faults,
        method: &str,
        payload: &Value,
        verdict: Result<(), crate::schema::SchemaFault>,
    ) {
        if let Err(fault) = verdict {
            faults.push((Rule::Schema, format!("{method}: {fault}")));
        }
        for key in leaked_keys(payload) {
            faults.push((Rule::SnakeCase, format!("{method}: {key}")));
        }
    }

    fn check_side(&self, faults: &mut Faults, method: &str) {
        if self.validator.side(method) == Some(Side::Agent) {
            faults.push((Rule::Schema, format!("{method} is the agent's to answer, not to send")));
        }
    }

    fn blame_client(&self, faults: &mut Faults, rule: Rule, detail: String) {
        match self.client {
            Client::Adversary => {}
            Client::WellBehaved => faults.push((rule, detail)),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arrow = match self.direction {
            Direction::FromClient => "client → agent",
            Direction::FromAgent => "agent → client",
        };
        write!(f, "{:?} (line {}, {arrow}): {}\n    {}", self.rule, self.line, self.detail, self.text)
    }
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]);
    match line.len() > SHOWN_BYTES {
        true => format!("{text}… ({} bytes)", line.len()),
        false => text.into_owned(),
    }
}

#[cfg(test)]
mod tests;
