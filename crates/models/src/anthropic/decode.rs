//! Reads Anthropic Messages events.

use attache_core::ports::{ModelError, ModelRequest, StepEvent};

use crate::dialect::{Decoder, Heard};
use crate::sse::Event;

#[derive(Debug)]
pub(crate) struct AnthropicDecoder;

impl AnthropicDecoder {
    pub(crate) fn new(_request: &ModelRequest) -> Self {
        Self
    }
}

impl Decoder for AnthropicDecoder {
    fn event(&mut self, _event: &Event<'_>, _out: &mut Vec<StepEvent>) -> Result<Heard, ModelError> {
        Ok(Heard::Something)
    }
    fn body_ended(&mut self, _out: &mut Vec<StepEvent>) {}
}
