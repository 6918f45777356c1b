//! Which model of a local server a name means, if the server's list does not have that name. Pure.

use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;

/// What the server said of the model that answers to this name. Local servers take names that they do not list,
/// and many with a single model take any name. `None` if we cannot tell.
pub fn served_as(model: &ModelRef, served: &[ModelInfo]) -> Option<ModelInfo> {
    let wanted = plain(&model.model_id);
    let same = served.iter().find(|info| info.model.model_id == model.model_id);
    let alike = || served.iter().find(|info| plain(&info.model.model_id) == wanted);
    let only = || served.first().filter(|_| served.len() == 1);
    let found = same.or_else(alike).or_else(only)?;
    Some(ModelInfo { model: model.without_variant(), name: model.model_id.clone(), ..found.clone() })
}

/// Ollama leaves `:latest` out, llama.cpp lists the path of a file, LM Studio and vLLM the publisher.
fn plain(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase();
    let name = name.strip_suffix(":latest").unwrap_or(&name);
    name.strip_suffix(".gguf").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(names: &[&str]) -> Vec<ModelInfo> {
        let info = |(index, name): (usize, &&str)| {
            let info = ModelInfo::undescribed(ModelRef::new("own", *name));
            ModelInfo { context: 1_000 + index as u64, ..info }
        };
        names.iter().enumerate().map(info).collect()
    }

    fn context(name: &str, names: &[&str]) -> Option<u64> {
        let found = served_as(&ModelRef::new("own", name), &served(names))?;
        assert_eq!(found.model.model_id, name, "it is asked by the name that was configured");
        Some(found.context)
    }

    #[test]
    fn a_name_means_the_model_that_the_server_would_take_it_for() {
        let ollama = ["qwen3:8b", "llama3.2:latest"];
        assert_eq!(context("llama3.2", &ollama), Some(1_001));
        assert_eq!(context("qwen3:8b", &ollama), Some(1_000));
        assert_eq!(context("mistral", &ollama), None, "either could be meant, so neither is");
        assert_eq!(context("Qwen3-8B", &["/models/other.gguf", "/models/Qwen3-8B.gguf"]), Some(1_001));
        assert_eq!(context("gpt-oss-20b", &["openai/gpt-oss-20b", "b"]), Some(1_000));
    }

    #[test]
    fn a_server_of_one_model_answers_to_any_name() {
        assert_eq!(context("my-model", &["/models/qwen.gguf"]), Some(1_000));
        assert_eq!(context("my-model", &[]), None);
    }
}
