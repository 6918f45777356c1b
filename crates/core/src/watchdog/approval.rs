//! How much happens without asking, and what holds commands without a question. Judges nothing.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// How much happens without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Reading passes, all else asks.
    #[default]
    Ask,
    /// Changes to files within the roots pass too.
    Edits,
    /// Nothing asks. What is refused stays refused.
    All,
}

impl Approval {
    /// Every level, the strictest first.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Edits, Self::All];

    /// As configurations and clients name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
        }
    }

    /// The level of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|approval| approval.as_str() == text)
    }
}

/// What holds commands that run without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A sandbox with a file system and processes of its own.
    Full,
    /// Rules of the kernel that can't except anything from a writable directory and leave processes visible:
    /// somebody has to look at each command all the same.
    Reduced,
    /// Nothing does, so somebody has to look at each of them.
    None,
    /// Nothing does, and the user said that nothing shall.
    ExplicitlyOff,
}

impl Containment {
    /// Whether this much may happen here without asking; the error says why not.
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

    /// Why each command that no rule of the user lets pass has to be asked about; `None`: it need not.
    pub(crate) fn wants_a_look(self) -> Option<&'static str> {
        match self {
            Self::Full | Self::ExplicitlyOff => None,
            Self::Reduced => Some("only the reduced sandbox is available here, so every command asks"),
            Self::None => Some("no sandbox is available here, so every command asks"),
        }
    }
}

/// What holds commands on a host, found out when it is first asked for: looking for a sandbox starts processes,
/// and a host has to answer before that.
#[derive(Clone)]
pub struct HostContainment(Arc<LazyLock<Containment, Probe>>);

type Probe = Box<dyn FnOnce() -> Containment + Send>;

impl HostContainment {
    /// The first one who asks waits for `look`.
    pub fn found_by(look: impl FnOnce() -> Containment + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(look))))
    }

    /// What there is; the first who asks waits.
    pub fn get(&self) -> Containment {
        **self.0
    }

    /// What has been found; `None` before the first question.
    pub fn known(&self) -> Option<Containment> {
        LazyLock::get(&self.0).copied()
    }

    /// As `Containment::permit`; asks only where the answer hangs on it.
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
        // There is nothing to wait for: it is known from the start.
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
