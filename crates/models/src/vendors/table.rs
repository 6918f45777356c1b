//! The table itself, in the order in which we look for a default: the first vendor with a key wins.
//!
//! A flat catalogue: longer than other files, and meant to be read like a list.

use super::{
    AnswerLimit, AuthHeader, CallIds, Compatibility, Effort, KeyNeed, PictureUrls, ReasoningBack, Shelf,
    StreamUsage, TextParts, TopEffort, Turns, Vendor,
};
use crate::dialect::Dialect;

/// What every server of its dialect takes.
const PLAIN: Compatibility = Compatibility {
    answer_limit: AnswerLimit::MaxTokens,
    effort: Effort::Unknown,
    prompt_cache_key: false,
    stream_usage: StreamUsage::Asked,
    reasoning_back: ReasoningBack::Nothing,
    call_ids: CallIds::Visible,
    texts: TextParts::Parts,
    picture_urls: PictureUrls::Fetched,
    turns: Turns::Free,
    cache_marks: false,
    top_effort: TopEffort::ExtraHigh,
};

/// Local servers put requests into the templates of their models, which are strict.
const OWN: Compatibility = Compatibility { turns: Turns::Alternate, ..PLAIN };

/// We ask local servers what they have.
const ASKED: Shelf = Shelf { models_dev: None, families: &[], preferred: &[] };

