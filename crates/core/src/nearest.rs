//! Finds the word, or the id, that a user may have meant.

/// Enough for a swapped, missing or doubled letter; "model" is not offered for everything with an m.
const NEAR: f64 = 0.75;

/// So similar that a typing error is likelier than another word: "comapct" means "compact", while "context"
/// does not.
const SLIP: f64 = 0.9;

/// One letter of less is no slip but another word.
const SHORTEST: usize = 3;

/// The one among these that is most like the word; `None` where none is like it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    most_alike(word, known.iter().copied(), NEAR).or_else(|| one_slip_away(word, known))
}

/// Of short words one letter is so much that they are not alike: "zde" and "zed".
fn one_slip_away<'a>(word: &str, known: Vec<&'a str>) -> Option<&'a str> {
    let is_word = word.chars().count() >= SHORTEST;
    known.into_iter().find(|known| is_word && strsim::damerau_levenshtein(word, known) == 1)
}

/// The id that is nearly this one. Ids made at the same time begin alike without being related, so letters
/// count equally in every position, and the first ones no more than others.
pub fn nearest_id<'a, I: AsRef<str>>(id: &str, known: impl IntoIterator<Item = &'a I>) -> Option<&'a I> {
    fn bare(id: &str) -> &str {
        id.split_once('_').map_or(id, |(_, bare)| bare)
    }
    let likeness = |known: &I| strsim::normalized_damerau_levenshtein(bare(id), bare(known.as_ref()));
    let scored = known.into_iter().map(|candidate| (likeness(candidate), candidate));
    let near = scored.filter(|(score, _)| *score >= NEAR).max_by(|left, right| left.0.total_cmp(&right.0));
    near.map(|(_, near)| near)
}

/// Like `nearest`, but for a word that may also be valid by itself.
pub(crate) fn slip_of<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    most_alike(word, known, SLIP)
}

fn most_alike<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, least: f64) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    scored
        .filter(|(score, _)| *score >= least)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, near)| near)
}

/// Text to append to an error about an unknown word: the word that was meant, or nothing.
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_near_by_a_slip_and_not_by_its_moment() {
        let known = ["ses_1a1f09170e8000z1ORjGw8uHzt", "ses_1a1f09170e9000Qm3SVlVJJmQd"];
        let near = |id: &str| nearest_id(id, &known).copied();
        assert_eq!(near("ses_1a1f09170e8000z1ORjGw8uHzx"), Some(known[0]));
        assert_eq!(near("1a1f09170e9000Qm3SVlJVJmQd"), Some(known[1]));
        assert_eq!(near("ses_1a1f09170ea000TtYp0sBqLxWk"), None, "another one of the same moment");
        assert_eq!((near("ses_none"), near("ses_"), near("")), (None, None, None));
    }

    #[test]
    fn of_short_words_one_slip_counts() {
        let known = ["zed", "jetbrains", "vscode"];
        for (word, meant) in [("zde", Some("zed")), ("zd", None), ("zedd", Some("zed")), ("vim", None)] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
