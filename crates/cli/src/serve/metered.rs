//! A model whose calls a server counts: tokens, costs and failures.

use std::sync::Arc;

use attache_core::ports::model::{ModelAround, ModelError, ModelRequest, StepEvent};
use attache_core::ports::{BoxStream, Model};
use attache_serve::ServerMetrics;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct MeteredModel {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) metrics: ServerMetrics,
}

impl ModelAround for MeteredModel {
    fn inner(&self) -> &Arc<dyn Model> {
        &self.inner
    }

    fn stream_through(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let (session, price) = (request.session_id.clone(), request.info.price);
        let metrics = self.metrics.clone();
        let events = self.inner.stream(request, cancel);
        let count = move |event: &Result<StepEvent, ModelError>| match event {
            Ok(StepEvent::End { usage, .. }) => {
                metrics.model_called(&session, usage, price.map(|price| price.of(usage)));
            }
            Ok(StepEvent::Chunk(_)) => {}
            Err(_) => metrics.model_failed(),
        };
        events.inspect(count).boxed()
    }
}
