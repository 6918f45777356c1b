//! The fields of the API's events that we read. Texts are borrowed from the event, and the usual single part
//! needs no list, so a delta costs only the one allocation that outlives it. Rare fields are boxed: the reader
//! moves every value from level to level, and most events lack them. Fields not named here are ignored.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use attache_core::ports::model::Usage;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::escaped::Escaped;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GeminiResponse<'a> {
    /// The first candidate; we never ask for more.
    #[serde(borrow, deserialize_with = "first")]
    pub(super) candidates: Option<Candidate<'a>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<Box<PromptFeedback<'a>>>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response_id: Option<GeminiText<'a>>,
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<GeminiContent<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) finish_message: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) grounding_metadata: Option<Box<Grounding<'a>>>,
    #[serde(borrow)]
    pub(super) citation_metadata: Option<Box<Citations<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GeminiContent<'a> {
    #[serde(borrow)]
    pub(super) parts: GeminiParts<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GeminiPart<'a> {
    /// Raw, because this field streams.
    #[serde(borrow)]
    pub(super) text: Option<Escaped<'a>>,
    pub(super) thought: Option<bool>,
    #[serde(borrow)]
    pub(super) thought_signature: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Box<FunctionCall<'a>>>,
    #[serde(borrow)]
    pub(super) inline_data: Option<Box<InlineData<'a>>>,
    #[serde(borrow)]
    pub(super) executable_code: Option<Box<ExecutableCode<'a>>>,
    #[serde(borrow)]
    pub(super) code_execution_result: Option<Box<CodeExecutionResult<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<GeminiText<'a>>,
    pub(super) args: Option<Value>,
    /// Arguments that come in pieces. We never ask for them, but if a server sends them anyway we must not run
    /// half a call.
    pub(super) will_continue: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InlineData<'a> {
    #[serde(borrow)]
    pub(super) mime_type: GeminiText<'a>,
    #[serde(borrow)]
    pub(super) data: GeminiText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExecutableCode<'a> {
    #[serde(borrow)]
    pub(super) language: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) code: GeminiText<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CodeExecutionResult<'a> {
    #[serde(borrow)]
    pub(super) outcome: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) output: Option<GeminiText<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Option<GeminiText<'a>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UsageMetadata {
    prompt_token_count: Option<GeminiCount>,
    cached_content_token_count: Option<GeminiCount>,
    tool_use_prompt_token_count: Option<GeminiCount>,
    candidates_token_count: Option<GeminiCount>,
    thoughts_token_count: Option<GeminiCount>,
}

impl UsageMetadata {
    /// The prompt count includes cached tokens, but not what the API's own tools read. The candidates' count
    /// does not include thoughts.
    pub(super) fn usage(&self) -> Usage {
        let count = |count: Option<GeminiCount>| count.unwrap_or_default().0;
        let cached = count(self.cached_content_token_count);
        let fresh = count(self.prompt_token_count).saturating_sub(cached);
        Usage {
            input: fresh.saturating_add(count(self.tool_use_prompt_token_count)),
            output: count(self.candidates_token_count),
            reasoning: count(self.thoughts_token_count),
            cache_read: cached,
            cache_write: 0,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Grounding<'a> {
    #[serde(borrow)]
    grounding_chunks: Option<Vec<GroundingChunk<'a>>>,
}

impl<'a> Grounding<'a> {
    pub(super) fn places(self) -> impl Iterator<Item = GroundingSource<'a>> {
        let chunks = self.grounding_chunks.into_iter().flatten();
        chunks.filter_map(|chunk| chunk.web.or(chunk.maps).or(chunk.retrieved_context))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroundingChunk<'a> {
    #[serde(borrow)]
    web: Option<GroundingSource<'a>>,
    #[serde(borrow)]
    maps: Option<GroundingSource<'a>>,
    #[serde(borrow)]
    retrieved_context: Option<GroundingSource<'a>>,
}

/// The same thing under two names: the Gemini API says `citationSources`, Vertex says `citations`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Citations<'a> {
    #[serde(borrow)]
    citation_sources: Option<Vec<GroundingSource<'a>>>,
    #[serde(borrow)]
    citations: Option<Vec<GroundingSource<'a>>>,
}

impl<'a> Citations<'a> {
    pub(super) fn places(self) -> impl Iterator<Item = GroundingSource<'a>> {
        self.citation_sources.into_iter().chain(self.citations).flatten()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroundingSource<'a> {
    #[serde(borrow)]
    pub(super) uri: Option<GeminiText<'a>>,
    #[serde(borrow)]
    pub(super) title: Option<GeminiText<'a>>,
}

/// A number of tokens. Some gateways write it as text or with a decimal point; a count is no reason to lose an
/// answer.
#[derive(Clone, Copy, Debug, Default)]
struct GeminiCount(u64);

impl<'de> Deserialize<'de> for GeminiCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GeminiCountVisitor;
        impl Visitor<'_> for GeminiCountVisitor {
            type Value = GeminiCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, count: u64) -> Result<GeminiCount, E> {
                Ok(GeminiCount(count))
            }
            fn visit_i64<E>(self, count: i64) -> Result<GeminiCount, E> {
                Ok(GeminiCount(u64::try_from(count).unwrap_or_default()))
            }
            fn visit_f64<E>(self, count: f64) -> Result<GeminiCount, E> {
                // The cast saturates, and turns a NaN into 0.
                Ok(GeminiCount(count as u64))
            }
            fn visit_str<E>(self, count: &str) -> Result<GeminiCount, E> {
                Ok(GeminiCount(count.parse().unwrap_or_default()))
            }
        }
        deserializer.deserialize_any(GeminiCountVisitor)
    }
}

/// A string of the event. Its own type, because serde borrows a `Cow` only where it is a field itself.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct GeminiText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl GeminiText<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

/// Almost always one part.
#[derive(Debug, Default)]
pub(super) struct GeminiParts<'a> {
    first: Option<GeminiPart<'a>>,
    rest: Vec<GeminiPart<'a>>,
}

impl<'a> GeminiParts<'a> {
    pub(super) fn into_iter(self) -> impl Iterator<Item = GeminiPart<'a>> {
        self.first.into_iter().chain(self.rest)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for GeminiParts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartsVisitor<'a>(PhantomData<GeminiParts<'a>>);
        impl<'de: 'a, 'a> Visitor<'de> for PartsVisitor<'a> {
            type Value = GeminiParts<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parts")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(GeminiParts::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut parts = GeminiParts { first: items.next_element()?, rest: Vec::new() };
                while let Some(part) = items.next_element()? {
                    parts.rest.push(part);
                }
                Ok(parts)
            }
        }
        deserializer.deserialize_any(PartsVisitor(PhantomData))
    }
}

/// The first of a list, without the list.
fn first<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct FirstVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let first = items.next_element()?;
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }
    deserializer.deserialize_any(FirstVisitor(PhantomData))
}
