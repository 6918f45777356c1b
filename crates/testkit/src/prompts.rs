//! Compares what a client said with what a load tells of it (I7): every prompt comes back as the blocks it was.

use serde_json::Value;

/// A prompt that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct SentPrompt {
    /// As the answer names it.
    pub message_id: String,
    pub blocks: Vec<Value>,
    pub stop_reason: String,
}

/// `loaded`: the `update` objects of a load. A prompt that was cancelled before its turn may be missing, no
/// other.
pub fn must_be_told(sent: &[SentPrompt], loaded: &[Value]) -> Result<(), String> {
    for prompt in sent {
        let of_prompt = |update: &&Value| {
            update["sessionUpdate"] == "user_message_chunk"
                && update["messageId"] == prompt.message_id.as_str()
        };
        let told = joined(loaded.iter().filter(of_prompt).map(|update| &update["content"]));
        if told.is_empty() && prompt.stop_reason == "cancelled" {
            continue;
        }
        let said = joined(&prompt.blocks);
        if said != told {
            let id = &prompt.message_id;
            return Err(format!("prompt {id} was said as\n  {said:?}\nbut loads as\n  {told:?}"));
        }
    }
    Ok(())
}

/// Adjacent text is one text, pieces of an embedded text are one; what rides along for the moment is left out.
fn joined<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for block in blocks {
        let mut block = block.clone();
        let is_piece = block["_meta"]["attache"]["piece"].as_u64().is_some_and(|piece| piece > 1);
        if let Some(fields) = block.as_object_mut() {
            fields.retain(|key, value| key != "_meta" && key != "annotations" && !value.is_null());
        }
        if let Some(last) = joined.last_mut()
            && continues(last, &block, is_piece)
        {
            let pointer = if block["type"] == "text" { "/text" } else { "/resource/text" };
            let more = block.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            if let Some(Value::String(text)) = last.pointer_mut(pointer) {
                text.push_str(more);
            }
            continue;
        }
        joined.push(block);
    }
    joined
}

fn continues(last: &Value, block: &Value, is_piece: bool) -> bool {
    let both_text = last["type"] == "text" && block["type"] == "text";
    both_text || (is_piece && last["resource"]["uri"] == block["resource"]["uri"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(blocks: Vec<Value>) -> [SentPrompt; 1] {
        [SentPrompt { message_id: "m1".into(), blocks, stop_reason: "end_turn".into() }]
    }

    fn chunk(content: Value) -> Value {
        json!({ "sessionUpdate": "user_message_chunk", "messageId": "m1", "content": content })
    }

    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn resource(text: &str, piece: Option<u64>) -> Value {
        let mut block = json!({ "type": "resource", "resource": { "uri": "file:///a", "mimeType": "text/plain", "text": text } });
        if let Some(piece) = piece {
            block["_meta"] = json!({ "attache": { "piece": piece, "of": 2 } });
        }
        block
    }

    #[test]
    fn pieces_are_what_they_are_pieces_of() {
        let sent = sent(vec![text("look "), text("here"), resource("abcdef", None)]);
        let loaded = [
            chunk(text("look h")),
            chunk(text("ere")),
            chunk(resource("abc", Some(1))),
            chunk(resource("def", Some(2))),
        ];
        assert_eq!(must_be_told(&sent, &loaded), Ok(()));
    }

    #[test]
    fn what_is_cut_missing_or_another_is_found() {
        let sent = sent(vec![text("look"), resource("abcdef", None)]);
        for loaded in [
            vec![chunk(text("look")), chunk(resource("abc", None))],
            vec![chunk(text("look"))],
            vec![chunk(resource("abcdef", None)), chunk(text("look"))],
            vec![
                chunk(text("look")),
                chunk(json!({ "type": "resource_link", "name": "a", "uri": "file:///a" })),
            ],
            Vec::new(),
        ] {
            assert!(must_be_told(&sent, &loaded).is_err(), "{loaded:?}");
        }
    }

    #[test]
    fn only_what_was_cancelled_may_be_missing() {
        let mut sent = sent(vec![text("x")]);
        sent[0].stop_reason = "cancelled".into();
        assert_eq!(must_be_told(&sent, &[]), Ok(()));
        assert!(must_be_told(&sent, &[chunk(text("y"))]).is_err());
    }
}
