//! The dialect OpenAI Chat Completions: requests out, events in. Spoken by a dozen vendors, each with an accent of its own:
//! what differs in requests is in `Quirks`, what differs in answers is taken as it comes.

mod assistant;
mod calls;
pub(crate) mod decode;
pub(crate) mod encode;
mod failure;
mod lenient;
mod names;
mod reasoning;
mod tokens;
mod user;
mod wire;

pub(crate) use user::audio_format;
