//! A model whose calls a server counts: tokens, costs and failures.

use std::sync::Arc;

use attache_core::ports::model::{ModelError, ModelInfo, ModelRequest, StepEvent};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model};
use attache_serve::ServerMetrics;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct MeteredModel {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) metrics: ServerMetrics,
}

impl Model for MeteredModel {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.inner.available()
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.inner.describe(model)
    }

    fn why_not(&self, model: &ModelRef) -> Option<String> {
        self.inner.why_not(model)
    }

    fn provider_problems(&self) -> Vec<String> {
        self.inner.provider_problems()
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        self.inner.takes(info, mime)
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        self.inner.small(beside)
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        self.inner.look_again()
    }

    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        self.inner.late_answers()
    }

    fn stream(
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
