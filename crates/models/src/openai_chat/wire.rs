//! Chat completion chunks with every vendor's fields. Each field may be missing, null or of another type. Large
//! rare fields are boxed, because the reader moves every value from level to level.

use serde::Deserialize;

use super::lenient::{FirstItem, LenientStruct, Raw, lenient};

/// One event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatChunk<'a> {
    #[serde(borrow)]
    pub(super) object: Raw<'a>,
    /// We never ask for more than one.
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) choices: FirstItem<ChatChoice<'a>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Box<Tokens>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) x_groq: Option<Box<Groq>>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
    /// A list of sources with titles, from vendors that have one: Perplexity sends both lists.
    #[serde(borrow)]
    pub(super) search_results: Raw<'a>,
    #[serde(borrow)]
    pub(super) citations: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatChoice<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) delta: Option<ChatDelta<'a>>,
    /// A whole answer in one event, from servers that do not stream. Beside a delta it repeats the deltas.
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) message: Option<Box<ChatDelta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: Raw<'a>,
    /// Where Moonshot puts the usage.
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Box<Tokens>>,
    #[serde(borrow)]
    pub(super) error: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatDelta<'a> {
    /// A text, or a list of parts (Mistral).
    #[serde(borrow)]
    pub(super) content: Raw<'a>,
    #[serde(borrow)]
    pub(super) refusal: Raw<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Raw<'a>,
    #[serde(borrow)]
    pub(super) reasoning: Raw<'a>,
    /// A list of blocks or pieces of blocks.
    #[serde(borrow)]
    pub(super) reasoning_details: Raw<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) tool_calls: Vec<ToolCall<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) function_call: Option<ChatFunction<'a>>,
    /// A list of annotations.
    #[serde(borrow)]
    pub(super) annotations: Raw<'a>,
    /// A list of parts.
    #[serde(borrow)]
    pub(super) images: Raw<'a>,
    #[serde(borrow)]
    pub(super) audio: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatDeltaPart<'a> {
    #[serde(borrow)]
    pub(super) text: Raw<'a>,
    /// A text, or a list of parts.
    #[serde(borrow)]
    pub(super) thinking: Raw<'a>,
    /// An address, or an object with one.
    #[serde(borrow)]
    pub(super) image_url: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall<'a> {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Raw<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) function: Option<ChatFunction<'a>>,
    /// Where Gemini puts the signature of its thoughts; a later request refuses the call without it.
    #[serde(borrow)]
    pub(super) extra_content: Raw<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatFunction<'a> {
    #[serde(borrow)]
    pub(super) name: Raw<'a>,
    /// JSON in a text, or the JSON itself.
    #[serde(borrow)]
    pub(super) arguments: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatAnnotation<'a> {
    #[serde(borrow)]
    pub(super) url_citation: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatSource<'a> {
    #[serde(borrow)]
    pub(super) url: Raw<'a>,
    #[serde(borrow)]
    pub(super) title: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Groq {
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Box<Tokens>>,
}

/// Token counts; `tokens` knows which of them include which others.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(deserialize_with = "lenient")]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) completion_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) total_tokens: Option<u64>,
    /// DeepSeek.
    #[serde(deserialize_with = "lenient")]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot.
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_tokens: Option<u64>,
    /// Perplexity.
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) prompt_tokens_details: Option<PromptTokens>,
    #[serde(deserialize_with = "lenient")]
    pub(super) completion_tokens_details: Option<CompletionTokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptTokens {
    #[serde(deserialize_with = "lenient")]
    pub(super) cached_tokens: Option<u64>,
    /// OpenRouter.
    #[serde(deserialize_with = "lenient")]
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionTokens {
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_tokens: Option<u64>,
}

impl<'de: 'a, 'a> LenientStruct<'de> for ChatChoice<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ChatDelta<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ChatDeltaPart<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ToolCall<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ChatFunction<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ChatAnnotation<'a> {}
impl<'de: 'a, 'a> LenientStruct<'de> for ChatSource<'a> {}
impl LenientStruct<'_> for Groq {}
impl LenientStruct<'_> for Tokens {}
impl LenientStruct<'_> for PromptTokens {}
impl LenientStruct<'_> for CompletionTokens {}

impl<'a> ChatSource<'a> {
    /// An object, or the address alone.
    pub(super) fn of(raw: Raw<'a>) -> Self {
        if raw.is_text() {
            Self { url: raw, title: Raw::default() }
        } else {
            raw.read::<Option<Self>>().unwrap_or_default()
        }
    }
}
