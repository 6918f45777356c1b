//! Writes Gemini generateContent requests.

use crate::dialect::Outgoing;

pub(crate) fn body(_outgoing: &Outgoing<'_>) -> Vec<u8> {
    Vec::new()
}
