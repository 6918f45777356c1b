//! The opaque cursor of session/list: the position of the last session shown, with a checksum against damaged
//! cursors.

use attache_core::ids::SessionId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::limits::ID_BYTES;

/// Points after this session in the order of `updated_at`, then id.
pub fn cursor(updated_at: i64, id: &SessionId) -> String {
    let mut bytes = updated_at.to_be_bytes().to_vec();
    bytes.extend_from_slice(id.as_str().as_bytes());
    bytes.extend_from_slice(&checksum(&bytes).to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// `None` if it is not one of our cursors.
pub(super) fn place(cursor: &str) -> Option<(i64, SessionId)> {
    if cursor.len() > 2 * (ID_BYTES + 12) {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (body, check) = bytes.split_last_chunk::<4>()?;
    if checksum(body) != u32::from_be_bytes(*check) {
        return None;
    }
    let (time, id) = body.split_first_chunk::<8>()?;
    let id = std::str::from_utf8(id).ok().filter(|id| !id.is_empty())?;
    Some((i64::from_be_bytes(*time), SessionId::new(id)))
}

/// FNV-1a, which catches accidents. Forging a cursor gains nothing.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_leads_back_to_its_place(time in any::<i64>(), id in "[a-zA-Z0-9_]{1,60}") {
            let id = SessionId::new(id);
            prop_assert_eq!(place(&cursor(time, &id)), Some((time, id)));
        }

        #[test]
        fn anything_else_is_no_place(text in "\\PC{0,80}") {
            prop_assert_eq!(place(&text), None);
        }
    }

    #[test]
    fn one_changed_character_is_noticed() {
        let good = cursor(1_763_000_000_000, &SessionId::new("ses_1"));
        for index in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[index] = if bad[index] == b'A' { b'B' } else { b'A' };
            assert_eq!(place(std::str::from_utf8(&bad).unwrap()), None, "at {index}");
        }
    }
}
