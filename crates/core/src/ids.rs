//! Identifiers of sessions, messages and parts: sortable by creation, made by one generator; never parsed for
//! meaning.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::limits::SESSION_ID_BYTES;
use crate::ports::Clock;
use crate::ports::telemetry::SpanId;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps an id from outside, without any check.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            /// The text that is stored and sent.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

identifier!(
    /// One conversation: `ses_…`.
    SessionId
);
identifier!(
    /// One message of a conversation: `msg_…`, or an id that a client made for its own prompt.
    MessageId
);
identifier!(
    /// One stored part of a message: `prt_…`.
    PartId
);
identifier!(
    /// One call of a tool, named by the model that made it.
    CallId
);

impl SessionId {
    /// Whether it could be one of our ids. Others are only ever looked up.
    pub fn is_plain(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=SESSION_ID_BYTES).contains(&self.0.len()) && self.0.bytes().all(is_plain)
    }

    /// The name of the session's directory, and the only way from an id to a path. Always a single path
    /// component, whatever the id holds: characters that are not plain are written as hex.
    pub fn directory_name(&self) -> String {
        let mut name = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' => name.push(char::from(byte)),
                _ => name.push_str(&format!("%{byte:02x}")),
            }
        }
        if name.is_empty() { "%".to_owned() } else { name }
    }

    /// The session whose directory has this name; `None` for a name that is no session's.
    pub fn of_directory(name: &str) -> Option<Self> {
        let mut id = Vec::new();
        let mut rest = name.as_bytes();
        while let Some((first, behind)) = rest.split_first() {
            rest = match first {
                b'%' if name == "%" => behind,
                b'%' => {
                    let (digits, behind) = behind.split_at_checked(2)?;
                    id.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                    behind
                }
                plain => {
                    id.push(*plain);
                    behind
                }
            };
        }
        let id = Self::new(String::from_utf8(id).ok()?);
        (id.directory_name() == name).then_some(id)
    }
}

/// Makes ids: prefix, 14 hex digits of `milliseconds × 4096 + counter`, 12 random base-62 digits.
///
/// The order of the text is the order of creation within a process, and to the millisecond across processes.
#[derive(Debug)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    /// Why a lock: two sessions make ids at the same time, and the counter must never go back.
    state: Mutex<IdState>,
}

#[derive(Debug)]
struct IdState {
    last: u64,
    random: SplitMix,
}

/// A small generator is enough: the digits only keep two processes of one millisecond apart.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Ids {
    /// `seed` decides the random digits: the host takes it from the operating system, a simulation from its
    /// number.
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self { clock, state: Mutex::new(IdState { last: 0, random: SplitMix(seed) }) }
    }

    /// The id of a new session.
    pub fn session(&self) -> SessionId {
        SessionId::new(self.mint("ses_"))
    }
    /// The id of a new message.
    pub fn message(&self) -> MessageId {
        MessageId::new(self.mint("msg_"))
    }
    /// The id of a new part.
    pub fn part(&self) -> PartId {
        PartId::new(self.mint("prt_"))
    }
    /// The id of a call that its model did not name.
    pub fn call(&self) -> CallId {
        CallId::new(self.mint("cal_"))
    }
    /// An id for an approval request.
    pub fn approval(&self) -> String {
        self.mint("apr_")
    }

    /// An id for a span of telemetry.
    pub fn span(&self) -> SpanId {
        let random = self.state.lock().unwrap_or_else(PoisonError::into_inner).random.next();
        SpanId(random.max(1).to_be_bytes())
    }

    fn mint(&self, prefix: &str) -> String {
        let now = self.clock.now_ms().max(0) as u64 * 4096;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = now.max(state.last + 1);
        let mut text = format!("{prefix}{:014x}", state.last & 0x00ff_ffff_ffff_ffff);
        for _ in 0..2 {
            let mut random = state.random.next();
            for _ in 0..6 {
                text.push(BASE62[(random % 62) as usize] as char);
                random /= 62;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the id of a session, its directory lies directly below the common one and belongs to it
        /// alone.
        #[test]
        fn an_id_is_one_name(id in prop_oneof![any::<String>(), "[./~%a-c]{0,9}"]) {
            let session = SessionId::new(id.as_str());
            let name = session.directory_name();
            let components: Vec<_> = Path::new(&name).components().collect();
            prop_assert!(matches!(components.as_slice(), [Component::Normal(_)]), "{name}");
            prop_assert!(!name.starts_with('.') && !name.contains('\0'));
            prop_assert_eq!(SessionId::of_directory(&name), Some(session.clone()));
            prop_assert!(!session.is_plain() || name == id);
        }
    }

    #[test]
    fn only_names_like_ours_are_plain() {
        for id in ["ses_1a1ef61a83b000YT189n5Xskwy", "a", "x-1"] {
            assert!(SessionId::new(id).is_plain(), "{id}");
        }
        let long = "s".repeat(SESSION_ID_BYTES + 1);
        for id in ["", ".", "..", "/home/ada", "../../x", "a/b", "a b", "x\u{1b}[31m", "ses_\n", "é", &long]
        {
            assert!(!SessionId::new(id).is_plain(), "{id:?}");
        }
        for name in [".sandbox", "a.b", "%2", "%zz", "%61"] {
            assert_eq!(SessionId::of_directory(name), None, "{name}");
        }
    }
}
