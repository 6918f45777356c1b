//! Keeps the spans it is told of, in the order of their ends.

use std::sync::{Arc, Mutex};

use attache_core::ports::Telemetry;
use attache_core::ports::telemetry::{ContentPolicy, FinishedSpan};

#[derive(Debug)]
pub struct RecordedSpans {
    content: ContentPolicy,
    spans: Mutex<Vec<FinishedSpan>>,
}

impl RecordedSpans {
    pub fn new(content: ContentPolicy) -> Arc<Self> {
        Arc::new(Self { content, spans: Mutex::default() })
    }

    pub fn all(&self) -> Vec<FinishedSpan> {
        self.spans.lock().unwrap().clone()
    }

    /// Those of one name.
    pub fn named(&self, name: &str) -> Vec<FinishedSpan> {
        self.all().into_iter().filter(|span| span.name == name).collect()
    }
}

impl Telemetry for RecordedSpans {
    fn take(&self, span: FinishedSpan) {
        self.spans.lock().unwrap().push(span);
    }

    fn content(&self) -> ContentPolicy {
        self.content
    }
}
