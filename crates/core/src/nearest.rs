//! The word, or the id, that somebody may have meant.

/// Enough for a swapped, missing or doubled letter; "model" is not offered for everything with an m.
const NEAR: f64 = 0.75;

/// So alike that a slip of the finger is likelier than another word: "comapct", not "context", for "compact".
const SLIP: f64 = 0.9;

/// The one among these that is most like the word; `None` where none is like it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    most_alike(word, known, NEAR)
}

/// The id that is most like this one, without the letters that all of a kind begin with.
pub fn nearest_id<'a, I: AsRef<str>>(id: &str, known: impl IntoIterator<Item = &'a I>) -> Option<&'a I> {
    fn bare(id: &str) -> &str {
        id.split_once('_').map_or(id, |(_, bare)| bare)
    }
    let known: Vec<&I> = known.into_iter().collect();
    let near = nearest(bare(id), known.iter().map(|known| bare(known.as_ref())))?;
    known.iter().copied().find(|known| bare(known.as_ref()) == near)
}

/// As `nearest`, for a word that may well stand for itself.
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

/// Behind an unknown word: which one was meant, or nothing.
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}
