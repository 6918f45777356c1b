//! Ids of calls and names of tools in the form servers of this dialect take: the same text always gives the
//! same result, in the call and in its result.

use std::borrow::Cow;

use crate::limits::{CALL_NAME_BYTES, CHAT_ID_BYTES};
use crate::vendors::CallIds;

pub(super) fn call_id(id: &str, taken: CallIds) -> Cow<'_, str> {
    let fits = match taken {
        CallIds::Visible => {
            (1..=CHAT_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
        }
        CallIds::NineLetters => id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    };
    match (fits, taken) {
        (true, _) => Cow::Borrowed(id),
        (false, CallIds::Visible) => Cow::Owned(format!("call_{:016x}", fingerprint(id))),
        (false, CallIds::NineLetters) => Cow::Owned(nine_letters(fingerprint(id))),
    }
}

/// Models call tools that don't exist, under names that no request may hold.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= CALL_NAME_BYTES && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().take(CALL_NAME_BYTES).map(|c| if allowed(c) { c } else { '_' }).collect())
}

const NINE: usize = 9;

fn nine_letters(mut number: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut letters = String::with_capacity(NINE);
    for _ in 0..NINE {
        letters.push(char::from(DIGITS[(number % 62) as usize]));
        number /= 62;
    }
    letters
}

/// FNV-1a with a final mix of the bits. Every build computes the same, so a continued session sends the same
/// bytes.
fn fingerprint(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_that_fit_stay_and_the_others_are_told_apart() {
        assert_eq!(call_id("functions.read:0", CallIds::Visible), "functions.read:0");
        assert_eq!(call_id("D681PevKs", CallIds::NineLetters), "D681PevKs");
        let long = "x".repeat(CHAT_ID_BYTES + 1);
        let odd = ["", "a b", "é", "call_1\n", &long];
        let mut seen = HashSet::new();
        for id in odd {
            let ours = call_id(id, CallIds::Visible);
            assert!(ours.len() <= CHAT_ID_BYTES && ours.starts_with("call_"), "{ours}");
            assert_eq!(ours, call_id(id, CallIds::Visible));
            assert!(seen.insert(ours.into_owned()), "{id}");
        }
        for number in 0..1000 {
            let ours = call_id(&format!("call_{number}"), CallIds::NineLetters).into_owned();
            assert!(ours.len() == NINE && ours.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{ours}");
            assert!(seen.insert(ours), "{number}");
        }
    }

    #[test]
    fn names_are_made_ones_that_a_request_may_hold() {
        for (name, ours) in
            [("read", "read"), ("functions.read", "functions_read"), ("", "unnamed"), ("é!", "__")]
        {
            assert_eq!(tool_name(name), ours);
        }
        assert_eq!(tool_name(&"é".repeat(100)).len(), CALL_NAME_BYTES);
    }
}
