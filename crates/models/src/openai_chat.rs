//! The dialect OpenAI Chat Completions: requests out, events in. Spoken by a dozen vendors, each with an accent
//! of its own: what differs in requests is in `Compatibility`, what differs in answers is taken as it comes.

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

use crate::compose::MediaKind;
use crate::dialect::{Dialect, DialectSpec, OPENAI_SERVER};

pub(crate) const SPEC: DialectSpec = DialectSpec {
    name: "openai-chat",
    path: "/chat/completions",
    alternative: Dialect::OpenAiResponses,
    server: OPENAI_SERVER,
    thinks_on_demand: false,
    takes: |kind, mime| match kind {
        MediaKind::Image | MediaKind::Pdf => true,
        MediaKind::Audio => user::audio_format(mime).is_some(),
    },
    body: encode::body,
    decoder: |request| Box::new(decode::ChatDecoder::new(request)),
};
