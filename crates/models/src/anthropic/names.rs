//! Ids of calls and names of tools in the form this provider takes. The same text always gives the same result,
//! in the call and in its result.

use std::borrow::Cow;

use super::prefix::Prefix;

/// Ids and names up to this length go out unchanged; the provider takes at least that.
const LONGEST: usize = 64;

/// Letters kept of a text that must change, before its fingerprint.
const KEPT: usize = 40;

/// Ids of other providers hold characters that this one refuses (`.`, `:`, `|`).
pub(super) fn call_id(id: &str) -> Cow<'_, str> {
    taken(id)
}

/// Models call tools that do not exist, under names that are not allowed.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    taken(name)
}

fn taken(text: &str) -> Cow<'_, str> {
    let is_taken = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !text.is_empty() && text.len() <= LONGEST && text.chars().all(is_taken) {
        return Cow::Borrowed(text);
    }
    let mut changed: String = text.chars().take(KEPT).map(|c| if is_taken(c) { c } else { '_' }).collect();
    // Two texts that look alike after the change stay distinct.
    let mut fingerprint = Prefix::default();
    fingerprint.fold(text.as_bytes());
    changed.push('_');
    changed.push_str(&fingerprint.to_string());
    Cow::Owned(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_is_told_apart() {
        assert_eq!(call_id("toolu_01A-b"), "toolu_01A-b");
        let (long, longer) = ("x".repeat(200), "x".repeat(201));
        let foreign = ["call.1", "call:1", "call|1", "", "é", &long, &longer].map(call_id);
        for (index, id) in foreign.iter().enumerate() {
            let fits = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            assert!(fits && !id.is_empty() && id.len() <= LONGEST, "{id}");
            assert!(!foreign[..index].contains(id), "{id} twice");
        }
        assert_eq!(call_id("call.1"), call_id("call.1"));
    }
}
