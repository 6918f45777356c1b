//! A prompt on its way in: typed user parts and what a client says of them. `intake` judges its attachments,
//! `shelf` keeps the large ones.

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
    /// What it says and what is attached, in order.
    pub parts: Vec<Part>,
    /// Minted by the client so that sending twice stores once.
    pub message_id: Option<MessageId>,
    /// Text for the model requests of this turn only: (title, text). Never stored.
    pub runtime_context: Vec<(Option<String>, String)>,
    /// What it does to a turn that runs.
    pub arrival: Arrival,
    /// Who wrote it.
    pub source: PromptSource,
}

impl Prompt {
    /// What a person typed, and nothing beside it.
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
    /// Another agent that asked this one: never a command, and held to the hooks of prompts as a person's is.
    OtherAgent,
    /// A model, for a subagent, or the session itself: never a command.
    Agent,
}

/// What a prompt does to a turn that runs when it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// Waits until that turn has ended, and those of all prompts that came before.
    #[default]
    Waits,
    /// Steers it: the turn ends before its next model call, and this prompt goes on from there.
    Steers,
}

/// The text of a prompt as one string: text parts, and what commands stand for, joined by blank lines.
pub fn text_of(parts: &[Part]) -> String {
    fn said(part: &Part) -> Option<&str> {
        match part {
            Part::Text { text, .. } => Some(text),
            other => slash_commands::expansion(other),
        }
    }
    parts.iter().filter_map(said).collect::<Vec<_>>().join("\n\n")
}

/// What a `file:` or `zed:` address is called: the last segment of its path, with query and fragment as they
/// stand. Nothing is decoded, and other schemes have no name.
pub fn name_of_uri(uri: &str) -> Option<Cow<'_, str>> {
    let rest = uri.strip_prefix("file:").or_else(|| uri.strip_prefix("zed:"))?;
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    // What is between `//` and the next slash is a machine, not a name.
    let path = match path.strip_prefix("//") {
        Some(behind) => &behind[behind.find('/').unwrap_or(behind.len())..],
        None => path,
    };
    // A folder is named like a file, its closing slash aside.
    let segment = path.trim_end_matches('/').rsplit('/').next().filter(|segment| !segment.is_empty())?;
    Some(if tail.is_empty() { Cow::Borrowed(segment) } else { Cow::Owned(format!("{segment}{tail}")) })
}

/// SHA-256 in hex: how blobs are named.
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
