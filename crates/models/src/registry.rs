//! Several providers behind one `Model` port: each request goes to the provider its model names. Adds nothing
//! of its own.

use std::sync::Arc;

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

/// The configured providers, the default one first.
#[derive(Clone, Debug, Default)]
pub struct Providers {
    /// A handful at most, so we search in order.
    providers: Vec<(String, Arc<dyn Model>)>,
}

impl Providers {
    /// No provider yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider at the end, or replaces the one of that id.
    pub fn insert(&mut self, provider_id: impl Into<String>, model: Arc<dyn Model>) {
        let provider_id = provider_id.into();
        match self.providers.iter_mut().find(|(known, _)| *known == provider_id) {
            Some((_, known)) => *known = model,
            None => self.providers.push((provider_id, model)),
        }
    }

    /// The provider of that id.
    pub fn get(&self, provider_id: &str) -> Option<&Arc<dyn Model>> {
        self.providers.iter().find(|(known, _)| known == provider_id).map(|(_, model)| model)
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.providers.is_empty()
    }

    fn unknown(&self, provider_id: &str) -> ModelError {
        let known: Vec<&str> = self.providers.iter().map(|(known, _)| known.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ModelError::Permanent(format!("no provider `{provider_id}` is configured; configured: {known}"))
    }
}

impl Model for Providers {
    fn available(&self) -> Arc<[ModelInfo]> {
        match self.providers.as_slice() {
            [(_, only)] => only.available(),
            several => several.iter().flat_map(|(_, model)| model.available().to_vec()).collect(),
        }
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.get(&model.provider_id)?.describe(model)
    }

    fn provider_problems(&self) -> Vec<String> {
        self.providers.iter().flat_map(|(_, model)| model.provider_problems()).collect()
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        self.get(&info.model.provider_id).is_some_and(|model| model.takes(info, mime))
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        self.get(&beside.provider_id)?.small(beside)
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        let looking: Vec<_> = self.providers.iter().map(|(_, model)| model.look_again()).collect();
        Box::pin(async move {
            join_all(looking).await;
        })
    }

    fn late_answers(&self) -> Option<BoxFuture<'static, ()>> {
        let late: Vec<_> = self.providers.iter().filter_map(|(_, model)| model.late_answers()).collect();
        if late.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            join_all(late).await;
        }))
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        match self.get(&request.model().provider_id) {
            Some(model) => model.stream(request, cancel),
            None => stream::iter([Err(self.unknown(&request.model().provider_id))]).boxed(),
        }
    }
}
