//! A prompt on its way in: the user's parts, and what the client says about them. `intake` checks its
//! attachments, `shelf` stores the large ones.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::ids::MessageId;
use crate::part::Part;
use crate::slash_commands;

pub(crate) mod intake;
pub mod media;
pub mod shelf;
pub mod sniff;

pub use shelf::BLOB_SCHEME;

/// One user message as a client sent it, validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Its text and attachments, in order.
    pub parts: Vec<Part>,
    /// An id made by the client, so that a prompt sent twice is stored once.
    pub message_id: Option<MessageId>,
    /// Text for the model requests of this turn only: (title, text). Never stored.
    pub runtime_context: Vec<(Option<String>, String)>,
    /// What it does to a turn that runs.
    pub arrival: Arrival,
    /// Who wrote it.
    pub source: PromptSource,
}

impl Prompt {
    /// A prompt that consists only of what a person typed.
    pub fn text(text: impl Into<String>) -> Self {
        let part = Part::Text { text: text.into(), state: None, provider_metadata: None };
        Self { parts: vec![part], ..Self::default() }
    }
}

/// Who wrote a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptSource {
    /// The user.
    #[default]
    Person,
    /// Another agent that asked this one: never a command; prompt hooks apply to it as to a person's prompt.
    OtherAgent,
    /// A model, for a subagent, or the session itself: never a command.
    Agent,
}

/// What a prompt does to a turn that runs when the prompt arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// Waits until that turn and those of all earlier prompts have ended.
    #[default]
    Waits,
    /// Steers it: the turn ends before its next model call, and this prompt continues from there.
    Steers,
}

/// The text of a prompt as one string: text parts and expanded commands, joined by blank lines.
pub fn text_of(parts: &[Part]) -> String {
    fn said(part: &Part) -> Option<&str> {
        match part {
            Part::Text { text, .. } => Some(text),
            other => slash_commands::expansion(other),
        }
    }
    parts.iter().filter_map(said).collect::<Vec<_>>().join("\n\n")
}

/// The name in a `file:` or `zed:` address: the last segment of its path, including query and fragment. Decodes
/// nothing; addresses of other schemes have no name.
pub fn name_of_uri(uri: &str) -> Option<Cow<'_, str>> {
    let rest = uri.strip_prefix("file:").or_else(|| uri.strip_prefix("zed:"))?;
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    // Between `//` and the next slash there is a host, not a name.
    let path = match path.strip_prefix("//") {
        Some(behind) => &behind[behind.find('/').unwrap_or(behind.len())..],
        None => path,
    };
    // A folder's name is its last segment, without the closing slash.
    let segment = path.trim_end_matches('/').rsplit('/').next().filter(|segment| !segment.is_empty())?;
    Some(if tail.is_empty() { Cow::Borrowed(segment) } else { Cow::Owned(format!("{segment}{tail}")) })
}

/// SHA-256 in hex, which is the name of a blob.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_file_and_zed_uris_only() {
        for (uri, name) in [
            ("file:///a/b.rs", Some("b.rs")),
            ("file:///a/dir/", Some("dir")),
            ("file:///a/b.rs#L10-20", Some("b.rs#L10-20")),
            ("file:///a/b%20c.rs", Some("b%20c.rs")),
            ("file:/a/b.rs", Some("b.rs")),
            ("file://host/a.rs", Some("a.rs")),
            ("file://host", None),
            ("zed:///agent/git-diff?base=feature/x", Some("git-diff?base=feature/x")),
            ("zed:///agent/dir/?x=1", Some("dir?x=1")),
            ("file:///?x", None),
            ("file:///", None),
            ("file:", None),
            ("https://example.org/a.png", None),
            ("a.rs", None),
            ("", None),
        ] {
            assert_eq!(name_of_uri(uri).as_deref(), name, "{uri}");
        }
    }
}
