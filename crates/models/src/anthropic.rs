//! The dialect Anthropic Messages: requests out, events in.

pub(crate) mod decode;
pub(crate) mod encode;
mod names;
mod prefix;
mod thinking;

use crate::compose::MediaKind;
use crate::dialect::{Dialect, DialectSpec, ServerSpec};
use crate::discover::{ModelList, lists};
use crate::vendors::AuthHeader;

pub(crate) const SPEC: DialectSpec = DialectSpec {
    name: "anthropic",
    path: "/v1/messages",
    alternative: Dialect::OpenAiChat,
    server: ServerSpec {
        base_path: "",
        headers: &[("anthropic-version", "2023-06-01")],
        auth: AuthHeader::XApiKey,
        models: ModelList {
            path: "/v1/models?limit=1000",
            items: lists::openai_items,
            item: lists::openai_item,
            own_servers: false,
        },
    },
    thinks_on_demand: true,
    takes: |kind, _| match kind {
        MediaKind::Image | MediaKind::Pdf => true,
        MediaKind::Audio => false,
    },
    body: encode::body,
    decoder: |request| Box::new(decode::AnthropicDecoder::new(request)),
};
