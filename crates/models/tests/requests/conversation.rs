//! A conversation of three steps, the same for every dialect: a prompt with a picture and a context, two calls
//! side by side of which one fails, a text with a call, and the request for the last word.

use std::sync::Arc;

use attache_core::ids::{CallId, MessageId};
use attache_core::part::{Part, Passage, Role, StreamState, ToolPart, ToolState};
use attache_core::ports::ModelRequest;
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use serde_json::{Value, json};

/// What a dialect stored beside the parts of its own answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) reasoning: Option<Value>,
    pub(crate) first_call: Option<Value>,
    pub(crate) second_call: Option<Value>,
    pub(crate) text: Option<Value>,
    pub(crate) third_call: Option<Value>,
}

/// The requests of the three steps. Their passages are shared, as the loop shares them.
pub(crate) fn three_steps(model: &ModelRef, stored: &Stored) -> [ModelRequest; 3] {
    let passages = [
        passage("msg_1", Role::User, prompt()),
        passage("msg_2", Role::Assistant, first_step(stored)),
        passage("msg_2", Role::Assistant, second_step(stored)),
    ];
    [1, 2, 3].map(|count| request(model, passages[..count].to_vec()))
}

/// A request with all that one can have: system prompt, tools, a thought level, context of this turn.
pub(crate) fn request(model: &ModelRef, passages: Vec<Arc<Passage>>) -> ModelRequest {
    let info = ModelInfo {
        context: 200_000,
        max_output: 64_000,
        images: true,
        audio: true,
        pdf: true,
        thought_levels: ThoughtLevel::ALL.to_vec(),
        ..ModelInfo::undescribed(model.clone())
    };
    ModelRequest {
        info: Arc::new(info),
        thought: Some(ThoughtLevel::Medium),
        system: "You are attache.\nBe brief.".into(),
        runtime_context: [(Some("Selection".to_owned()), "lines 3 to 5".to_owned())].into(),
        tools: [tool("read", Effect::ReadOnly), tool("edit", Effect::Mutates)].into(),
        ..attache_testkit::fakes::request(model.clone(), passages)
    }
}

pub(crate) fn passage(message_id: &str, role: Role, parts: Vec<Part>) -> Arc<Passage> {
    Arc::new(Passage::new(MessageId::new(message_id), role, parts))
}

pub(crate) fn user_text(text: &str) -> Part {
    Part::Text { text: text.to_owned(), state: None, provider_metadata: None }
}

pub(crate) fn text(text: &str, provider_metadata: Option<Value>) -> Part {
    Part::Text { text: text.to_owned(), state: Some(StreamState::Done), provider_metadata }
}

pub(crate) fn reasoning(text: &str, provider_metadata: Option<Value>) -> Part {
    let (id, state) = (Some("reasoning-1".to_owned()), Some(StreamState::Done));
    Part::Reasoning { id, text: text.to_owned(), state, provider_metadata }
}

/// A call whose arguments are known and that has no result so far.
pub(crate) fn call(id: &str, name: &str, input: Value, metadata: Option<Value>) -> ToolPart {
    ToolPart {
        state: ToolState::InputAvailable,
        input: Some(input),
        call_provider_metadata: metadata,
        ..ToolPart::new(CallId::new(id), name)
    }
}

pub(crate) fn answered(call: ToolPart, output: Value) -> Part {
    Part::Tool(Box::new(ToolPart { state: ToolState::OutputAvailable, output: Some(output), ..call }))
}

pub(crate) fn failed(call: ToolPart, error: &str) -> Part {
    let error_text = Some(error.to_owned());
    Part::Tool(Box::new(ToolPart { state: ToolState::OutputError, error_text, ..call }))
}

fn prompt() -> Vec<Part> {
    vec![
        user_text("Why does it not build?"),
        Part::File {
            media_type: "image/png".to_owned(),
            url: "data:image/png;base64,iVBORw0KGgo=".to_owned(),
            filename: Some("screen.png".to_owned()),
            provider_metadata: None,
        },
        Part::Data {
            name: "context".to_owned(),
            id: None,
            data: json!({ "uri": "file:///proj/notes.md", "mime": "text/markdown", "text": "main.rs is new" }),
        },
    ]
}

fn first_step(stored: &Stored) -> Vec<Part> {
    let main = call("call_1", "read", json!({ "path": "main.rs" }), stored.first_call.clone());
    let notes = call("call_2", "read", json!({ "path": "lib.rs" }), stored.second_call.clone());
    vec![
        Part::StepStart,
        reasoning("I look at both files.", stored.reasoning.clone()),
        answered(main, json!("fn main() { \"unclosed }\n")),
        failed(notes, "lib.rs does not exist"),
    ]
}

fn second_step(stored: &Stored) -> Vec<Part> {
    let input = json!({ "path": "main.rs", "old_string": "\"unclosed", "new_string": "" });
    let edit = call("call_3", "edit", input, stored.third_call.clone());
    vec![
        Part::StepStart,
        text("A string is not closed.", stored.text.clone()),
        answered(edit, json!({ "path": "main.rs", "replaced": 1 })),
    ]
}

fn tool(id: &str, effect: Effect) -> ToolSpec {
    let (description, kind) = match effect {
        Effect::ReadOnly | Effect::SessionOnly => ("Reads a file.", ToolKind::Read),
        Effect::Mutates => ("Changes a file.", ToolKind::Edit),
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "Where it is." },
            "limit": { "type": "integer", "minimum": 1 },
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    ToolSpec {
        id: id.into(),
        description: description.into(),
        parameters: parameters.into(),
        kind,
        effect,
        hidden: false,
    }
}
