//! How much runs without a question, and what contains commands that do. Judges nothing.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// How much runs without a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Only reading; everything else asks.
    #[default]
    Ask,
    /// Also changes to files within the roots.
    Edits,
    /// Everything. Refusals still apply.
    All,
}

impl Approval {
    /// Every level, the strictest first.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Edits, Self::All];

    /// The name that configurations and clients use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    /// The level with that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|approval| approval.as_str() == text)
    }
}

/// What contains commands that run without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A sandbox with a file system and processes of its own.
    Full,
    /// Rules of the kernel that can't exclude anything from a writable directory and leave processes visible: a
    /// person still has to check each command.
    Reduced,
    /// Nothing, so a person has to check each command.
    None,
    /// Nothing, because the user wants it so.
    ExplicitlyOff,
}

impl Containment {
    /// Whether this level is possible here; the error says why not.
    pub fn permit(self, approval: Approval) -> Result<(), &'static str> {
        match (approval, self) {
            (Approval::Ask | Approval::Edits, _) | (Approval::All, Self::Full | Self::ExplicitlyOff) => {
                Ok(())
            }
            (Approval::All, Self::Reduced) => Err(
                "`all` needs the full sandbox, and this machine has only the reduced one (`attache doctor` says why); \
                     start attache with `--sandbox off` to run commands unconfined",
            ),
            (Approval::All, Self::None) => {
                Err("`all` needs the full sandbox, and this machine has none (`attache doctor` says why); \
                     start attache with `--sandbox off` to run commands unconfined")
            }
        }
    }

    /// Why each command that no user rule allows has to ask; `None`: it need not.
    pub(crate) fn wants_a_look(self) -> Option<&'static str> {
        match self {
            Self::Full | Self::ExplicitlyOff => None,
            Self::Reduced => Some("only the reduced sandbox is available here, so every command asks"),
            Self::None => Some("no sandbox is available here, so every command asks"),
        }
    }
}

/// What contains commands on a host, determined on first use: probing for a sandbox starts processes, and a
/// host has to answer before that.
#[derive(Clone)]
pub struct HostContainment(Arc<LazyLock<Containment, Probe>>);

type Probe = Box<dyn FnOnce() -> Containment + Send>;

impl HostContainment {
    /// The first caller waits for `look`.
    pub fn found_by(look: impl FnOnce() -> Containment + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(look))))
    }

    /// The containment; the first caller waits.
    pub fn get(&self) -> Containment {
        **self.0
    }

    /// The containment, if it was determined; `None` before first use.
    pub fn known(&self) -> Option<Containment> {
        LazyLock::get(&self.0).copied()
    }

    /// Like `Containment::permit`; determines the containment only if the answer depends on it.
    pub fn permit(&self, approval: Approval) -> Result<(), &'static str> {
        match approval {
            Approval::Ask | Approval::Edits => Ok(()),
            Approval::All => self.get().permit(approval),
        }
    }
}

impl From<Containment> for HostContainment {
    fn from(containment: Containment) -> Self {
        let hold = Self::found_by(move || containment);
        // Known from the start, so this never waits.
        hold.get();
        hold
    }
}

impl fmt::Debug for HostContainment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("HostContainment").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_for_a_sandbox_before_it_matters() {
        let unneeded = HostContainment::found_by(|| panic!("looked"));
        assert_eq!(unneeded.permit(Approval::Edits), Ok(()));
        assert_eq!(unneeded.known(), None);
        assert_eq!(HostContainment::from(Containment::Full).known(), Some(Containment::Full));
        assert!(HostContainment::from(Containment::None).permit(Approval::All).is_err());
    }

    #[test]
    fn everything_needs_somebody_who_said_that_nothing_shall_hold_it() {
        for approval in [Approval::Ask, Approval::Edits] {
            assert_eq!(Containment::None.permit(approval), Ok(()));
        }
        assert!(Containment::None.permit(Approval::All).is_err());
        assert!(Containment::Reduced.permit(Approval::All).is_err());
        assert_eq!(Containment::Full.permit(Approval::All), Ok(()));
        assert_eq!(Containment::ExplicitlyOff.permit(Approval::All), Ok(()));
    }
}
