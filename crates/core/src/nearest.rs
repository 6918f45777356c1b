//! The word that somebody may have meant.

/// Enough for a swapped, missing or doubled letter; "model" is not offered for everything with an m.
const NEAR: f64 = 0.75;

/// The one among these that is most like the word; `None` where none is like it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    scored
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, near)| near)
}

/// Behind an unknown word: which one was meant, or nothing.
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}
