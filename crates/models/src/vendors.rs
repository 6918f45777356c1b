//! The providers we know, as data: a compatible vendor is one entry in `vendors/table.rs` and no code.

use crate::dialect::Dialect;

mod table;

pub use table::VENDORS;

/// A provider that works by its name alone.
#[derive(Clone, Copy, Debug)]
pub struct Vendor {
    /// Its name in the configuration; also the first word of its variables.
    pub id: &'static str,
    /// Its name in texts for people.
    pub name: &'static str,
    /// The dialect it speaks.
    pub dialect: Dialect,
    /// Its base address as the vendor documents it; empty where each user has an own one (azure).
    pub base_url: &'static str,
    /// Whether it needs a key.
    pub key: KeyNeed,
    /// Environment variables that may hold the key; the first one set wins.
    pub key_variables: &'static [&'static str],
    /// The page where a person gets a key; for a local server, where to get the server.
    pub key_page: &'static str,
    /// The model for titles, if nothing is configured.
    pub small_model: Option<&'static str>,
    /// How the key travels.
    pub auth: AuthHeader,
    /// How it differs from others of its dialect.
    pub compatibility: Compatibility,
    /// Which part of the public model data belongs to it.
    pub shelf: Shelf,
}

/// Which part of the public model data belongs to the vendor, and in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shelf {
    /// The vendor's name in the models.dev data; `None` for servers whose models only they know.
    pub models_dev: Option<&'static str>,
    /// Prefixes of the model ids that we keep; empty keeps all.
    pub families: &'static [&'static str],
    /// The models that come first, best first; the first one is the default. The others follow by age, newest
    /// first.
    pub preferred: &'static [&'static str],
}

/// Whether a request without a key makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    /// Without a key it answers nothing.
    Required,
    /// A server of the user; it usually asks for no key.
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

/// How servers of one dialect differ. The default is what almost every server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compatibility {
    /// The field that bounds the answer in chat completions.
    pub answer_limit: AnswerLimit,
    /// How we tell a model over chat completions how much to think.
    pub effort: Effort,
    /// Whether the server understands `prompt_cache_key`.
    pub prompt_cache_key: bool,
    /// What makes chat completions report token counts in a stream.
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
    /// Whether `cache_control` marks reach Anthropic's models (`anthropic/…`) behind chat completions.
    pub cache_marks: bool,
    /// The word for the most thinking. We offer that level only for models that take the word.
    pub top_effort: TopEffort,
}

/// Which field limits the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AnswerLimit {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// How we tell a model how much to think.
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

/// Whether a stream reports its token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StreamUsage {
    /// `stream_options: {include_usage: true}` must be sent.
    #[default]
    Asked,
    /// The counts come without being asked for, and the server would refuse the field.
    Unasked,
}

/// How reasoning goes back to the model that wrote it; it goes to no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReasoningBack {
    /// Left out: OpenAI and most servers refuse or ignore it.
    #[default]
    Nothing,
    /// `reasoning_content`, where there was some.
    ReasoningContent,
    /// `reasoning_content`, empty where there was none: such a server refuses messages without it.
    ReasoningContentAlways,
    /// `reasoning`, where there was some.
    Reasoning,
    /// `reasoning_details`, unchanged.
    ReasoningDetails,
    /// A `thinking` part of the content.
    ThinkingParts,
}

/// Which ids a call may have.
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
    /// One string, joined by blank lines; the server refuses parts.
    Joined,
}

/// Whether a picture may be an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PictureUrls {
    /// The server fetches it.
    #[default]
    Fetched,
    /// The picture must be in the request.
    Refused,
}

/// Which messages may follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Turns {
    /// Any may.
    #[default]
    Free,
    /// A user may speak only after the assistant, not after another user or after results. Some vendors and the
    /// templates of many models refuse any other order.
    Alternate,
}

/// The word for the highest effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TopEffort {
    /// `"xhigh"`
    #[default]
    ExtraHigh,
    /// `"max"`
    Max,
}

impl TopEffort {
    /// The word as requests write it.
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

    /// The vendor that a misspelt id may mean: its display name, its name elsewhere, or a typing error.
    pub fn nearest(id: &str) -> Option<&'static Self> {
        let meant = id.trim().to_lowercase();
        let distance = |vendor: &Self| {
            let names = [vendor.name, vendor.shelf.models_dev.unwrap_or_default()];
            let known =
                names.into_iter().filter(|name| !name.is_empty()).any(|name| name.to_lowercase() == meant);
            if known { 0 } else { strsim::damerau_levenshtein(vendor.id, &meant) }
        };
        // A third of the letters may be wrong; with more it is another word.
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
