//! Chat completion chunks with all that vendors put into them. Every field may be missing, null or of another type.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::lenient::{Fields, First, Lenient, lenient};

type Text<'a> = Option<Cow<'a, str>>;

/// One event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) object: Text<'a>,
    /// We never ask for more than one.
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) choices: First<Option<Choice<'a>>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(super) x_groq: Option<Groq>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Value,
    /// With titles, where a vendor has them: Perplexity gives both lists.
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) search_results: Vec<Source<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) citations: Vec<Source<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) delta: Option<Delta<'a>>,
    /// A whole answer in one event, from servers that don't stream. Beside a delta it repeats what was said.
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) finish_reason: Text<'a>,
    /// Moonshot's place for it.
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) content: Content<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) reasoning: Text<'a>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_details: Vec<Option<Map<String, Value>>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) tool_calls: Vec<Option<ToolCall<'a>>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) function_call: Option<Function<'a>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) annotations: Vec<Option<Annotation<'a>>>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) images: Vec<Option<Part<'a>>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) audio: Option<Unread>,
}

/// A string, or a list of parts (Mistral).
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Option<Part<'a>>>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) text: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) thinking: Content<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) image_url: Address<'a>,
}

/// `{url: …}` or the url itself.
#[derive(Debug, Default)]
pub(super) struct Address<'a>(pub(super) Text<'a>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall<'a> {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) id: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) function: Option<Function<'a>>,
    /// Where Gemini keeps the signature of its thoughts; a call without it is refused later.
    #[serde(deserialize_with = "lenient")]
    pub(super) extra_content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) name: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) arguments: Arguments<'a>,
}

/// JSON in a string, or the JSON itself.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Text<'a>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotation<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    pub(super) url_citation: Source<'a>,
}

/// `{url, title}` or the url itself.
#[derive(Debug, Default)]
pub(super) struct Source<'a> {
    pub(super) url: Text<'a>,
    pub(super) title: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SourceFields<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    url: Text<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    title: Text<'a>,
}

/// Something that is there and not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Unread {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Groq {
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Tokens>,
}

/// Token counts; which ones hold which others is `tokens`' business.
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

impl<'de: 'a, 'a> Fields<'de> for Choice<'a> {}
impl<'de: 'a, 'a> Fields<'de> for Delta<'a> {}
impl<'de: 'a, 'a> Fields<'de> for Part<'a> {}
impl<'de: 'a, 'a> Fields<'de> for ToolCall<'a> {}
impl<'de: 'a, 'a> Fields<'de> for Function<'a> {}
impl<'de: 'a, 'a> Fields<'de> for Annotation<'a> {}
impl Fields<'_> for Unread {}
impl Fields<'_> for Groq {}
impl Fields<'_> for Tokens {}
impl Fields<'_> for PromptTokens {}
impl Fields<'_> for CompletionTokens {}
impl<'de: 'a, 'a> Fields<'de> for SourceFields<'a> {}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }
    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Vec::list(list).map(Self::Parts)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Address<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        Source::object(object).map(|source| Self(source.url))
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Source<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self { url: Some(text), title: None }
    }
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let fields = Option::<SourceFields<'a>>::object(object)?.unwrap_or_default();
        Ok(Self { url: fields.url, title: fields.title })
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Arguments<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        Value::object(object).map(|value| Self(Some(Cow::Owned(value.to_string()))))
    }
}