/// Every vendor that needs no configuration.
pub static VENDORS: &[Vendor] = &[
    Vendor {
        id: "anthropic",
        name: "Anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        key: KeyNeed::Required,
        key_variables: &["ANTHROPIC_API_KEY"],
        key_page: "https://platform.claude.com/settings/keys",
        small_model: Some("claude-haiku-4-5"),
        auth: AuthHeader::XApiKey,
        compatibility: Compatibility { top_effort: TopEffort::Max, ..PLAIN },
        shelf: Shelf {
            models_dev: Some("anthropic"),
            families: &[],
            preferred: &["claude-sonnet-5", "claude-opus-5"],
        },
    },
    Vendor {
        id: "openai",
        name: "OpenAI",
        dialect: Dialect::OpenAiResponses,
        base_url: "https://api.openai.com/v1",
        key: KeyNeed::Required,
        key_variables: &["OPENAI_API_KEY"],
        key_page: "https://platform.openai.com/api-keys",
        small_model: Some("gpt-5.6-luna"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxCompletionTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: true,
            stream_usage: StreamUsage::Asked,
            ..PLAIN
        },
        shelf: Shelf { models_dev: Some("openai"), families: &[], preferred: &["gpt-5.6"] },
    },
    Vendor {
        id: "gemini",
        name: "Google Gemini",
        dialect: Dialect::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        key: KeyNeed::Required,
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        key_page: "https://aistudio.google.com/apikey",
        small_model: Some("gemini-3.5-flash-lite"),
        auth: AuthHeader::Goog,
        compatibility: PLAIN,
        shelf: Shelf {
            models_dev: Some("google"),
            families: &[],
            preferred: &["gemini-3.8-flash", "gemini-3.1-pro-preview"],
        },
    },
    Vendor {
        id: "openrouter",
        name: "OpenRouter",
        dialect: Dialect::OpenAiChat,
        base_url: "https://openrouter.ai/api/v1",
        key: KeyNeed::Required,
        key_variables: &["OPENROUTER_API_KEY"],
        key_page: "https://openrouter.ai/settings/keys",
        small_model: Some("openai/gpt-5.6-luna"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxTokens,
            effort: Effort::ReasoningObject,
            prompt_cache_key: true,
            stream_usage: StreamUsage::Asked,
            reasoning_back: ReasoningBack::ReasoningDetails,
            cache_marks: true,
            ..PLAIN
        },
        shelf: Shelf {
            models_dev: Some("openrouter"),
            families: &[
                "anthropic/",
                "deepseek/",
                "google/gemini",
                "meta/",
                "meta-llama/",
                "minimax/",
                "mistralai/",
                "moonshotai/",
                "openai/",
                "qwen/",
                "x-ai/",
                "z-ai/",
            ],
            preferred: &["anthropic/claude-sonnet-5", "openai/gpt-5.6-sol", "google/gemini-3.8-flash"],
        },
    },
    Vendor {
        id: "azure",
        name: "Azure OpenAI",
        dialect: Dialect::OpenAiResponses,
        // `https://RESOURCE.openai.azure.com/openai/v1`: the user chose the resource's name.
        base_url: "",
        key: KeyNeed::Required,
        key_variables: &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
        key_page: "https://portal.azure.com",
        // Model names are deployments there, which only their owner knows.
        small_model: None,
        auth: AuthHeader::ApiKey,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxCompletionTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: true,
            stream_usage: StreamUsage::Asked,
            ..PLAIN
        },
        // Claude and others are there too, behind addresses and dialects of their own.
        shelf: Shelf { models_dev: Some("azure"), families: &["gpt-", "o3", "o4"], preferred: &["gpt-5.5"] },
    },
    Vendor {
        id: "deepseek",
        name: "DeepSeek",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.deepseek.com",
        key: KeyNeed::Required,
        key_variables: &["DEEPSEEK_API_KEY"],
        key_page: "https://platform.deepseek.com/api_keys",
        small_model: Some("deepseek-v4-flash"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxTokens,
            effort: Effort::ThinkingSwitch,
            prompt_cache_key: false,
            stream_usage: StreamUsage::Asked,
            // It refuses a call in thinking mode without its reasoning, and texts in parts.
            reasoning_back: ReasoningBack::ReasoningContentAlways,
            texts: TextParts::Joined,
            turns: Turns::Alternate,
            top_effort: TopEffort::Max,
            ..PLAIN
        },
        shelf: Shelf { models_dev: Some("deepseek"), families: &[], preferred: &["deepseek-v4-pro"] },
    },
    Vendor {
        id: "xai",
        name: "xAI",
        // Its chat completions are deprecated and lose the reasoning between steps.
        dialect: Dialect::OpenAiResponses,
        base_url: "https://api.x.ai/v1",
        key: KeyNeed::Required,
        key_variables: &["XAI_API_KEY"],
        key_page: "https://console.x.ai",
        small_model: Some("grok-4.20-0309-non-reasoning"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxCompletionTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: true,
            stream_usage: StreamUsage::Asked,
            ..PLAIN
        },
        shelf: Shelf { models_dev: Some("xai"), families: &[], preferred: &["grok-4.6"] },
    },
    Vendor {
        id: "groq",
        name: "Groq",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.groq.com/openai/v1",
        key: KeyNeed::Required,
        key_variables: &["GROQ_API_KEY"],
        key_page: "https://console.groq.com/keys",
        small_model: Some("openai/gpt-oss-20b"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxCompletionTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: false,
            stream_usage: StreamUsage::Asked,
            ..PLAIN
        },
        // The others there are previews that come and go.
        shelf: Shelf { models_dev: Some("groq"), families: &[], preferred: &["openai/gpt-oss-120b"] },
    },
    Vendor {
        id: "mistral",
        name: "Mistral",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.mistral.ai/v1",
        key: KeyNeed::Required,
        key_variables: &["MISTRAL_API_KEY"],
        key_page: "https://console.mistral.ai/api-keys",
        small_model: Some("mistral-small-latest"),
        auth: AuthHeader::Bearer,
        // It answers 422 to every field it does not know, `max_completion_tokens` and `include_usage` among
        // them.
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: true,
            stream_usage: StreamUsage::Unasked,
            reasoning_back: ReasoningBack::ThinkingParts,
            call_ids: CallIds::NineLetters,
            turns: Turns::Alternate,
            top_effort: TopEffort::Max,
            ..PLAIN
        },
        shelf: Shelf { models_dev: Some("mistral"), families: &[], preferred: &["mistral-medium-latest"] },
    },
    Vendor {
        id: "together",
        name: "Together AI",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.together.xyz/v1",
        key: KeyNeed::Required,
        key_variables: &["TOGETHER_API_KEY"],
        key_page: "https://api.together.ai/settings/api-keys",
        small_model: Some("openai/gpt-oss-20b"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxTokens,
            effort: Effort::ReasoningSwitch,
            prompt_cache_key: false,
            stream_usage: StreamUsage::Asked,
            top_effort: TopEffort::Max,
            ..PLAIN
        },
        shelf: Shelf { models_dev: Some("togetherai"), families: &[], preferred: &["zai-org/GLM-5.3"] },
    },
    Vendor {
        id: "fireworks",
        name: "Fireworks AI",
        dialect: Dialect::OpenAiChat,
        base_url: "https://api.fireworks.ai/inference/v1",
        key: KeyNeed::Required,
        key_variables: &["FIREWORKS_API_KEY"],
        key_page: "https://app.fireworks.ai/settings/users/api-keys",
        small_model: Some("accounts/fireworks/models/gpt-oss-120b"),
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            answer_limit: AnswerLimit::MaxTokens,
            effort: Effort::ReasoningEffort,
            prompt_cache_key: false,
            stream_usage: StreamUsage::Asked,
            top_effort: TopEffort::Max,
            ..PLAIN
        },
        shelf: Shelf {
            models_dev: Some("fireworks-ai"),
            families: &[],
            preferred: &["accounts/fireworks/models/glm-5p3"],
        },
    },
    Vendor {
        id: "ollama",
        name: "Ollama",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:11434/v1",
        key: KeyNeed::Optional,
        key_variables: &["OLLAMA_API_KEY"],
        key_page: "https://ollama.com/download",
        small_model: None,
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            effort: Effort::ReasoningEffort,
            reasoning_back: ReasoningBack::Reasoning,
            picture_urls: PictureUrls::Refused,
            ..OWN
        },
        shelf: ASKED,
    },
    Vendor {
        // Not `llama.cpp`: a table's name would need quotes around the dot, and a variable's name must not have
        // one.
        id: "llamacpp",
        name: "llama.cpp",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:8080/v1",
        key: KeyNeed::Optional,
        key_variables: &["LLAMACPP_API_KEY"],
        key_page: "https://github.com/ggml-org/llama.cpp",
        small_model: None,
        auth: AuthHeader::Bearer,
        compatibility: Compatibility { reasoning_back: ReasoningBack::ReasoningContent, ..OWN },
        shelf: ASKED,
    },
    Vendor {
        id: "vllm",
        name: "vLLM",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:8000/v1",
        key: KeyNeed::Optional,
        key_variables: &["VLLM_API_KEY"],
        key_page: "https://docs.vllm.ai",
        small_model: None,
        auth: AuthHeader::Bearer,
        compatibility: Compatibility {
            effort: Effort::ReasoningEffort,
            reasoning_back: ReasoningBack::Reasoning,
            ..OWN
        },
        shelf: ASKED,
    },
    Vendor {
        id: "lmstudio",
        name: "LM Studio",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:1234/v1",
        key: KeyNeed::Optional,
        key_variables: &["LMSTUDIO_API_KEY"],
        key_page: "https://lmstudio.ai",
        small_model: None,
        auth: AuthHeader::Bearer,
        compatibility: OWN,
        shelf: ASKED,
    },
];
