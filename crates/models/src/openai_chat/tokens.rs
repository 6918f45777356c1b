//! Five disjoint token counts from the vendors' counts, which overlap in different ways.

use attache_core::ports::Usage;

use super::wire::Tokens;
use crate::limits::TOKENS;

/// `None` if the server counted nothing: some send zeros until they know.
pub(super) fn usage(tokens: &Tokens) -> Option<Usage> {
    let prompt = tokens.prompt_tokens.unwrap_or_default();
    let completion = tokens.completion_tokens.unwrap_or_default();
    let details = tokens.prompt_tokens_details.as_ref();
    let cache_read = details
        .and_then(|details| details.cached_tokens)
        .or(tokens.prompt_cache_hit_tokens)
        .or(tokens.cached_tokens)
        .unwrap_or_default();
    let cache_write = details.and_then(|details| details.cache_write_tokens).unwrap_or_default();
    let (output, reasoning) = spoken(tokens, prompt, completion);
    let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
    let usage = Usage {
        input: input.min(TOKENS),
        output: output.min(TOKENS),
        reasoning: reasoning.min(TOKENS),
        cache_read: cache_read.min(TOKENS),
        cache_write: cache_write.min(TOKENS),
    };
    (usage != Usage::default()).then_some(usage)
}

/// Output and reasoning. Most vendors include reasoning in the completion. xAI counts it separately, which the
/// total shows.
fn spoken(tokens: &Tokens, prompt: u64, completion: u64) -> (u64, u64) {
    let beside = tokens.total_tokens.unwrap_or_default().saturating_sub(prompt.saturating_add(completion));
    let told = tokens.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    match told.or(tokens.reasoning_tokens) {
        // Gemini counts its thoughts only in the total.
        None => (completion, beside),
        Some(reasoning) if reasoning > completion || (reasoning > 0 && beside >= reasoning) => {
            (completion, reasoning)
        }
        Some(reasoning) => (completion - reasoning, reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(json: &str) -> [u64; 5] {
        let usage = usage(&serde_json::from_str(json).unwrap()).unwrap_or_default();
        [usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write]
    }

    #[test]
    fn the_five_counts_never_overlap_whatever_the_vendor_includes_where() {
        for (vendor, json, expected) in [
            (
                "openai",
                r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
                    "prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":30}}"#,
                [20, 20, 30, 80, 0],
            ),
            (
                "openrouter",
                r#"{"prompt_tokens":100,"completion_tokens":5,"cost":0.1,
                    "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}"#,
                [10, 5, 0, 60, 30],
            ),
            (
                "deepseek",
                r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
                [36, 5, 0, 64, 0],
            ),
            ("moonshot", r#"{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4}"#, [6, 5, 0, 4, 0]),
            (
                "xai: reasoning beside the completion",
                r#"{"prompt_tokens":10,"completion_tokens":50,"total_tokens":90,
                    "completion_tokens_details":{"reasoning_tokens":30}}"#,
                [10, 50, 30, 0, 0],
            ),
            (
                "no total, but more reasoning than completion",
                r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":30}}"#,
                [10, 5, 30, 0, 0],
            ),
            (
                "gemini: thoughts only in the total",
                r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}"#,
                [10, 5, 25, 0, 0],
            ),
            (
                "more cached than sent",
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":12}}"#,
                [0, 5, 0, 12, 0],
            ),
            (
                "floats and nonsense",
                r#"{"prompt_tokens":10.0,"completion_tokens":"5","total_tokens":-1}"#,
                [10, 0, 0, 0, 0],
            ),
            ("nothing", r#"{"prompt_tokens":0,"completion_tokens":null,"prompt_tokens_details":[]}"#, [0; 5]),
            (
                "the largest numbers there are",
                r#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615,"total_tokens":1e300}"#,
                [TOKENS, TOKENS, 0, 0, 0],
            ),
        ] {
            assert_eq!(counted(json), expected, "{vendor}");
        }
    }
}
