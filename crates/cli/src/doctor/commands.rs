//! What holds commands here, and why it is not more.

use attache_core::watchdog::Containment;
use attache_sandbox::Sandbox;

use super::Finding;
use crate::config::Config;
use crate::sandbox;

const SUBJECT: &str = "sandbox";

/// What runs commands; only a bare container has none.
pub(super) fn shell() -> Option<Finding> {
    match sandbox::shell() {
        Some(_) => None,
        None => {
            Some(Finding::warn("shell", sandbox::NO_SHELL, "the model can't run commands until there is one"))
        }
    }
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
        Containment::Full => Finding::ok(SUBJECT, "full: bubblewrap and seccomp confine every command"),
        Containment::Reduced => Finding::warn(
            SUBJECT,
            "reduced: landlock and seccomp confine commands, and each command asks",
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
    fn less_than_the_whole_is_a_warning() {
        let level = |containment| tell(containment, &Sandbox::none("attache".into())).level;
        assert_eq!(level(Containment::Full), FindingLevel::Ok);
        for containment in [Containment::Reduced, Containment::None, Containment::ExplicitlyOff] {
            assert_eq!(level(containment), FindingLevel::Warn);
        }
    }
}
