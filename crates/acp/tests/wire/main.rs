//! What a client sees: every line is held to the schema. One binary, so that the schema is compiled once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail loudly")]

mod answers;
mod arbitrary;
mod speed;
mod transcripts;

use std::sync::Arc;

use attache_acp::to_wire::{CompactionUpdates, Notices, ThoughtUpdates, WireView, write_updates};
use attache_core::choices::{Choices, CurrentChoices, Mode};
use attache_core::chunk::Chunk;
use attache_core::entry::Entry;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::Role;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_testkit::schema::Validator;
use attache_testkit::snake_case::leaked_keys;
use serde_json::Value;

pub(crate) fn two_modes() -> Arc<[Mode]> {
    let mode = |id: &str, name: &str, description: &str| Mode {
        id: id.into(),
        name: name.into(),
        description: description.into(),
    };
    Arc::new([mode("build", "Build", "Does it"), mode("plan", "Plan", "")])
}

pub(crate) fn choices() -> Choices {
    let model = |provider: &str, id: &str, name: &str| ModelInfo {
        name: name.into(),
        context: 200_000,
        images: name == "Large",
        ..ModelInfo::undescribed(ModelRef::new(provider, id))
    };
    Choices {
        models: Arc::new([
            model("acme", "small", "Small"),
            model("other", "x", "X"),
            model("acme", "large", "Large"),
        ]),
        foreign: Arc::new([]),
    }
}

pub(crate) fn view() -> WireView {
    WireView {
        choices: CurrentChoices::new(choices()),
        thoughts: ThoughtUpdates::Show,
        notices: Notices::Unwanted,
        compaction: CompactionUpdates::Unwanted,
    }
}

/// The lines of one entry, each checked: one line, the right frame, the schema, no leaked key.
pub(crate) fn lines(chunk: &Chunk, role: Role, view: &WireView) -> Vec<(usize, Value)> {
    lines_of_step(1, chunk, role, view)
}

pub(crate) fn lines_of_step(step: u32, chunk: &Chunk, role: Role, view: &WireView) -> Vec<(usize, Value)> {
    let mut out = Vec::new();
    let (session_id, message_id) = (SessionId::new("ses_1"), MessageId::new("msg_1"));
    let entry = Entry { session_id: &session_id, message_id: &message_id, role, index: 7, step, chunk };
    write_updates(entry, view, &mut out).unwrap();
    let text = std::str::from_utf8(&out).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| (line.len() + 1, checked_update(line))).collect()
}

fn checked_update(line: &str) -> Value {
    let mut message: Value = serde_json::from_str(line).unwrap();
    assert_eq!(message["jsonrpc"], "2.0");
    assert_eq!(message["method"], "session/update");
    assert_eq!(message.as_object().unwrap().len(), 3);
    let params = message["params"].take();
    assert_eq!(params["sessionId"], "ses_1");
    assert_eq!(Validator::shared().notification("session/update", &params), Ok(()), "{params}");
    assert_eq!(leaked_keys(&params), Vec::<String>::new());
    params["update"].clone()
}
