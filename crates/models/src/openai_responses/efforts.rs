//! How much we can tell a model to think, as data: each family takes certain words and refuses the others.

use attache_core::ports::model::ThoughtLevel;

/// Every word, from least to most.
const LADDER: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The first letters of a family's models, and the least and the most effort they take. The first entry that
/// fits counts.
const FAMILIES: [(&str, &str, &str); 22] = [
    ("gpt-5-pro", "high", "high"),
    ("gpt-5-codex", "low", "high"),
    ("gpt-5.1-codex-max", "low", "xhigh"),
    ("gpt-5.1-codex-mini", "medium", "high"),
    ("gpt-5.1-codex", "low", "high"),
    ("gpt-5.1-chat", "medium", "medium"),
    ("gpt-5.1", "none", "high"),
    ("gpt-5.2-codex", "low", "xhigh"),
    ("gpt-5.2-chat", "medium", "medium"),
    ("gpt-5.2-pro", "medium", "xhigh"),
    ("gpt-5.2", "none", "xhigh"),
    ("gpt-5.3", "low", "xhigh"),
    ("gpt-5.4-pro", "medium", "xhigh"),
    ("gpt-5.4", "none", "xhigh"),
    ("gpt-5.5-pro", "medium", "xhigh"),
    ("gpt-5.5", "none", "xhigh"),
    ("gpt-5.", "none", "max"),
    ("gpt-5", "minimal", "high"),
    ("gpt-6-astra", "low", "max"),
    ("gpt-oss", "low", "high"),
    ("gpt-", "none", "xhigh"),
    // What every server takes that takes an effort at all. The o series falls under it.
    ("", "low", "high"),
];

/// The word for a level, within what the model's family takes. Ignores a prefix of the model's name
/// (`openai/`).
pub(super) fn effort(model_id: &str, level: ThoughtLevel) -> &'static str {
    let name = model_id.rsplit('/').next().unwrap_or(model_id).to_ascii_lowercase();
    let family = FAMILIES.iter().find(|(begins, ..)| name.starts_with(begins));
    let (_, least, most) = family.copied().unwrap_or(("", "low", "high"));
    let place = |word: &str| LADDER.iter().position(|other| *other == word).unwrap_or(0);
    let wanted = match level {
        ThoughtLevel::Off => "none",
        ThoughtLevel::Low => "low",
        ThoughtLevel::Medium => "medium",
        ThoughtLevel::High => "high",
        ThoughtLevel::Max => "max",
    };
    LADDER[place(wanted).clamp(place(least), place(most))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_gets_words_it_takes() {
        for (model, words) in [
            ("gpt-5", ["minimal", "low", "medium", "high", "high"]),
            ("openai/gpt-5-mini", ["minimal", "low", "medium", "high", "high"]),
            ("GPT-5.1", ["none", "low", "medium", "high", "high"]),
            ("gpt-5.1-codex-max", ["low", "low", "medium", "high", "xhigh"]),
            ("gpt-5.4-pro", ["medium", "medium", "medium", "high", "xhigh"]),
            ("gpt-5.5", ["none", "low", "medium", "high", "xhigh"]),
            ("gpt-5.6-sol", ["none", "low", "medium", "high", "max"]),
            ("gpt-6-astra", ["low", "low", "medium", "high", "max"]),
            ("o4-mini", ["low", "low", "medium", "high", "high"]),
            ("a-deployment", ["low", "low", "medium", "high", "high"]),
        ] {
            assert_eq!(ThoughtLevel::ALL.map(|level| effort(model, level)), words, "{model}");
        }
    }

    #[test]
    fn the_table_knows_only_words_of_the_ladder_and_ends_with_everything() {
        for (begins, least, most) in FAMILIES {
            let place = |word: &str| LADDER.iter().position(|other| *other == word);
            assert!(place(least).is_some() && place(least) <= place(most), "{begins}");
        }
        assert_eq!(FAMILIES.last().map(|(begins, ..)| *begins), Some(""));
        for (index, (begins, ..)) in FAMILIES.iter().enumerate() {
            let hidden = FAMILIES[..index].iter().find(|(before, ..)| begins.starts_with(before));
            assert_eq!(hidden, None, "{begins} is never reached");
        }
    }
}
