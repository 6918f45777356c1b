//! What local servers say about themselves beside the list, above all the context they were started with.
//!
//! None of these answers is required. Without one, the server keeps what its list said.

use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::ask::ServerQuery;
use super::lists::{self, Listed, number, set_sizes};
use crate::limits::{DESCRIBED_MODELS, QUESTIONS_AT_ONCE};

/// The listed models with everything we could learn; loaded ones first.
pub(super) async fn described(asking: &ServerQuery<'_>, listed: Vec<Listed>) -> Vec<ModelInfo> {
    let owner = listed.first().map(|first| first.owner.clone()).unwrap_or_default();
    let mut listed = match owner.as_str() {
        "llamacpp" => llama_cpp(asking, listed).await,
        "organization_owner" => lm_studio(asking, listed).await,
        "vllm" => listed,
        // Ollama reports the owner of each model in this field, which can be any name.
        _ => ollama(asking, listed).await,
    };
    listed.sort_by_key(|listed| !listed.loaded);
    listed.into_iter().map(|listed| listed.info).collect()
}

/// `/props` describes the single loaded model; a server with several has no such route.
async fn llama_cpp(asking: &ServerQuery<'_>, mut listed: Vec<Listed>) -> Vec<Listed> {
    let [only] = listed.as_mut_slice() else { return listed };
    let Ok(props) = asking.get(&asking.root_url("/props")).await else { return listed };
    let context = number(&props.body, &["/default_generation_settings/n_ctx", "/n_ctx"]);
    set_sizes(&mut only.info, context, None);
    only.info.images = props.body.pointer("/modalities/vision") == Some(&Value::Bool(true));
    only.info.audio = props.body.pointer("/modalities/audio") == Some(&Value::Bool(true));
    listed
}

/// LM Studio's own list has kinds, sizes and which models are loaded.
async fn lm_studio(asking: &ServerQuery<'_>, listed: Vec<Listed>) -> Vec<Listed> {
    let Ok(own) = asking.get(&asking.root_url("/api/v0/models")).await else { return listed };
    let described = |one: &Listed| {
        let model = &one.info.model;
        let item = own.body["data"].as_array()?.iter().find(|item| item["id"] == model.model_id.as_str())?;
        // Leave out models that are not for conversations.
        Some(lists::openai_item(item, &model.provider_id))
    };
    listed.into_iter().filter_map(|one| described(&one).unwrap_or(Some(one))).collect()
}

async fn ollama(asking: &ServerQuery<'_>, listed: Vec<Listed>) -> Vec<Listed> {
    let url = asking.root_url("/api/show");
    let show = |model_id: String| {
        let (asking, url) = (*asking, url.clone());
        async move { asking.post(&url, &json!({ "model": model_id })).await.ok() }
    };
    let Some(first) = listed.first() else { return listed };
    // Only Ollama has this path. If the first question fails, do not ask the others.
    let Some(first) = show(first.info.model.model_id.clone()).await else { return listed };
    let running = asking.get(&asking.root_url("/api/ps")).await.ok();
    let running = running.as_ref().map(|running| &running.body["models"]);
    // Build all futures before awaiting the first: a lazy iterator held across the await would make the whole
    // question not `Send`.
    let others: Vec<_> = listed
        .iter()
        .skip(1)
        .take(DESCRIBED_MODELS)
        .map(|one| show(one.info.model.model_id.clone()))
        .collect();
    let mut shown = vec![Some(first)];
    shown.extend(stream::iter(others).buffered(QUESTIONS_AT_ONCE).collect::<Vec<_>>().await);
    shown.resize_with(listed.len(), || None);
    let described = |(mut one, shown): (Listed, Option<super::ask::JsonAnswer>)| {
        let Some(shown) = shown else { return Some(one) };
        let is_running = |model: &&Value| model["model"] == one.info.model.model_id.as_str();
        let running = running.and_then(Value::as_array).and_then(|all| all.iter().find(is_running));
        one.loaded = running.is_some();
        describe_ollama(one, &shown.body, running)
    };
    listed.into_iter().zip(shown).filter_map(described).collect()
}

/// `None` for a model that can't hold a conversation or call tools.
fn describe_ollama(mut one: Listed, shown: &Value, running: Option<&Value>) -> Option<Listed> {
    let capabilities = shown["capabilities"].as_array();
    let can = |name: &str| capabilities.is_some_and(|all| all.iter().any(|one| one == name));
    if capabilities.is_some() && !(can("completion") && can("tools")) {
        return None;
    }
    let trained = shown["model_info"].as_object().and_then(|info| {
        let (_, length) = info.iter().find(|(key, _)| key.ends_with(".context_length"))?;
        length.as_u64()
    });
    let chosen = num_ctx(shown["parameters"].as_str().unwrap_or_default());
    let loaded = running.and_then(|running| number(running, &["/context_length"]));
    set_sizes(&mut one.info, loaded.or(chosen).or(trained), None);
    one.info.images = can("vision");
    one.info.audio = can("audio");
    if can("thinking") {
        one.info.thought_levels = thought_levels(shown);
    }
    Some(one)
}

/// Newer servers report the levels. Before that only one family had any, and it could not stop thinking.
fn thought_levels(shown: &Value) -> Vec<ThoughtLevel> {
    let Some(values) = shown.pointer("/thinking/values").and_then(Value::as_array) else {
        return match shown.pointer("/details/family").and_then(Value::as_str) {
            Some("gptoss" | "gpt-oss") => vec![ThoughtLevel::Low, ThoughtLevel::Medium, ThoughtLevel::High],
            _ => vec![ThoughtLevel::Off],
        };
    };
    let has = |level: &ThoughtLevel| match level {
        ThoughtLevel::Off => values.iter().any(|value| *value == false),
        named @ (ThoughtLevel::Low | ThoughtLevel::Medium | ThoughtLevel::High | ThoughtLevel::Max) => {
            values.iter().any(|value| value == named.as_str())
        }
    };
    ThoughtLevel::ALL.into_iter().filter(has).collect()
}

/// The parameters are lines of a name and a value.
fn num_ctx(parameters: &str) -> Option<u64> {
    let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
    line.trim().parse().ok().filter(|number| *number > 0)
}
