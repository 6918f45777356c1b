//! What a model's server sends for a long answer, in each dialect, as the real ones write it.

use attache_models::Dialect;
use serde_json::{Value, json};

use super::super::aims::DELTA;

pub(crate) fn body(dialect: Dialect, deltas: u64) -> Vec<u8> {
    body_of(dialect, &vec![DELTA; deltas as usize])
}

/// An answer of these pieces.
pub(crate) fn body_of(dialect: Dialect, pieces: &[&str]) -> Vec<u8> {
    let mut events = Events::default();
    match dialect {
        Dialect::Anthropic => anthropic(pieces, &mut events),
        Dialect::OpenAiChat => openai_chat(pieces, &mut events),
        Dialect::OpenAiResponses => openai_responses(pieces, &mut events),
        Dialect::Gemini => gemini(pieces, &mut events),
    }
    events.body
}

#[derive(Default)]
struct Events {
    body: Vec<u8>,
}

impl Events {
    fn data(&mut self, data: &str) {
        self.body.extend_from_slice(format!("data: {data}\n\n").as_bytes());
    }

    /// Named after the `type` of its data.
    fn named(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.body.extend_from_slice(format!("event: {name}\n").as_bytes());
        self.data(&data.to_string());
    }
}

fn anthropic(pieces: &[&str], events: &mut Events) {
    let usage = json!({"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1});
    let message = json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "model-1",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    events.named(&json!({"type": "message_start", "message": message}));
    let block = json!({"type": "text", "text": ""});
    events.named(&json!({"type": "content_block_start", "index": 0, "content_block": block}));
    for piece in pieces {
        let delta = json!({"type": "text_delta", "text": piece});
        events.named(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    events.named(&json!({"type": "content_block_stop", "index": 0}));
    let end = json!({"stop_reason": "end_turn", "stop_sequence": null});
    events.named(&json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": pieces.len()}}));
    events.named(&json!({"type": "message_stop"}));
}

fn openai_chat(pieces: &[&str], events: &mut Events) {
    let chunk = |delta: Value, finish: Value, usage: Value| {
        let choices = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        json!({
            "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1_741_569_952,
            "model": "model-1", "system_fingerprint": "fp_fc9f1d7035", "choices": choices, "usage": usage,
        })
    };
    events.data(&chunk(json!({"role": "assistant", "content": ""}), Value::Null, Value::Null).to_string());
    for piece in pieces {
        events.data(&chunk(json!({"content": piece}), Value::Null, Value::Null).to_string());
    }
    events.data(&chunk(json!({}), json!("stop"), Value::Null).to_string());
    let usage = json!({"prompt_tokens": 12, "completion_tokens": pieces.len()});
    let mut last = chunk(json!({}), Value::Null, usage);
    last["choices"] = json!([]);
    events.data(&last.to_string());
    events.data("[DONE]");
}

fn openai_responses(pieces: &[&str], events: &mut Events) {
    let deltas = pieces.len() as u64;
    let response = |status: &str, usage: Value| {
        json!({
            "id": "resp_67c9fdcecf488190bdd9a0409de3a1ec", "object": "response", "status": status, "model": "model-1",
            "output": [], "usage": usage,
        })
    };
    let item_id = "msg_67c9fdcf37fc8190ba82116e33fb28c5";
    let started = response("in_progress", Value::Null);
    events.named(&json!({"type": "response.created", "sequence_number": 0, "response": started}));
    let item = |status: &str, content: Value| json!({"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content});
    let added = item("in_progress", json!([]));
    events.named(&json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": added}));
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let place = |kind: &str, number: u64| json!({"type": kind, "sequence_number": number, "item_id": item_id, "output_index": 0, "content_index": 0});
    let mut opened = place("response.content_part.added", 2);
    opened["part"] = part("");
    events.named(&opened);
    for (number, piece) in (3..).zip(pieces) {
        let mut delta = place("response.output_text.delta", number);
        (delta["delta"], delta["logprobs"]) = (json!(piece), json!([]));
        events.named(&delta);
    }
    let text = pieces.concat();
    let mut done = place("response.output_text.done", deltas + 3);
    done["text"] = json!(text);
    events.named(&done);
    let finished = item("completed", json!([part(&text)]));
    events.named(&json!({"type": "response.output_item.done", "sequence_number": deltas + 4, "output_index": 0, "item": finished}));
    let completed = response("completed", json!({"input_tokens": 12, "output_tokens": deltas}));
    events
        .named(&json!({"type": "response.completed", "sequence_number": deltas + 5, "response": completed}));
}

fn gemini(pieces: &[&str], events: &mut Events) {
    let chunk = |piece: &str, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let usage = json!({"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19});
        json!({
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": "model-1",
            "responseId": "q3wCaeSJLqSn1PIP9dG2kQ4",
        })
    };
    let Some((last, before)) = pieces.split_last() else { return };
    for piece in before {
        events.data(&chunk(piece, None).to_string());
    }
    events.data(&chunk(last, Some("STOP")).to_string());
}
