//! The list of our tools for clients: names, descriptions, schemas of input and output.

use serde_json::{Value, json};

use crate::limits::{HITS, HITS_MOST, MESSAGES, MESSAGES_MOST};

/// Told once, with the hello.
pub(crate) const INSTRUCTIONS: &str = "attache is a coding agent. `ask` gives it a task in a directory of this machine and waits until it is done; \
     give the `sessionId` of the result as `session` to go on in the same conversation. `sessions_search` and `session_read` look \
     into its earlier conversations.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferedTool {
    Ask,
    SessionsSearch,
    SessionRead,
}

impl OfferedTool {
    const ALL: [Self; 3] = [Self::Ask, Self::SessionsSearch, Self::SessionRead];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::SessionsSearch => "sessions_search",
            Self::SessionRead => "session_read",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    fn definition(self) -> Value {
        match self {
            Self::Ask => ask(),
            Self::SessionsSearch => sessions_search(),
            Self::SessionRead => session_read(),
        }
    }
}

pub(crate) fn listed() -> Value {
    json!({ "tools": OfferedTool::ALL.map(OfferedTool::definition) })
}

fn ask() -> Value {
    let tokens = ["input", "output", "reasoning", "cache_read", "cache_write"];
    let counts: serde_json::Map<String, Value> =
        tokens.iter().map(|name| ((*name).to_owned(), json!({ "type": "integer" }))).collect();
    json!({
        "name": OfferedTool::Ask.name(),
        "title": "Ask attache",
        "description": "Gives a task to the coding agent attache and waits until its turn is over. It reads and changes files and \
            runs commands in the workspace, as far as its user's rules allow. The result is its last message. Calls that needed a \
            permission nobody could give are listed under `denied`.",
        "inputSchema": object(json!({
            "prompt": { "type": "string", "description": "What it is to do, with everything it has to know" },
            "workspace": {
                "type": "string",
                "description": "The directory it works in: an absolute path. Left out: the one this server was started in; with \
                    `session` the session's own",
            },
            "agent": { "type": "string", "description": "Which of its agents answers: build, plan, … Left out: the usual one" },
            "session": { "type": "string", "description": "Go on in this session instead of a new one; of a session that \
                was begun elsewhere a copy is made, see `sessionId` of the result" },
        }), &["prompt"]),
        "outputSchema": described(json!({
            "sessionId": { "type": "string" },
            "stopReason": {
                "type": "string",
                "enum": ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"],
            },
            "usage": described(Value::Object(counts), &tokens),
            "costUsd": { "type": "number" },
            "denied": {
                "type": "array",
                "items": described(json!({
                    "tool": { "type": "string" },
                    "title": { "type": "string" },
                    "why": { "type": "string" },
                }), &["tool", "title", "why"]),
            },
        }), &["sessionId", "stopReason", "usage", "denied"]),
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
    })
}

fn sessions_search() -> Value {
    json!({
        "name": OfferedTool::SessionsSearch.name(),
        "title": "Search sessions",
        "description": "Looks for words in all sessions of attache, best hits first. Each word must occur; \"words in quotes\" \
            stand together.",
        "inputSchema": object(json!({
            "query": { "type": "string" },
            "limit": { "type": "integer", "minimum": 1, "maximum": HITS_MOST, "default": HITS },
        }), &["query"]),
        "outputSchema": described(json!({
            "hits": {
                "type": "array",
                "items": described(json!({
                    "sessionId": { "type": "string" },
                    "title": { "type": "string" },
                    "workspace": { "type": "string" },
                    "messageId": { "type": "string" },
                    "role": { "type": "string" },
                    "at": { "type": "string" },
                    "snippet": { "type": "string" },
                }), &["sessionId", "workspace", "at", "snippet"]),
            },
        }), &["hits"]),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

fn session_read() -> Value {
    json!({
        "name": OfferedTool::SessionRead.name(),
        "title": "Read a session",
        "description": "Reads messages of a session of attache in their order, a page at a time: what was said, and which tools \
            were called. `next` of the result is the `from` of the next page.",
        "inputSchema": object(json!({
            "session": { "type": "string" },
            "from": { "type": "integer", "minimum": 1, "default": 1, "description": "Number of the first message" },
            "limit": { "type": "integer", "minimum": 1, "maximum": MESSAGES_MOST, "default": MESSAGES },
        }), &["session"]),
        "outputSchema": described(json!({
            "sessionId": { "type": "string" },
            "title": { "type": "string" },
            "workspace": { "type": "string" },
            "agent": { "type": "string" },
            "messages": {
                "type": "array",
                "items": described(json!({
                    "number": { "type": "integer" },
                    "role": { "type": "string" },
                    "at": { "type": "string" },
                    "text": { "type": "string" },
                    "calls": {
                        "type": "array",
                        "items": described(json!({
                            "tool": { "type": "string" },
                            "title": { "type": "string" },
                            "state": { "type": "string" },
                        }), &["tool", "title", "state"]),
                    },
                }), &["number", "role", "at", "text", "calls"]),
            },
            "last": { "type": "integer", "description": "Number of the last message there is" },
            "next": { "type": "integer", "description": "Where the next page begins; left out at the end" },
        }), &["sessionId", "workspace", "agent", "messages", "last"]),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// What goes in: nothing but what is named.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// What comes out: later versions may say more.
fn described(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}
