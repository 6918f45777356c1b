//! Names of our data parts and chunks, `data-NAME` on the wire. Backends and imported sessions may bring
//! others; those are kept as they are.

/// What a data part or chunk is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataName {
    /// The answer to a question about a call.
    Approval,
    /// A call of a child session, shown to the clients of its parent because they are asked about it.
    /// Transient.
    AskedCall,
    /// A slash command of the user.
    Command,
    /// A summary that takes the place of what came before it.
    Compaction,
    /// A text that the user attached: `{uri, mime?, text}`, or `{uri, mime?, blob, size}` when it is shelved.
    Context,
    /// What changed in the surroundings; in a user message, only for the model: `{text, ended?, mode?}`, with
    /// the mode if it is news.
    Environment,
    /// A file that the user named.
    FileRef,
    /// What a hook told the model: `{event, hook, text}`.
    Hook,
    /// The choices of the session: mode, model, thought level, approval.
    Mode,
    /// For people, never for the model: `{severity, title, description?}`.
    Notice,
    /// The list of things to do.
    Plan,
    /// What files held before a call changed them.
    Snapshot,
    /// What the current turn is doing.
    Status,
    /// The session's title.
    Title,
    /// Tokens and cost of a step.
    Usage,
}

impl DataName {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Approval,
        Self::AskedCall,
        Self::Command,
        Self::Compaction,
        Self::Context,
        Self::Environment,
        Self::FileRef,
        Self::Hook,
        Self::Mode,
        Self::Notice,
        Self::Plan,
        Self::Snapshot,
        Self::Status,
        Self::Title,
        Self::Usage,
    ];

    /// The name in rows and on the wire, behind `data-`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::AskedCall => "subagent-call",
            Self::Command => "command",
            Self::Compaction => "compaction",
            Self::Context => "context",
            Self::Environment => "environment",
            Self::FileRef => "file-ref",
            Self::Hook => "hook",
            Self::Mode => "mode",
            Self::Notice => "notice",
            Self::Plan => "plan",
            Self::Snapshot => "snapshot",
            Self::Status => "status",
            Self::Title => "title",
            Self::Usage => "usage",
        }
    }

    /// `None` for a name that is not ours.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl From<DataName> for String {
    fn from(name: DataName) -> Self {
        name.as_str().to_owned()
    }
}

impl PartialEq<DataName> for String {
    fn eq(&self, other: &DataName) -> bool {
        self == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_by_its_text() {
        for name in DataName::ALL {
            assert_eq!(DataName::of(name.as_str()), Some(name));
            assert_eq!(String::from(name), name);
        }
        assert_eq!(DataName::of("weather"), None);
    }
}
