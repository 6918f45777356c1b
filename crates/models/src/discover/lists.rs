//! Lists of models as servers write them, read into what we know of a model. Pure.
//!
//! The OpenAI list says little more than ids, so each server adds its own fields. We look for all known ones in
//! every answer. A model that declares it cannot hold a conversation with tools is left out.

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use serde_json::Value;

use crate::answer_length::{answer_share, longest_answer};

/// One model of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) info: ModelInfo,
    /// Which software it is, where the list says so.
    pub(crate) owner: String,
    /// Loaded, so it can answer at once.
    pub(crate) loaded: bool,
}

/// How servers of a dialect list their models.
#[derive(Debug)]
pub(crate) struct ModelList {
    /// Behind the base address.
    pub(crate) path: &'static str,
    /// The items of a list; `None` if it is no list of models at all.
    pub(crate) items: fn(&Value) -> Option<&Vec<Value>>,
    /// One item as a model of this provider; `None` for one with another purpose.
    pub(crate) item: fn(&Value, &str) -> Option<Listed>,
    /// Whether people start servers of this dialect themselves: such a server knows more than its list says.
    pub(crate) own_servers: bool,
}

impl ModelList {
    /// `None` if it is no list of models at all.
    pub(super) fn read(&self, list: &Value, provider_id: &str) -> Option<Vec<Listed>> {
        let items = (self.items)(list)?.iter();
        Some(items.filter_map(|item| (self.item)(item, provider_id)).collect())
    }
}

/// Some servers leave out the object around the list.
pub(crate) fn openai_items(list: &Value) -> Option<&Vec<Value>> {
    list.get("data").unwrap_or(list).as_array()
}

pub(crate) fn openai_item(item: &Value, provider_id: &str) -> Option<Listed> {
    let id = item.get("id")?.as_str().filter(|id| !id.is_empty())?;
    if !is_conversational(id, item) {
        return None;
    }
    let mut info = ModelInfo::undescribed(ModelRef::new(provider_id, id));
    if let Some(name) = text(item, &["display_name", "name"]) {
        info.name = name.to_owned();
    }
    // The context of the loaded model counts before the one the model could have.
    let context = number(
        item,
        &[
            "/loaded_context_length",
            "/max_model_len",
            "/meta/n_ctx",
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/max_input_tokens",
            "/meta/n_ctx_train",
        ],
    );
    let output = number(
        item,
        &[
            "/top_provider/max_completion_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/max_tokens",
        ],
    );
    set_sizes(&mut info, context, output);
    info.images = takes(item, "image");
    info.audio = takes(item, "audio");
    info.pdf = takes(item, "file") || takes(item, "pdf");
    let owner = text(item, &["owned_by"]).unwrap_or_default().to_owned();
    Some(Listed { info, owner, loaded: item["state"] == "loaded" })
}

/// Sets the sizes. An answer without its own limit may take a share of the context.
pub(crate) fn set_sizes(info: &mut ModelInfo, context: Option<u64>, output: Option<u64>) {
    if let Some(context) = context {
        info.context = context;
    }
    info.max_output = match output {
        Some(output) => longest_answer(info.context, output),
        None => info.max_output.min(answer_share(info.context)),
    };
}

pub(crate) fn text<'a>(item: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| item.get(key)?.as_str()).filter(|text| !text.is_empty())
}

/// The first of these pointers that leads to a positive number.
pub(crate) fn number(item: &Value, pointers: &[&str]) -> Option<u64> {
    pointers.iter().find_map(|pointer| item.pointer(pointer)?.as_u64().filter(|number| *number > 0))
}

fn takes(item: &Value, kind: &str) -> bool {
    let named = ["/architecture/input_modalities", "/input_modalities"]
        .iter()
        .filter_map(|pointer| item.pointer(pointer)?.as_array())
        .flatten()
        .any(|modality| modality == kind);
    let capable = |name: &str| match item.pointer(&format!("/capabilities/{name}")) {
        Some(Value::Bool(is)) => *is,
        Some(other) => other["supported"] == true,
        None => false,
    };
    let listed = |name: &str| {
        item.get("capabilities")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|one| one == name))
    };
    let seen = kind == "image"
        && (capable("vision")
            || listed("vision")
            || item["supports_image_input"] == true
            || item["type"] == "vlm");
    named || seen || capable(&format!("{kind}_input"))
}

/// False only for a model that states, or whose name says, that it has another purpose.
fn is_conversational(id: &str, item: &Value) -> bool {
    const SAYS_NO: [&str; 6] = [
        "/active",
        "/supports_chat",
        "/supports_tools",
        "/capabilities/completion_chat",
        "/capabilities/function_calling",
        "/capabilities/chat_completion",
    ];
    const OTHER_KINDS: [&str; 8] =
        ["embedding", "embeddings", "rerank", "image", "audio", "video", "moderation", "transcribe"];
    let says_no = SAYS_NO.iter().any(|pointer| item.pointer(pointer) == Some(&Value::Bool(false)));
    let is_other_kind =
        item.get("type").and_then(Value::as_str).is_some_and(|kind| OTHER_KINDS.contains(&kind));
    let lacks = |pointer: &str, word: &str| {
        let words = item.pointer(pointer).and_then(Value::as_array);
        words.is_some_and(|words| !words.iter().any(|known| known == word))
    };
    !says_no
        && !is_other_kind
        && !lacks("/supported_parameters", "tools")
        && !lacks("/architecture/output_modalities", "text")
        && !has_other_purpose(id)
}

/// Vendors list everything they sell, not only chat models.
pub(crate) fn has_other_purpose(id: &str) -> bool {
    const PURPOSES: [&str; 17] = [
        "embed",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "-image",
        "transcribe",
        "realtime",
        "-audio",
        "rerank",
        "sora-",
        "babbage",
        "davinci",
        "-live",
        "computer-use",
        "deep-research",
        "veo-",
    ];
    let id = id.to_ascii_lowercase();
    PURPOSES.iter().any(|purpose| id.contains(purpose))
}
