//! How commands are confined on this machine, according to the settings. Decides no permission.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use attache_core::watchdog::{Approval, Containment};
use attache_sandbox::programs::Programs;
use attache_sandbox::{LazySandbox, Level, Sandbox, own_program};

use crate::config::{self, Config};
use crate::troubles::Troubles;

/// The sandbox of sessions. Looks for it at once only if the settings depend on the result: the search takes
/// many times as long as a start without it. `scratches` is the directory of all scratch directories.
pub(crate) fn open(config: &Config, scratches: &Path) -> Result<LazySandbox> {
    let wanted = config.sandbox.value;
    let scratches = scratches.to_owned();
    let sandbox = Sandbox::found_lazily_by(move || find(wanted, Some(&scratches)));
    let anything_will_do = match (wanted, config.approval.value) {
        (config::SandboxSetting::Auto, Approval::Ask | Approval::Edits)
        | (config::SandboxSetting::Off, _) => true,
        (config::SandboxSetting::Auto, Approval::All) | (config::SandboxSetting::Require, _) => false,
    };
    if !anything_will_do {
        check(config, &sandbox)?;
    }
    Ok(sandbox)
}

/// What we say if nothing can run a command.
pub(crate) const NO_SHELL: &str = "neither bash nor sh on this machine: install bash";

/// The shell that runs the lines of the tool `bash`.
pub(crate) fn shell() -> Option<PathBuf> {
    let programs = Programs::of_machine();
    programs.helper("bash").or_else(|| programs.helper("sh"))
}

/// Looks for the best sandbox unless the user wants none. Starts a process or two. With `scratches`, copies our
/// own program there, because commands could replace the original.
pub(crate) fn find(wanted: config::SandboxSetting, scratches: Option<&Path>) -> Sandbox {
    let copy = scratches.filter(|_| wanted != config::SandboxSetting::Off).and_then(|scratches| {
        let copy = own_program(scratches);
        copy.inspect_err(|error| tracing::warn!(%error, "our own program can't be copied")).ok()
    });
    match (wanted, copy.map_or_else(std::env::current_exe, Ok)) {
        (config::SandboxSetting::Off, program) => Sandbox::none(program.unwrap_or_default()),
        (config::SandboxSetting::Auto | config::SandboxSetting::Require, Ok(program)) => {
            Sandbox::probe(program)
        }
        (config::SandboxSetting::Auto | config::SandboxSetting::Require, Err(error)) => {
            tracing::warn!(%error, "our own program is not found, so there is no sandbox");
            Sandbox::none(PathBuf::new())
        }
    }
}

pub(crate) fn containment(wanted: config::SandboxSetting, found: Level) -> Containment {
    match (wanted, found) {
        (config::SandboxSetting::Off, _) => Containment::ExplicitlyOff,
        (config::SandboxSetting::Auto | config::SandboxSetting::Require, Level::Full) => Containment::Full,
        (config::SandboxSetting::Auto | config::SandboxSetting::Require, Level::Reduced) => {
            Containment::Reduced
        }
        (config::SandboxSetting::Auto | config::SandboxSetting::Require, Level::None) => Containment::None,
    }
}

/// Reports a sandbox that is weaker than the full one, unless the settings ask for less.
pub(crate) fn tell_shortfall(wanted: config::SandboxSetting, sandbox: &Sandbox, troubles: &Troubles) {
    let title = match containment(wanted, sandbox.level()) {
        Containment::Full | Containment::ExplicitlyOff => return,
        Containment::Reduced => "Only the reduced sandbox is available here",
        Containment::None => "No sandbox is available here",
    };
    let reasons = reasons(sandbox);
    troubles.report(title, format!("`attache doctor` says more{reasons}"));
}

/// Refuses settings that this machine cannot fulfil.
pub(crate) fn check(config: &Config, sandbox: &Sandbox) -> Result<()> {
    let wanted = &config.sandbox;
    let containment = containment(wanted.value, sandbox.level());
    if wanted.value == config::SandboxSetting::Require && containment != Containment::Full {
        bail!(
            "{}: `sandbox`: the full sandbox is required but unavailable here{}",
            wanted.origin,
            reasons(sandbox)
        );
    }
    if let Err(reason) = containment.permit(config.approval.value) {
        bail!("{}: `approval`: {reason} (in the configuration: sandbox = \"off\")", config.approval.origin);
    }
    Ok(())
}

fn reasons(sandbox: &Sandbox) -> String {
    let mut text = String::new();
    for shortfall in sandbox.shortfalls() {
        // Writing to a string does not fail.
        if write!(text, "; {} ({})", shortfall.reason, shortfall.advice).is_err() {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_found_is_called_a_sandbox() {
        use config::SandboxSetting::{Auto, Off, Require};
        assert_eq!(containment(Auto, Level::Full), Containment::Full);
        assert_eq!(containment(Auto, Level::Reduced), Containment::Reduced);
        assert_eq!(containment(Require, Level::None), Containment::None);
        assert_eq!(containment(Off, Level::Full), Containment::ExplicitlyOff);
    }
}
