//! The many names of one model: gateways, clouds and vendors add makers, regions, tags and dates. Pure.

/// The id without any of these additions: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`,
/// `anthropic/claude-sonnet-4.5` and `claude-sonnet-4-5@20250929` all become `claude-sonnet-4-5`.
pub(super) fn plain(id: &str) -> String {
    let name = id.rsplit('/').next().unwrap_or(id);
    let (name, tag) = split_tag(name);
    // One digit: anything longer is a date or a size.
    let is_numbered = matches!(tag.as_bytes(), [digit] if digit.is_ascii_digit());
    let name = if is_numbered { without_revision(name) } else { name };
    let name = without_makers(without_date(name));
    name.to_ascii_lowercase().replace('.', "-")
}

/// Whether the id names a special offer of a model (`…:free`), not just a version of it (`…:0`, `…@20250929`).
pub(super) fn has_tag(id: &str) -> bool {
    split_tag(id).1.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The id without its release date, if it has one: `-20250929` or `-2025-09-29`.
pub(super) fn without_date(id: &str) -> &str {
    for digits in ["-dddddddd", "-dddd-dd-dd"] {
        let Some(start) = id.len().checked_sub(digits.len()) else { continue };
        let fits = |(byte, pattern): (&u8, u8)| match pattern {
            b'd' => byte.is_ascii_digit(),
            other => *byte == other,
        };
        // `-20…`: eight digits may also be a number of parameters.
        let is_date = id.as_bytes()[start..].iter().zip(digits.bytes()).all(fits)
            && id.as_bytes()[start..].starts_with(b"-20");
        if start > 0 && is_date {
            return &id[..start];
        }
    }
    id
}

fn split_tag(id: &str) -> (&str, &str) {
    match id.find([':', '@']) {
        Some(at) if at > 0 => (&id[..at], &id[at + 1..]),
        _ => (id, ""),
    }
}

/// `-v1` or `-1` before a numbered tag is the cloud's revision, not part of the name.
fn without_revision(name: &str) -> &str {
    let Some(at) = name.rfind('-').filter(|at| *at > 0) else { return name };
    let number = name[at + 1..].trim_start_matches('v');
    let is_revision = matches!(number.len(), 1 | 2) && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_revision { &name[..at] } else { name }
}

/// Leading words that end with a dot are regions and makers (`us.anthropic.`); a version before its dot has a
/// digit.
fn without_makers(name: &str) -> &str {
    let mut name = name;
    while let Some((word, rest)) = name.split_once('.') {
        if rest.is_empty() || word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            break;
        }
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_one_model_are_one_name() {
        for (id, name) in [
            ("claude-sonnet-4-5", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
            ("gpt-4o-2024-11-20", "gpt-4o"),
            ("z-ai/glm-5.2:free", "glm-5-2"),
            ("zai-org/GLM-5.2", "glm-5-2"),
            ("accounts/fireworks/models/kimi-k3", "kimi-k3"),
            ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
            ("deepseek-v3:671b", "deepseek-v3"),
            ("gpt-5.6-luna", "gpt-5-6-luna"),
            ("deepseek-v4", "deepseek-v4"),
            ("model-12345678", "model-12345678"),
            ("-20250929", "-20250929"),
            (":0", ":0"),
            ("", ""),
        ] {
            assert_eq!(plain(id), name, "{id}");
        }
    }

    #[test]
    fn an_offer_is_not_a_version() {
        assert!(has_tag("z-ai/glm-5.2:free"));
        assert!(!has_tag("us.anthropic.claude-v1:0") && !has_tag("claude@20250929") && !has_tag("gpt-5"));
    }

    proptest! {
        #[test]
        fn no_name_panics_or_grows(id in "\\PC{0,40}") {
            prop_assert!(plain(&id).len() <= id.len());
        }
    }
}
