//! Starts a command with its grants in the sandbox, and follows it until everything that it started has ended.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};
use attache_core::watchdog::Commands;
use attache_sandbox::environment;
use attache_sandbox::process::{CommandEnd, ProcessTree, Sink, watch};
use attache_sandbox::programs::Programs;
use attache_sandbox::{Aftermath, LazySandbox, Level, cautious};

/// A command to start, with its grants.
#[derive(Debug)]
pub(super) struct GrantedCommand {
    pub(super) sandbox: LazySandbox,
    pub(super) command: String,
    pub(super) site: Site,
    pub(super) network: NetworkGrant,
    pub(super) writes: WriteGrant,
    /// Which commands its agent may run.
    pub(super) commands: Commands,
}

impl GrantedCommand {
    /// From its start until everything that it started has ended. Blocks.
    pub(super) fn run(
        &self,
        cancel: &OwnedFd,
        time: Duration,
        sink: &mut dyn Sink,
    ) -> io::Result<(CommandEnd, Aftermath)> {
        let level = self.sandbox.level();
        let mut first = self.attempt(self.writes, cancel, time, sink);
        // What others do meanwhile changes what has to be covered: who listened may be gone.
        if first.is_err() && level == Level::Full {
            first = self.attempt(self.writes, cancel, time, sink);
        }
        match (first, self.writes, level) {
            // Something has changed while the sandbox was built: without anything to be written that does not
            // matter.
            (Err(error), WriteGrant::Granted, Level::Full) => {
                let (end, mut aftermath) = self.attempt(WriteGrant::Withheld, cancel, time, sink)?;
                aftermath.told.push(cautious(&error));
                Ok((end, aftermath))
            }
            (first, _, _) => first,
        }
    }

    fn attempt(
        &self,
        writes: WriteGrant,
        cancel: &OwnedFd,
        time: Duration,
        sink: &mut dyn Sink,
    ) -> io::Result<(CommandEnd, Aftermath)> {
        let directory = &self.site.workspace.root;
        if !directory.is_dir() {
            let text = format!("the workspace root {} is not a directory", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let programs = Programs::of(&self.site);
        let line = vec![find_shell(|name| programs.helper(name))?, "-c".into(), (&self.command).into()];
        // Lives until the whole process tree is gone.
        let confined = self.sandbox.confine(&self.site, self.network, writes, line)?;
        let environment = environment::for_call(std::env::vars_os(), writes, &programs);
        let directory = confined.directory.as_deref().unwrap_or(directory);
        let tree = ProcessTree::start(&confined.line(), directory, environment.into_iter())?;
        let end = watch(tree, cancel, time, sink)?;
        Ok((end, confined.aftermath()))
    }
}

/// By its complete path, and never a program that a session could have placed there.
fn find_shell(helper: impl Fn(&str) -> Option<PathBuf>) -> io::Result<OsString> {
    let found = helper("bash").or_else(|| helper("sh"));
    found.map(PathBuf::into_os_string).ok_or_else(|| {
        let text = "No such file: neither bash nor sh is in a place of PATH that only root can write";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_bash_it_is_sh() {
        let only = |there: &'static [&'static str]| {
            find_shell(move |name| there.contains(&name).then(|| PathBuf::from("/usr/bin").join(name)))
        };
        assert_eq!(only(&["sh", "bash"]).unwrap(), "/usr/bin/bash");
        assert_eq!(only(&["sh"]).unwrap(), "/usr/bin/sh");
        assert!(only(&[]).unwrap_err().to_string().contains("neither bash nor sh"));
    }
}
