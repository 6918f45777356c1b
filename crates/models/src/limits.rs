//! The bounds of this crate, each with its reason.

use std::time::Duration;

/// Context size of a scripted model that declares none: large enough that no ordinary scenario runs into it.
pub(crate) const SCRIPT_CONTEXT: u64 = 200_000;

/// Answer size of a scripted model that declares none.
pub(crate) const SCRIPT_MAX_OUTPUT: u64 = 32_000;

/// Bytes per token when a script states no usage: close to what English text costs with common tokenizers.
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// Characters of a prompt that a script's answer repeats: enough to know it by.
pub(crate) const SHOWN_PROMPT: usize = 80;

/// Tool arguments stream in about this many deltas, so that a short call still exercises partial JSON.
pub(crate) const ARGUMENT_DELTAS: usize = 8;

/// Smallest and largest piece of streamed arguments: below it deltas are noise, above it 5 MB of arguments
/// would come in lumps no provider sends.
pub(crate) const ARGUMENT_DELTA_BYTES: (usize, usize) = (16, 4096);

/// Sessions whose failed attempts (`times=`) we remember. Beyond it we forget all of them, so that a scripted
/// failure may happen again and memory stays bounded.
pub(crate) const REMEMBERED_ATTEMPTS: usize = 4096;

/// One server-sent event: an inline picture of 20 MiB in base64 fits, an endless line does not.
pub(crate) const EVENT_BYTES: usize = 32 * 1024 * 1024;

/// How much of an error's body we read; the message is in its first bytes.
pub(crate) const ERROR_BODY_BYTES: usize = 64 * 1024;

/// Characters of a provider's own words in one of our errors.
pub(crate) const PROVIDER_WORDS: usize = 500;

/// How long we ask a server where its models are, after a prompt found no path there: the user is waiting.
pub(crate) const ADVICE: Duration = Duration::from_secs(2);

/// The longest item id or call id OpenAI takes back.
pub(crate) const ITEM_ID_BYTES: usize = 64;

/// The longest id of a call that every server of chat completions takes.
pub(crate) const CHAT_ID_BYTES: usize = 40;

/// The longest name of a function OpenAI takes.
pub(crate) const CALL_NAME_BYTES: usize = 64;

/// Time to connect; we treat a slower server as absent.
pub(crate) const CONNECT: std::time::Duration = std::time::Duration::from_secs(15);

/// How long a model's stream may stay silent if nothing is configured: reasoning models can be quiet for
/// minutes.
pub const STREAM_IDLE: std::time::Duration = std::time::Duration::from_secs(300);

/// Models kept per vendor: as many as a person can look through in a list, and few enough to embed the file.
pub(crate) const CATALOGUE_MODELS: usize = 60;

/// Smallest context worth listing: the system prompt, the tools and one file of code need about this much.
pub(crate) const CATALOGUE_CONTEXT: u64 = 32_000;

/// Answer size where the data states none: enough for the longest file a person would want in one answer.
pub(crate) const UNLIMITED_OUTPUT: u64 = 32_768;

/// Tokens for thinking at low, medium, high and max where a model takes a number: a few thoughts, a page,
/// several, and what the vendor calls the point beyond which more is rarely used.
pub(crate) const THOUGHT_BUDGETS: [u64; 4] = [4_096, 10_240, 20_480, 32_000];

/// Anthropic takes no smaller budget.
pub(crate) const THOUGHT_BUDGET_LEAST: u64 = 1_024;

/// The title of a document in a request, in characters; Anthropic takes no longer one.
pub(crate) const TITLE_CHARACTERS: usize = 500;

/// The largest token count we believe. Sums over any session stay far from overflow, whatever a server claims.
pub(crate) const TOKENS: u64 = 1 << 40;

/// An answer may take this fraction of the context (one part in four); the conversation gets the rest.
pub(crate) const SHARE_OF_CONTEXT: u64 = 4;

/// The highest limit any maker states. Resellers state higher ones, which only cost: some reserve the money for
/// all of it.
pub(crate) const LONGEST_ANSWER: u64 = 131_072;

/// A list of models: the longest (a gateway with hundreds, each with a description) is about 1 MiB.
pub(crate) const MODEL_LIST_BYTES: usize = 8 * 1024 * 1024;

/// The published data of all vendors was 4.5 MiB when this was written.
pub(crate) const PUBLISHED_BYTES: usize = 32 * 1024 * 1024;

/// How many models of a local server we ask about one by one: the newest, and more than fit on a normal disk.
pub(crate) const DESCRIBED_MODELS: usize = 32;

/// Questions to such a server at once: it may be a small machine busy with an answer.
pub(crate) const QUESTIONS_AT_ONCE: usize = 4;
