//! What the model was sent: the bodies a server of chat completions would get, told message by message.

use std::sync::{Arc, Mutex};

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxFuture, BoxStream, Model, ModelError, ModelRequest, StepEvent};
use attache_models::{Compatibility, Dialect};
use futures_util::StreamExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::grammar::quoted;
use crate::names::Names;
use crate::show::abridged;

/// The messages of every request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    requests: Arc<Mutex<Vec<Vec<Value>>>>,
    told: Vec<Value>,
}

impl Sent {
    /// A model that remembers here what it is asked.
    pub(crate) fn listening(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(Listening { model, requests: self.requests.clone() })
    }

    /// What the last request says beyond what was told before.
    pub(crate) fn items(&self, names: &mut Names) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let Some(last) = requests.last() else { return Vec::new() };
        let same = last.iter().zip(&self.told).take_while(|(now, told)| now == told).count();
        last[same..].iter().flat_map(|message| items(message, names)).collect()
    }

    pub(crate) fn tell(&mut self) {
        self.told = self.requests.lock().unwrap().last().cloned().unwrap_or_default();
    }
}

fn items(message: &Value, names: &mut Names) -> Vec<String> {
    let mut text = |text: &str| quoted(&abridged(&names.shorten(text)));
    let role = message["role"].as_str().unwrap_or_default();
    let mut items = Vec::new();
    match &message["content"] {
        // Told whole where it is held to its words: `crates/cli/tests/requests`.
        _ if role == "system" => {}
        Value::String(content) => items.push(format!("{role} {}", text(content))),
        Value::Array(parts) => items.extend(parts.iter().map(|part| match part["text"].as_str() {
            Some(content) => format!("{role} {}", text(content)),
            None => format!("{role} {}", text(&part.to_string())),
        })),
        _ => {}
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let (name, arguments) = (&function["name"], function["arguments"].as_str().unwrap_or_default());
        items.push(format!("call {} {}", name.as_str().unwrap_or_default(), names.shorten(arguments)));
    }
    items
}

#[derive(Debug)]
struct Listening {
    model: Arc<dyn Model>,
    requests: Arc<Mutex<Vec<Vec<Value>>>>,
}

impl Model for Listening {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.model.available()
    }

    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        self.model.describe(model)
    }

    fn takes(&self, info: &ModelInfo, mime: &str) -> bool {
        self.model.takes(info, mime)
    }

    fn small(&self, beside: &ModelRef) -> Option<ModelRef> {
        self.model.small(beside)
    }

    fn look_again(&self) -> BoxFuture<'static, ()> {
        self.model.look_again()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let (model, requests) = (self.model.clone(), self.requests.clone());
        let asked = async move {
            let compatibility = Compatibility::default();
            let body = Dialect::OpenAiChat.body_of(&request, &compatibility).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            requests.lock().unwrap().push(body["messages"].as_array().cloned().unwrap_or_default());
            model.stream(request, cancel)
        };
        futures_util::stream::once(asked).flatten().boxed()
    }
}
