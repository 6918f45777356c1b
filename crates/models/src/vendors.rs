//! The providers we know, as data: a compatible vendor is one entry in `vendors/table.rs` and no code.

use crate::dialect::Dialect;

mod table;

pub use table::VENDORS;

/// A provider that can be used by its name alone.
#[derive(Clone, Copy, Debug)]
pub struct Vendor {
    /// As people write it in the configuration; also the first word of its variables.
    pub id: &'static str,
    /// As people write it.
    pub name: &'static str,
    /// What it speaks.
    pub dialect: Dialect,
    /// As the vendor writes it; empty where it is the user's own (azure).
    pub base_url: &'static str,
    /// Whether it needs a key.
    pub key: KeyNeed,
    /// Environment variables that may hold the key, the first found wins.
    pub key_variables: &'static [&'static str],
    /// Where a person gets a key; for a server of one's own, where one gets the server.
    pub key_page: &'static str,
    /// For titles, when nothing is configured.
    pub small_model: Option<&'static str>,
    /// How the key travels.
    pub auth: AuthHeader,
    /// How it differs from others of its dialect.
    pub compatibility: Compatibility,
    /// Which public data on models is its own.
    pub shelf: Shelf,
}

/// What of the public model data is the vendor's, and in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shelf {
    /// The vendor's name in the models.dev data; `None` for servers whose models only they know.
    pub models_dev: Option<&'static str>,
    /// How the ids of the models begin that are kept; empty keeps all.
    pub families: &'static [&'static str],
    /// What comes first, best first: the first one is the default. The others follow by age, newest first.
    pub preferred: &'static [&'static str],
}

/// Whether a request without a key makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    /// Without one it answers nothing.
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

/// Where servers of one dialect differ. The default is what almost every server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compatibility {
    /// The field that bounds the answer in chat completions.
    pub answer_limit: AnswerLimit,
    /// How chat completions are told how much to think.
    pub effort: Effort,
    /// `prompt_cache_key` is understood.
    pub prompt_cache_key: bool,
    /// What makes chat completions count their tokens in a stream.
    pub stream_usage: StreamUsage,
    /// What chat completions take back of a model's own reasoning.
    pub reasoning_back: ReasoningBack,
    /// Which ids of calls chat completions take.
    pub call_ids: CallIds,
    /// How chat completions take several texts of one message.
    pub texts: TextParts,
    /// Whether chat completions fetch pictures.
    pub picture_urls: PictureUrls,
    /// Who may speak after whom in chat completions.
    pub turns: Turns,
    /// `cache_control` marks reach the models of Anthropic (`anthropic/…`) behind chat completions.
    pub cache_marks: bool,
    /// The word for the most thinking. A model is offered that level only where it takes the word.
    pub top_effort: TopEffort,
}

/// How an answer is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AnswerLimit {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How a model is told how much to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Not at all.
    #[default]
    Unknown,
    /// `reasoning_effort: "low"`, off is `"none"`
    ReasoningEffort,
    /// `reasoning: {effort: "low"}` or `{enabled: false}`
    ReasoningObject,
    /// `reasoning_effort: "low"`, off is `reasoning: {enabled: false}`
    ReasoningSwitch,
    /// `thinking: {type: "enabled"}` with `reasoning_effort: "low"`, or `thinking: {type: "disabled"}`
    ThinkingSwitch,
}

/// Whether a stream tells what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StreamUsage {
    /// `stream_options: {include_usage: true}` must be sent.
    #[default]
    Asked,
    /// The counts come by themselves, and the field would be refused.
    Unasked,
}

/// Reasoning goes back to the model that had it and to no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReasoningBack {
    /// Left out: OpenAI and most servers refuse or ignore it.
    #[default]
    Nothing,
    /// `reasoning_content`, where there was some.
    ReasoningContent,
    /// `reasoning_content`, empty where there was none: such a server refuses answers without it.
    ReasoningContentAlways,
    /// `reasoning`, where there was some.
    Reasoning,
    /// `reasoning_details` as they came.
    ReasoningDetails,
    /// A `thinking` part of the content.
    ThinkingParts,
}

/// What calls are named by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallIds {
    /// Up to 40 visible characters.
    #[default]
    Visible,
    /// Exactly nine letters or digits.
    NineLetters,
}

/// How the text of a message is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextParts {
    /// Each is a part of its own.
    #[default]
    Parts,
    /// One string, joined by blank lines; parts are refused.
    Joined,
}

/// Whether pictures may be addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PictureUrls {
    /// The server gets them.
    #[default]
    Fetched,
    /// Pictures must be in the request.
    Refused,
}

/// Which messages may follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Turns {
    /// Any may.
    #[default]
    Free,
    /// A user speaks after the assistant only, not after another user or after results. Some vendors and the
    /// templates of many models refuse everything else.
    Alternate,
}

/// What the highest effort is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TopEffort {
    /// `"xhigh"`
    #[default]
    ExtraHigh,
    /// `"max"`
    Max,
}

impl TopEffort {
    /// As requests name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl Vendor {
    /// The vendor of that id.
    pub fn find(id: &str) -> Option<&'static Self> {
        VENDORS.iter().find(|vendor| vendor.id == id)
    }

    /// The vendor somebody may have meant who wrote something else: its written name, its name elsewhere, a
    /// slip of the pen.
    pub fn nearest(id: &str) -> Option<&'static Self> {
        let meant = id.trim().to_lowercase();
        let distance = |vendor: &Self| {
            let names = [vendor.name, vendor.shelf.models_dev.unwrap_or_default()];
            let known =
                names.into_iter().filter(|name| !name.is_empty()).any(|name| name.to_lowercase() == meant);
            if known { 0 } else { strsim::damerau_levenshtein(vendor.id, &meant) }
        };
        // A third of the letters may be wrong: more is another word.
        let allowed = (meant.chars().count() / 3).max(1);
        let nearest = VENDORS.iter().min_by_key(|vendor| distance(vendor))?;
        (distance(nearest) <= allowed).then_some(nearest)
    }

    /// The variable that overrides the address.
    pub fn base_url_variable(&self) -> String {
        format!("{}_BASE_URL", self.id.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests;
