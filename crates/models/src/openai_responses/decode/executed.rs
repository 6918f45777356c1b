//! Tools the provider runs: shown as calls with their results, never run here. Pictures that the provider made
//! become files.

use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::StepEvent;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ResponsesDecoder, push};
use crate::openai_responses::wire::OutputItem;

/// One of the provider's tools: its item, the name we give its calls, and the field that holds the question.
struct Hosted {
    item: &'static str,
    tool_name: &'static str,
    asked: &'static str,
}

const HOSTED: [Hosted; 4] = [
    Hosted { item: "web_search_call", tool_name: "web_search", asked: "action" },
    Hosted { item: "file_search_call", tool_name: "file_search", asked: "queries" },
    Hosted { item: "code_interpreter_call", tool_name: "code_interpreter", asked: "code" },
    Hosted { item: "mcp_call", tool_name: "mcp", asked: "arguments" },
];

const PICTURE: &str = "image_generation_call";

/// A call in progress.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    call_id: CallId,
    tool_name: String,
}

impl Executed {
    /// The answer ended before the call did.
    pub(super) fn give_up(self, out: &mut Vec<StepEvent>) {
        let error_text = "the provider did not finish this call".to_owned();
        self.whole(Value::Object(Map::new()), out);
        push(
            out,
            Chunk::ToolOutputError { call_id: self.call_id, error_text, marks: marks(), rest: Rest::none() },
        );
    }

    fn whole(&self, input: Value, out: &mut Vec<StepEvent>) {
        let (call_id, tool_name) = (self.call_id.clone(), self.tool_name.clone());
        push(
            out,
            Chunk::ToolInputAvailable { call_id, tool_name, input, marks: marks(), rest: Rest::none() },
        );
    }
}

impl ResponsesDecoder {
    pub(super) fn begin_executed(&mut self, index: u64, item: &OutputItem<'_>, out: &mut Vec<StepEvent>) {
        let Some(hosted) = HOSTED.iter().find(|hosted| hosted.item == &*item.kind) else {
            if &*item.kind != PICTURE {
                tracing::debug!(kind = &*item.kind, "an unknown item of OpenAI Responses was passed over");
            }
            return;
        };
        if self.open.executed.contains_key(&index) {
            return;
        }
        let executed = self.executed(index, hosted, item);
        let (call_id, tool_name) = (executed.call_id.clone(), executed.tool_name.clone());
        push(
            out,
            Chunk::ToolInputStart {
                call_id,
                tool_name,
                input_encoding: None,
                marks: marks(),
                rest: Rest::none(),
            },
        );
        self.open.executed.insert(index, executed);
    }

    fn executed(&mut self, index: u64, hosted: &Hosted, item: &OutputItem<'_>) -> Executed {
        let tool_name = if item.name.is_empty() { hosted.tool_name } else { &*item.name };
        Executed { call_id: self.call_id(index, &[&item.id]), tool_name: tool_name.to_owned() }
    }

    pub(super) fn end_executed(
        &mut self,
        index: u64,
        item: &OutputItem<'_>,
        raw: &RawValue,
        out: &mut Vec<StepEvent>,
    ) {
        if &*item.kind == PICTURE {
            return self.picture(item, out);
        }
        let Some(hosted) = HOSTED.iter().find(|hosted| hosted.item == &*item.kind) else { return };
        let open = self.open.executed.remove(&index);
        let executed = open.unwrap_or_else(|| self.executed(index, hosted, item));
        let said: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        executed.whole(asked(&said, hosted.asked), out);
        let call_id = executed.call_id;
        let failure = said.get("error").filter(|error| !error.is_null());
        if &*item.status == "failed" || failure.is_some() {
            let error_text = match failure {
                Some(Value::String(text)) => text.clone(),
                Some(error) => error.to_string(),
                None => "the provider's tool failed".to_owned(),
            };
            push(out, Chunk::ToolOutputError { call_id, error_text, marks: marks(), rest: Rest::none() });
            return;
        }
        // The item itself is the result: we send it back to the model unchanged.
        let rest = self.mark(None, None);
        push(
            out,
            Chunk::ToolOutputAvailable { call_id, output: said, preliminary: None, marks: marks(), rest },
        );
    }

    fn picture(&self, item: &OutputItem<'_>, out: &mut Vec<StepEvent>) {
        if item.result.is_empty() {
            return;
        }
        let format = match &*item.output_format {
            known @ ("png" | "jpeg" | "webp") => known,
            _ => "png",
        };
        let media_type = format!("image/{format}");
        let url = format!("data:{media_type};base64,{}", &*item.result);
        let id = Some(&*item.id).filter(|id| !id.is_empty());
        push(out, Chunk::File { url, media_type, rest: self.mark(id, None) });
    }
}

fn marks() -> ToolMarks {
    ToolMarks { provider_executed: Some(true), ..ToolMarks::default() }
}

/// The question, as an object.
fn asked(item: &Value, key: &str) -> Value {
    match item.get(key) {
        Some(Value::Object(fields)) => Value::Object(fields.clone()),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            Ok(_) | Err(_) => Value::Object(Map::from_iter([(key.to_owned(), text.as_str().into())])),
        },
        Some(Value::Null) | None => Value::Object(Map::new()),
        Some(other) => Value::Object(Map::from_iter([(key.to_owned(), other.clone())])),
    }
}
