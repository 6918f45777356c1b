//! The providers we know, as data: a compatible vendor is one entry here and no code.

use crate::dialect::Dialect;

/// A provider that can be used by its name alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vendor {
    pub id: &'static str,
    /// As people write it.
    pub name: &'static str,
    pub dialect: Dialect,
    /// As the vendor writes it; empty where it is the user's own (azure).
    pub base_url: &'static str,
    pub key: KeyNeed,
    /// Environment variables that may hold the key, the first found wins.
    pub key_variables: &'static [&'static str],
    /// Where a person gets a key.
    pub key_page: &'static str,
    /// For titles, when nothing is configured.
    pub small_model: Option<&'static str>,
    pub auth: AuthHeader,
    pub quirks: Quirks,
}

/// Whether a request without a key makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    Required,
    /// A server of the user's own; it usually asks for none.
    Optional,
}

/// How the key travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthHeader {
    /// `authorization: Bearer KEY`
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    Goog,
    /// `api-key: KEY`
    ApiKey,
}

/// Where servers of one dialect differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quirks {
    /// The field that bounds the answer in chat completions.
    pub answer_limit: AnswerLimit,
    /// How chat completions are told how much to think.
    pub effort: Effort,
    /// `prompt_cache_key` is understood.
    pub prompt_cache_key: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AnswerLimit {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Not at all.
    #[default]
    Unknown,
    /// `reasoning_effort: "low"`
    ReasoningEffort,
    /// `reasoning: {effort: "low"}` or `{enabled: false}`
    ReasoningObject,
}
