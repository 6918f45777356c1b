//! The blocks of a message as the wire has them.

use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: AnthropicSource<'a>,
    },
    Document {
        source: AnthropicSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "ResultContent::is_empty")]
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

/// The content of a call's result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<ContentBlock<'a>>),
}

impl ResultContent<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnthropicSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}
