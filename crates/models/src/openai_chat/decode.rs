//! Reads OpenAI Chat Completions events.

use attache_core::ports::{ModelError, ModelRequest, StepEvent};

use crate::dialect::{Decoder, Heard};
use crate::sse::Event;

#[derive(Debug)]
pub(crate) struct ChatDecoder;

impl ChatDecoder {
    pub(crate) fn new(_request: &ModelRequest) -> Self {
        Self
    }
}

impl Decoder for ChatDecoder {
    fn event(&mut self, _event: &Event<'_>, _out: &mut Vec<StepEvent>) -> Result<Heard, ModelError> {
        Ok(Heard::Something)
    }
    fn body_ended(&mut self, _out: &mut Vec<StepEvent>) {}
}
