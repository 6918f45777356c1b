//! The dialect OpenAI Responses: requests out, events in. The server stores nothing, so we send the whole
//! history.

pub(crate) mod decode;
mod efforts;
pub(crate) mod encode;
mod wire;

use crate::compose::MediaKind;
use crate::dialect::{Dialect, DialectSpec, OPENAI_SERVER};

pub(crate) const SPEC: DialectSpec = DialectSpec {
    name: "openai-responses",
    path: "/responses",
    alternative: Dialect::OpenAiChat,
    server: OPENAI_SERVER,
    thinks_on_demand: false,
    takes: |kind, _| match kind {
        MediaKind::Image | MediaKind::Pdf => true,
        MediaKind::Audio => false,
    },
    body: encode::body,
    decoder: |request| Box::new(decode::ResponsesDecoder::new(request)),
};
