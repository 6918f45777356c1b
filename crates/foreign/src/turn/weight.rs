//! How much of an agent's answer a chunk is, so that no answer grows without end.

use attache_core::chunk::Chunk;
use serde_json::Value;

/// What a chunk takes to store, nearly: everything that can be long counts.
pub(super) fn weight(chunk: &Chunk) -> u64 {
    let own = if let Chunk::TextDelta { delta, .. } | Chunk::ReasoningDelta { delta, .. } = chunk {
        delta.len()
    } else if let Chunk::ToolInputDelta { input_text_delta, .. } = chunk {
        input_text_delta.len()
    } else if let Chunk::File { url, .. } | Chunk::SourceUrl { url, .. } = chunk {
        url.len()
    } else if let Chunk::Data { data: value, .. }
    | Chunk::ToolInputAvailable { input: value, .. }
    | Chunk::ToolOutputAvailable { output: value, .. } = chunk
    {
        value_weight(value)
    } else if let Chunk::ToolInputError { input, error_text, .. } = chunk {
        value_weight(input) + error_text.len()
    } else if let Chunk::ToolOutputError { error_text, .. } = chunk {
        error_text.len()
    } else {
        0
    };
    let rest = chunk.rest().0.as_deref().map_or(0, |fields| {
        let metadata = [&fields.provider_metadata, &fields.tool_metadata];
        let metadata: usize = metadata.into_iter().flatten().map(value_weight).sum();
        metadata + fields.unknown.iter().map(|(key, value)| key.len() + value_weight(value)).sum::<usize>()
    });
    // No chunk is free: a flood of empty ones fills a disk as well.
    (own + rest) as u64 + 64
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => 2 + values.iter().map(value_weight).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() + value_weight(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_long_has_its_weight() {
        let long = "x".repeat(1_000);
        for text in [
            format!(r#"{{"type":"data-x","data":["{long}"]}}"#),
            format!(r#"{{"type":"text-delta","id":"1","delta":"{long}"}}"#),
            format!(r#"{{"type":"tool-output-available","toolCallId":"c","output":{{"a":"{long}"}}}}"#),
            format!(r#"{{"type":"tool-output-error","toolCallId":"c","errorText":"{long}"}}"#),
            format!(r#"{{"type":"tool-input-available","toolCallId":"c","toolName":"t","input":"{long}"}}"#),
            format!(r#"{{"type":"text-start","id":"1","providerMetadata":{{"a":{{"b":"{long}"}}}}}}"#),
            format!(r#"{{"type":"text-start","id":"1","more":"{long}"}}"#),
        ] {
            let chunk = attache_core::chunk::json::decode(&text).unwrap();
            assert!(weight(&chunk) > 1_000, "{text}");
        }
    }
}
