//! The spans that wait to be sent: bounded in number and bytes. The oldest go first, and are counted.

use std::collections::VecDeque;

use attache_core::ports::telemetry::{FinishedSpan, SpanStatus, SpanValue};
use serde_json::Value;

use crate::limits::{BATCH_BYTES, BATCH_SPANS, QUEUED_BYTES, QUEUED_SPANS};

#[derive(Debug, Default)]
pub(crate) struct SpanQueue {
    /// With what each takes, roughly.
    spans: VecDeque<(FinishedSpan, usize)>,
    bytes: usize,
}

impl SpanQueue {
    /// How many were dropped to make room for it.
    pub(crate) fn push(&mut self, span: FinishedSpan) -> u64 {
        let bytes = size(&span);
        self.spans.push_back((span, bytes));
        self.bytes += bytes;
        let mut dropped = 0;
        while self.spans.len() > QUEUED_SPANS || (self.bytes > QUEUED_BYTES && self.spans.len() > 1) {
            if let Some((_, bytes)) = self.spans.pop_front() {
                self.bytes -= bytes;
                dropped += 1;
            }
        }
        dropped
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn is_batch_full(&self) -> bool {
        self.spans.len() >= BATCH_SPANS || self.bytes >= BATCH_BYTES
    }

    /// What goes with the next request; nothing if there is nothing.
    pub(crate) fn take_batch(&mut self) -> Vec<FinishedSpan> {
        let mut batch = Vec::new();
        let mut taken = 0;
        while batch.len() < BATCH_SPANS && taken < BATCH_BYTES {
            let Some((span, bytes)) = self.spans.pop_front() else { break };
            self.bytes -= bytes;
            taken += bytes;
            batch.push(span);
        }
        batch
    }
}

/// The rough size of a span on the wire: only content can be large.
fn size(span: &FinishedSpan) -> usize {
    const FRAME: usize = 300;
    const ATTRIBUTE: usize = 60;
    let attributes = span.attributes.iter().map(|(_, value)| {
        ATTRIBUTE
            + match value {
                SpanValue::Text(text) => text.len(),
                SpanValue::Texts(texts) => texts.iter().map(String::len).sum(),
                SpanValue::Content(content) => content_size(content),
                SpanValue::Integer(_) | SpanValue::Number(_) | SpanValue::Flag(_) => 0,
            }
    });
    let words = match &span.status {
        SpanStatus::Failed { words: Some(words) } => words.len(),
        SpanStatus::Failed { words: None } | SpanStatus::Unset => 0,
    };
    FRAME + words + attributes.sum::<usize>()
}

fn content_size(content: &Value) -> usize {
    match content {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(content_size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + content_size(value)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use attache_core::ids::MessageId;
    use attache_core::ports::telemetry::{SpanContext, SpanKind};
    use serde_json::json;

    use super::*;

    fn span(number: i64, content: usize) -> FinishedSpan {
        FinishedSpan {
            name: "tool.call".into(),
            kind: SpanKind::Internal,
            context: SpanContext::of_turn(&MessageId::new("msg_1")),
            parent: None,
            links: Vec::new(),
            started_at: number,
            ended_at: number,
            attributes: vec![("x", SpanValue::Content(json!("x".repeat(content))))],
            status: SpanStatus::Unset,
        }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut queue = SpanQueue::default();
        let dropped: u64 = (0..3_000).map(|number| queue.push(span(number, 0))).sum();
        assert_eq!((dropped, queue.len()), (3_000 - QUEUED_SPANS as u64, QUEUED_SPANS));
        assert_eq!(queue.take_batch()[0].started_at, 3_000 - QUEUED_SPANS as i64);
        assert_eq!(queue.len(), QUEUED_SPANS - BATCH_SPANS);
    }

    #[test]
    fn the_oldest_go_when_they_are_too_large_and_batches_stay_small() {
        let mut queue = SpanQueue::default();
        let dropped: u64 = (0..20).map(|number| queue.push(span(number, 1024 * 1024))).sum();
        assert!(dropped >= 12 && queue.len() <= 8, "{dropped} {}", queue.len());
        assert!(queue.take_batch().len() <= 2);
        // One that is larger than everything is sent all the same.
        queue.push(span(99, 2 * QUEUED_BYTES));
        assert_eq!((queue.len(), queue.take_batch()[0].started_at), (1, 99));
        assert_eq!((queue.bytes, queue.take_batch().len()), (0, 0));
    }
}
