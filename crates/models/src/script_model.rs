//! The scripted model: the `Model` port over a script. Answers depend on the request alone, except that
//! `times=` counts attempts in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use attache_core::estimate::context_bytes;
use attache_core::ids::SessionId;
use attache_core::limits::BYTES_PER_TOKEN;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Model, ModelError, ModelRequest, StepEvent};
use tokio_util::sync::CancellationToken;

use crate::limits::{REMEMBERED_ATTEMPTS, SCRIPT_CONTEXT, SCRIPT_MAX_OUTPUT};
use crate::script::play::Playback;
use crate::script::{Directive, Script, ScriptError, ScriptStep};

/// A provider whose models answer from a script.
#[derive(Debug)]
pub struct ScriptModel {
    provider_id: String,
    script: Script,
    models: Arc<[ModelInfo]>,
    /// A lock, because sessions stream in parallel. Only steps with `times=` touch it.
    attempts: Mutex<HashMap<SessionId, Attempts>>,
}

/// How many attempts a session made at one step. We keep only the latest step: a session tries one at a time.
#[derive(Debug)]
struct Attempts {
    /// Passages of the request and steps of the turn.
    place: (usize, usize),
    count: u64,
}

impl ScriptModel {
    /// The model every script has.
    pub const DEFAULT_MODEL: &str = "default";

    /// Reads a script; the error names its line.
    pub fn parse(provider_id: &str, text: &str) -> Result<Self, ScriptError> {
        Ok(Self::new(provider_id, Script::parse(text)?))
    }

    /// A provider of this name.
    pub fn new(provider_id: &str, script: Script) -> Self {
        let default = ModelInfo {
            name: "Scripted model".to_owned(),
            ..undeclared_model(provider_id, Self::DEFAULT_MODEL)
        };
        let declared = script.models.iter().map(|model| ModelInfo {
            context: model.context,
            max_output: model.max_output,
            images: model.images,
            audio: model.audio,
            pdf: model.pdf,
            price: model.price,
            thought_levels: model.thought_levels.clone(),
            ..undeclared_model(provider_id, &model.name)
        });
        let models = std::iter::once(default).chain(declared).collect();
        let provider_id = provider_id.to_owned();
        Self { provider_id, script, models, attempts: Mutex::default() }
    }

    /// What we know of a model of this provider; an undeclared one gets the default sizes.
    pub fn info(&self, model_id: &str) -> ModelInfo {
        let declared = self.models.iter().find(|known| known.model.model_id == model_id);
        declared.cloned().unwrap_or_else(|| undeclared_model(&self.provider_id, model_id))
    }

    /// Adds a model from elsewhere (the configuration): replaces the one of that name, or comes last.
    #[must_use]
    pub fn with_model(mut self, info: ModelInfo) -> Self {
        let mut models = self.models.to_vec();
        match models.iter_mut().find(|known| known.model.model_id == info.model.model_id) {
            Some(known) => *known = info,
            None => models.push(info),
        }
        self.models = models.into();
        self
    }

    /// Which attempt at this step begins now, from 1.
    fn attempt(&self, request: &ModelRequest, steps_done: usize) -> u64 {
        let place = (request.passages.len(), steps_done);
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= REMEMBERED_ATTEMPTS && !attempts.contains_key(&request.session_id) {
            attempts.clear();
        }
        let known = attempts.entry(request.session_id.clone()).or_insert(Attempts { place, count: 0 });
        if known.place != place {
            *known = Attempts { place, count: 0 };
        }
        known.count += 1;
        known.count
    }
}

impl Model for ScriptModel {
    fn available(&self) -> Arc<[ModelInfo]> {
        self.models.clone()
    }

    /// Accepts any name: the script answers for all of them.
    fn describe(&self, model: &ModelRef) -> Option<ModelInfo> {
        (model.provider_id == self.provider_id).then(|| self.info(&model.model_id))
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let position = self.script.position(&request.passages);
        let step = position.step;
        let attempt = if counts_attempts(&step) { self.attempt(&request, position.steps_done) } else { 1 };
        let input_bytes = if step.usage.is_some() { 0 } else { request_bytes(&request) };
        Box::pin(Playback::new(step, attempt, request.passages.len(), input_bytes, cancel))
    }
}

fn undeclared_model(provider_id: &str, model_id: &str) -> ModelInfo {
    let model = ModelRef::new(provider_id, model_id);
    ModelInfo { context: SCRIPT_CONTEXT, max_output: SCRIPT_MAX_OUTPUT, ..ModelInfo::undescribed(model) }
}

fn counts_attempts(step: &ScriptStep) -> bool {
    step.directives
        .iter()
        .any(|directive| matches!(directive, Directive::Error(error) if error.times.is_some()))
}

/// Roughly the size of what a model would read. A scripted model has no tokenizer, but the number must grow
/// with the conversation and be the same every time.
fn request_bytes(request: &ModelRequest) -> u64 {
    let spoken = request.passages.size().tokens() * BYTES_PER_TOKEN;
    request.system.len() as u64 + context_bytes(&request.runtime_context) + spoken
}
