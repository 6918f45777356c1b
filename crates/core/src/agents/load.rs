//! Puts the agents of a session together: the built-in ones and those of files, the nearest first. Reports the
//! files that it can't use; such a file never stops a session.

use std::path::PathBuf;
use std::sync::Arc;

use super::manifest::{self, AgentFile, ManifestDialect, ReadManifest};
use super::{Agent, Agents};
use crate::legible::{legible_path, visible_block};
use crate::limits::AGENTS_TOLD;

/// A file of an agent as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAgent {
    /// The path that messages to people name.
    pub path: PathBuf,
    /// The whole file.
    pub text: String,
    /// Which program's fields it has.
    pub dialect: ManifestDialect,
}

/// The result of reading the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedAgents {
    /// All agents there are now, the built-in ones among them.
    pub agents: Agents,
    /// Files that are not used, each with its reason: for the user.
    pub left_out: Vec<String>,
    /// What attache did not understand in the files that it uses.
    pub notes: Vec<String>,
}

impl Agents {
    /// Adds the agents of files, those with precedence first. `beside` gives the text of a file that lies
    /// beside one of them, by its name.
    pub fn with_files(
        &self,
        files: &[FoundAgent],
        beside: &dyn Fn(&FoundAgent, &str) -> Result<String, String>,
    ) -> LoadedAgents {
        let mut all = self.agents.to_vec();
        let mut origins: Vec<(Arc<str>, &FoundAgent)> = Vec::new();
        let (mut left_out, mut notes) = (Vec::new(), Vec::new());
        for file in files {
            let shown = legible_path(&file.path);
            let ReadManifest { agent, notes: noted } = match read(file, self, beside) {
                Ok(read) => read,
                Err(problem) => {
                    left_out.push(format!("{shown}: {problem}"));
                    continue;
                }
            };
            if let Some((_, first)) = origins.iter().find(|(id, _)| *id == agent.id) {
                let first = legible_path(&first.path);
                left_out.push(format!("{shown}: there is an agent `{}` already: {first}", agent.id));
                continue;
            }
            notes.extend(noted.iter().map(|note| format!("{shown}: {note}")));
            origins.push((agent.id.clone(), file));
            put(&mut all, agent);
        }
        let (left_out, notes) = (some(left_out), some(notes));
        LoadedAgents { agents: Self { agents: Arc::new(all) }, left_out, notes }
    }
}

fn read(
    file: &FoundAgent,
    built_in: &Agents,
    beside: &dyn Fn(&FoundAgent, &str) -> Result<String, String>,
) -> Result<ReadManifest, String> {
    let stem = file.path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let text = visible_block(&file.text);
    let read = |name: &str| beside(file, name);
    let agent = AgentFile { stem: &stem, text: &text, dialect: file.dialect, beside: &read };
    manifest::parse(&agent, built_in).map_err(|error| error.to_string())
}

/// Replaces the built-in agent of the same id, else appends.
fn put(all: &mut Vec<Agent>, agent: Agent) {
    match all.iter_mut().find(|known| known.id == agent.id) {
        Some(known) => *known = agent,
        None => all.push(agent),
    }
}

/// Cut to as many messages as people read.
fn some(mut told: Vec<String>) -> Vec<String> {
    let more = told.len().saturating_sub(AGENTS_TOLD);
    if more > 0 {
        told.truncate(AGENTS_TOLD);
        told.push(format!("and {more} more"));
    }
    told
}
