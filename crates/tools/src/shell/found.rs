//! What a reading has found so far: each access once, and no more of them than a person could look at.

use attache_core::ports::tool::{Access, CommandAccess, CommandNature};

use super::{Network, Reading, Unclear};
use crate::limits::SHELL_ACCESSES;

#[derive(Debug, Default)]
pub(super) struct Found {
    accesses: Vec<Access>,
    programs: Vec<String>,
    network: Network,
}

impl Found {
    pub(super) fn add(&mut self, access: Access) {
        if !self.accesses.contains(&access) {
            self.accesses.push(access);
        }
    }

    /// Fails when there are too many to be compared with each other, let alone looked at.
    pub(super) fn command(&mut self, command: CommandAccess) -> Result<(), Unclear> {
        if self.accesses.len() >= SHELL_ACCESSES {
            return Err("it touches too much to be judged".into());
        }
        self.add(Access::Command(command));
        Ok(())
    }

    pub(super) fn program(&mut self, name: &str) {
        if self.programs.len() < SHELL_ACCESSES * 4 {
            self.programs.push(name.to_owned());
        }
    }

    pub(super) fn network(&mut self, network: Network) {
        self.network = self.network.max(network);
    }

    /// Whether everything found since `mark` only reads.
    pub(super) fn only_reads_since(&self, mark: usize) -> bool {
        self.accesses[mark..].iter().all(|access| match access {
            Access::ReadPath(_) => true,
            Access::Command(command) => command.nature == CommandNature::ReadOnly,
            Access::WritePath(_) | Access::Network { .. } => false,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }

    pub(super) fn mark(&self) -> usize {
        self.accesses.len()
    }

    pub(super) fn into_reading(self) -> Reading {
        let is_host = |access: &Access| matches!(access, Access::Network { .. });
        let named = if self.accesses.iter().any(is_host) { Network::Needs } else { Network::Never };
        Reading { accesses: self.accesses, programs: self.programs, network: self.network.max(named) }
    }
}
