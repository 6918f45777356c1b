//! The list of models as Gemini's API writes it. Pure.

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use serde_json::Value;

use crate::discover::lists::{Listed, has_other_purpose, number, set_sizes, text};

pub(super) fn items(list: &Value) -> Option<&Vec<Value>> {
    list.get("models")?.as_array()
}

/// One item; `None` for a model with another purpose.
pub(super) fn item(item: &Value, provider_id: &str) -> Option<Listed> {
    let id = item.get("name")?.as_str()?.trim_start_matches("models/");
    let methods = item.get("supportedGenerationMethods").and_then(Value::as_array);
    let answers = methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"));
    if id.is_empty() || !answers || has_other_purpose(id) {
        return None;
    }
    let mut info = ModelInfo::undescribed(ModelRef::new(provider_id, id));
    if let Some(name) = text(item, &["displayName"]) {
        info.name = name.to_owned();
    }
    set_sizes(&mut info, number(item, &["/inputTokenLimit"]), number(item, &["/outputTokenLimit"]));
    // The list does not say it, but every model of this family takes all of them.
    let takes_all = id.starts_with("gemini-");
    (info.images, info.audio, info.pdf) = (takes_all, takes_all, takes_all);
    Some(Listed { info, owner: String::new(), loaded: false })
}
