//! The dialect OpenAI Chat Completions: requests out, events in. A dozen vendors speak it, each a little
//! differently: `Compatibility` states how requests differ; the decoder accepts every variant of an answer.

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
