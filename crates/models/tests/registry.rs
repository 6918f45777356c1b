//! Several providers behind one port.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use attache_core::chunk::Chunk;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{Model, ModelError, ModelRequest, StepEvent};
use attache_models::{Providers, ScriptModel};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

fn request(provider_id: &str) -> ModelRequest {
    attache_testkit::fakes::request(ModelRef::new(provider_id, "default"), Vec::new())
}

fn scripted(provider_id: &str, text: &str) -> Arc<dyn Model> {
    Arc::new(ScriptModel::parse(provider_id, &format!("on *\ntext \"{text}\"")).unwrap())
}

async fn said(providers: &Providers, provider_id: &str) -> String {
    let events: Vec<_> = providers.stream(request(provider_id), CancellationToken::new()).collect().await;
    let deltas = events.into_iter().filter_map(|event| match event.unwrap() {
        StepEvent::Chunk(Chunk::TextDelta { delta, .. }) => Some(delta),
        StepEvent::Chunk(_) | StepEvent::End { .. } => None,
    });
    deltas.collect()
}

#[tokio::test]
async fn a_request_goes_to_the_provider_its_model_names() {
    let mut providers = Providers::new();
    providers.insert("one", scripted("one", "first"));
    providers.insert("two", scripted("two", "old"));
    providers.insert("two", scripted("two", "second"));
    assert_eq!(said(&providers, "one").await, "first");
    assert_eq!(said(&providers, "two").await, "second");
    let available: Vec<String> =
        providers.available().iter().map(|info| info.model.provider_id.clone()).collect();
    assert_eq!(available, ["one", "two"]);
}

#[tokio::test]
async fn an_unknown_provider_is_an_error_that_names_the_known_ones() {
    let error = async |providers: &Providers| {
        let events: Vec<_> = providers.stream(request("tow"), CancellationToken::new()).collect().await;
        events
    };
    let mut providers = Providers::new();
    let none = "no provider `tow` is configured; configured: none";
    assert_eq!(error(&providers).await, [Err(ModelError::Permanent(none.into()))]);
    providers.insert("one", scripted("one", ""));
    providers.insert("two", scripted("two", ""));
    let two = "no provider `tow` is configured; configured: one, two";
    assert_eq!(error(&providers).await, [Err(ModelError::Permanent(two.into()))]);
}
