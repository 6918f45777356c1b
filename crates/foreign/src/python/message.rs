//! What the process says, read from its lines, and what it is told. Decides nothing.

use attache_core::chunk::FinishReason;
use attache_core::ports::client::CallArguments;
use attache_core::ports::foreign::Abilities;
use attache_core::turn::foreign::ForeignUsage;
use serde_json::{Value, json};

use crate::ForeignError;

/// Of the pipe. Another one is refused.
pub(super) const PROTOCOL: u64 = 1;

/// How the lines begin that come by the thousand: read without making a value of them.
const CHUNK_BEGINS: &str = r#"{"type":"chunk","run":""#;
const CHUNK_CONTINUES: &str = r#"","chunk":"#;

/// One line of the process.
#[derive(Debug, PartialEq)]
pub(super) enum ProcessWord {
    /// Its first word.
    Hello { protocol: u64 },
    /// The agent is loaded.
    Ready(Abilities),
    /// It can't be loaded.
    Failed(ForeignError),
    /// Something about a run.
    Run { run: String, said: RunWord },
    /// People of a session are told.
    Notice { session: String, severity: &'static str, title: String, description: Option<String> },
    /// Nothing that this version knows.
    Unknown,
}

/// What is said about one run.
#[derive(Debug, PartialEq)]
pub(super) enum RunWord {
    /// In JSON.
    Chunk(String),
    Usage(ForeignUsage),
    Ask(Vec<ToDecide>),
    WantsHistory,
    Request {
        id: String,
        method: String,
        params: Value,
    },
    Ended(FinishReason),
    Failed(ForeignError),
    Cancelled,
}

/// A call that a person decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToDecide {
    pub(super) approval: String,
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) description: Option<String>,
    pub(super) arguments: CallArguments,
}

/// `None` for what is no line of ours.
pub(super) fn read(line: &str) -> Option<ProcessWord> {
    if let Some((run, chunk)) = of_chunk(line) {
        return Some(ProcessWord::Run { run: run.to_owned(), said: RunWord::Chunk(chunk.to_owned()) });
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let kind = value.get("type")?.as_str()?;
    Some(match kind {
        "hello" => ProcessWord::Hello { protocol: value.get("protocol")?.as_u64()? },
        "ready" => ProcessWord::Ready(abilities(value.get("abilities")?)),
        "failed" if value.get("run").is_none() => ProcessWord::Failed(failure(&value)),
        "notice" => ProcessWord::Notice {
            session: text(&value, "session"),
            severity: match text(&value, "severity").as_str() {
                "error" => "error",
                "warning" => "warning",
                _ => "info",
            },
            title: text(&value, "title"),
            description: value.get("description").and_then(Value::as_str).map(str::to_owned),
        },
        _ => match run_word(kind, &value) {
            Some(said) => ProcessWord::Run { run: text(&value, "run"), said },
            None => ProcessWord::Unknown,
        },
    })
}

fn run_word(kind: &str, value: &Value) -> Option<RunWord> {
    Some(match kind {
        "chunk" => RunWord::Chunk(value.get("chunk")?.to_string()),
        "usage" => RunWord::Usage(usage(value.get("usage")?)),
        "ask" => RunWord::Ask(value.get("requests")?.as_array()?.iter().map(to_decide).collect()),
        "want_history" => RunWord::WantsHistory,
        "request" => RunWord::Request {
            id: text(value, "id"),
            method: text(value, "method"),
            params: value.get("params").cloned().unwrap_or_default(),
        },
        "ended" => RunWord::Ended(reason(&text(value, "reason"))),
        "failed" => RunWord::Failed(failure(value)),
        "cancelled" => RunWord::Cancelled,
        _ => return None,
    })
}

fn of_chunk(line: &str) -> Option<(&str, &str)> {
    let (run, rest) = line.strip_prefix(CHUNK_BEGINS)?.split_once('"')?;
    let chunk = rest.strip_prefix(&CHUNK_CONTINUES[1..])?.strip_suffix('}')?;
    Some((run, chunk))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn to_decide(value: &Value) -> ToDecide {
    let title = text(value, "title");
    let description = text(value, "description");
    let words: Vec<&str> =
        [title.as_str(), description.as_str()].into_iter().filter(|words| !words.is_empty()).collect();
    let listed = value.get("decisions").and_then(Value::as_array);
    let arguments = match listed.is_some_and(|listed| listed.iter().any(|decision| decision == "edit")) {
        true => CallArguments::Editable,
        false => CallArguments::Fixed,
    };
    ToDecide {
        arguments,
        approval: text(value, "approval"),
        call: text(value, "call"),
        tool: text(value, "tool"),
        description: (!words.is_empty()).then(|| words.join(": ")),
    }
}

fn abilities(value: &Value) -> Abilities {
    let can = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    Abilities {
        kind: "python",
        images: can("images"),
        audio: can("audio"),
        pdf: can("images"),
        servers: can("mcp_servers"),
        runtime_context: can("runtime_context"),
    }
}

fn failure(value: &Value) -> ForeignError {
    let (message, hint) = (text(value, "message"), text(value, "hint"));
    let words = if hint.is_empty() { message } else { format!("{message}. {hint}") };
    let error = ForeignError::new(words);
    match text(value, "details") {
        details if details.is_empty() => error,
        details => error.with_details(details),
    }
}

fn usage(value: &Value) -> ForeignUsage {
    let count = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let mut usage = ForeignUsage::default();
    usage.tokens.input = count("input");
    usage.tokens.output = count("output");
    usage.tokens.reasoning = count("reasoning");
    usage.tokens.cache_read = count("cache_read");
    usage.tokens.cache_write = count("cache_write");
    usage
}

fn reason(name: &str) -> FinishReason {
    match name {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content-filter" => FinishReason::ContentFilter,
        "tool-calls" => FinishReason::ToolCalls,
        "error" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}

/// What it is told first.
pub(super) fn hello(module: &str, directory: &str, watch: &Value) -> Value {
    json!({ "type": "hello", "protocol": PROTOCOL, "module": module, "directory": directory, "watch": watch })
}

/// A request of the agent was done.
pub(super) fn answer(id: &str, result: Result<Value, String>) -> Value {
    match result {
        Ok(result) => json!({ "type": "answer", "id": id, "result": result }),
        Err(error) => json!({ "type": "answer", "id": id, "error": error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_read_the_short_way_and_the_long_way_alike() {
        let short = r#"{"type":"chunk","run":"r1","chunk":{"type":"start-step"}}"#;
        let long = r#"{"run":"r1","type":"chunk","chunk":{"type":"start-step"}}"#;
        let expected =
            ProcessWord::Run { run: "r1".into(), said: RunWord::Chunk(r#"{"type":"start-step"}"#.into()) };
        assert_eq!(read(short), Some(expected));
        assert_eq!(read(long), read(short));
    }

    #[test]
    fn a_failure_has_its_hint_in_its_words_and_its_traceback_beside_them() {
        let line = r#"{"type":"failed","kind":"module","message":"there is no `x`","hint":"Is it `y`?","details":"t"}"#;
        let Some(ProcessWord::Failed(error)) = read(line) else { panic!("{line}") };
        assert_eq!(error.message, "there is no `x`. Is it `y`?");
        assert_eq!(error.details.as_deref(), Some("t"));
    }

    #[test]
    fn what_is_no_line_of_ours_is_none() {
        for line in ["", "hello", "[]", "{}", r#"{"type":7}"#] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(read(r#"{"type":"of tomorrow"}"#), Some(ProcessWord::Unknown));
    }
}
