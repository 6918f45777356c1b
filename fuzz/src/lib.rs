//! What holds of every decoder of a model's answer for any bytes that a server sends.

use std::sync::Arc;

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, Rest};
use attache_core::ids::SessionId;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::{BlobOwner, Blobs, ModelRef, StoreResult};
use attache_core::ports::{BoxFuture, ModelError, ModelRequest, StepEvent};
use attache_models::{Dialect, SseParser};

/// No panic, chunks in an order the loop takes, nothing after the end, and the same however the bytes were cut.
pub fn check_decoder(dialect: Dialect, body: &[u8]) {
    let whole = heard(dialect, body, body.len().max(1));
    check_order(&whole.0);
    for step in [1, 7] {
        assert_eq!(heard(dialect, body, step), whole, "in steps of {step}");
    }
}

fn heard(dialect: Dialect, body: &[u8], step: usize) -> (Vec<StepEvent>, Option<ModelError>) {
    let mut decoder = dialect.decoder(&request());
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for piece in body.chunks(step) {
        parser.feed(piece).expect("inputs are smaller than the cap");
        while let Some(event) = parser.next() {
            if let Err(error) = decoder.event(&event, &mut events) {
                return (events, Some(error));
            }
            if matches!(events.last(), Some(StepEvent::End { .. })) {
                return (events, None);
            }
        }
    }
    decoder.body_ended(&mut events);
    (events, None)
}

fn check_order(events: &[StepEvent]) {
    let mut order = OrderChecker::default();
    let start = Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() };
    for chunk in [start, Chunk::StartStep { rest: Rest::none() }] {
        order.check(&chunk).expect("a run begins so");
    }
    for (index, event) in events.iter().enumerate() {
        match event {
            StepEvent::Chunk(chunk) => {
                assert!(!chunk.is_terminal(), "{chunk:?} is the loop's own");
                order.check(chunk).unwrap_or_else(|error| panic!("{error}: {chunk:?}"));
            }
            StepEvent::End { .. } => assert_eq!(index + 1, events.len(), "something after the end"),
        }
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        session_id: SessionId::new("ses_1"),
        info: Arc::new(ModelInfo::undescribed(ModelRef::new("acme", "model-1"))),
        thought: None,
        system: "".into(),
        passages: Default::default(),
        runtime_context: [].into(),
        tools: [].into(),
        blobs: Arc::new(NoBlobs),
        parent_span: None,
    }
}

/// Decoders read no attachments.
#[derive(Debug)]
struct NoBlobs;

impl Blobs for NoBlobs {
    fn put(&self, _: &SessionId, _: Vec<u8>) -> BoxFuture<'static, StoreResult<String>> {
        unreachable!("a decoder stores nothing")
    }
    fn get(&self, _: &str) -> BoxFuture<'static, StoreResult<Option<Vec<u8>>>> {
        unreachable!("a decoder reads nothing")
    }
    fn share(&self, _from: &SessionId, _with: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn bytes_of(&self, _session: &SessionId) -> BoxFuture<'static, StoreResult<u64>> {
        Box::pin(async { Ok(0) })
    }

    fn owners(&self) -> BoxFuture<'static, StoreResult<Vec<BlobOwner>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete_session(&self, _: &SessionId) -> BoxFuture<'static, StoreResult<()>> {
        unreachable!("a decoder deletes nothing")
    }
}
