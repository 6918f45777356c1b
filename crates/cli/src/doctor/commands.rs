//! How commands are confined on this machine, and why not better.

use attache_core::watchdog::Containment;
use attache_sandbox::platform::PROTECTS_LESS;
use attache_sandbox::{FULL_BY, REDUCED_BY, Sandbox};

use super::Finding;
use crate::config::Config;
use crate::sandbox;

const SUBJECT: &str = "sandbox";

/// The shell that runs commands; only a bare container has none.
pub(super) fn shell() -> Option<Finding> {
    match sandbox::shell() {
        Some(_) => None,
        None => {
            Some(Finding::warn("shell", sandbox::NO_SHELL, "the model can't run commands until there is one"))
        }
    }
}

/// What this system protects less than Linux does; nothing is said where that is nothing.
pub(super) fn platform() -> Option<Finding> {
    let system = std::env::consts::OS;
    (!PROTECTS_LESS.is_empty()).then(|| {
        let text = format!("{system}: less is protected than on Linux: {}", PROTECTS_LESS.join("; "));
        Finding::warn("platform", text, "docs/platforms.md says what that means for you")
    })
}

/// Starts a process in each level, as a session does.
pub(super) fn check(config: &Config) -> Finding {
    let wanted = config.sandbox.value;
    let found = sandbox::find(wanted, None);
    if let Err(error) = sandbox::check(config, &found) {
        return Finding::fail(SUBJECT, error.to_string(), advice(&found));
    }
    tell(sandbox::containment(wanted, found.level()), &found)
}

fn tell(containment: Containment, found: &Sandbox) -> Finding {
    match containment {
        Containment::Full => Finding::ok(SUBJECT, format!("full: {FULL_BY} confine every command")),
        Containment::Reduced => Finding::warn(
            SUBJECT,
            format!("reduced: commands are confined by {REDUCED_BY}, and each command asks"),
            advice(found),
        ),
        Containment::None => Finding::warn(SUBJECT, "none: each command asks", advice(found)),
        Containment::ExplicitlyOff => Finding::warn(
            SUBJECT,
            "off: commands run unconfined",
            "leave out `--sandbox off` (sandbox = \"off\", ATTACHE_SANDBOX) unless you mean it",
        ),
    }
}

fn advice(found: &Sandbox) -> String {
    let lines =
        found.shortfalls().iter().map(|shortfall| format!("{}: {}", shortfall.reason, shortfall.advice));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel;
    use super::*;

    #[test]
    fn what_a_system_protects_less_is_told() {
        assert_eq!(platform().is_none(), cfg!(all(target_os = "linux", not(attache_portable))));
        if let Some(finding) = platform() {
            assert_eq!(finding.level, FindingLevel::Warn);
            for less in PROTECTS_LESS {
                assert!(finding.text.contains(less), "{finding:?}");
            }
        }
    }

    #[test]
    fn less_than_the_whole_is_a_warning() {
        let level = |containment| tell(containment, &Sandbox::none("attache".into())).level;
        assert_eq!(level(Containment::Full), FindingLevel::Ok);
        for containment in [Containment::Reduced, Containment::None, Containment::ExplicitlyOff] {
            assert_eq!(level(containment), FindingLevel::Warn);
        }
    }
}
