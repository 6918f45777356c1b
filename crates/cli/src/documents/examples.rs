//! Reads the files that the documents show: configurations, agents, skills and commands.

use std::path::Path;

use attache_core::agents::{Agents, FoundAgent, ManifestDialect};
use attache_core::command_templates::CommandTemplate;
use attache_core::skills::Skill;
use clap::Parser;

use crate::args::Args;
use crate::config::{Config, ProcessEnvironment};
use crate::dirs::Dirs;
use crate::print_config;
use crate::setup::Sources;

/// Reads it as the user's own file.
pub(super) fn configuration(text: &str) -> Result<(), String> {
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    load(home.path(), text).map(drop)
}

fn load(home: &Path, text: &str) -> Result<(Config, Dirs), String> {
    std::fs::write(home.join("config.toml"), text).map_err(|error| error.to_string())?;
    let environment = ProcessEnvironment::from_pairs(&[("ATTACHE_HOME", &home.to_string_lossy())]);
    let dirs = Dirs::from_environment(&environment).map_err(|error| error.to_string())?;
    let args = Args::parse_from(["attache", "acp"]);
    let config = Config::load(&args, &environment, &dirs).map_err(|errors| errors.to_string())?;
    Ok((config, dirs))
}

/// The output of `--print-config` without any configuration, with `HOME` for attache's directory.
pub(super) fn defaults() -> String {
    let home = tempfile::tempdir().unwrap();
    let (config, dirs) = load(home.path(), "").unwrap();
    let sources = Sources::new(config, dirs, &ProcessEnvironment::from_pairs(&[]));
    print_config::text(&sources, home.path()).replace(&*home.path().to_string_lossy(), "HOME")
}

pub(super) fn agent(text: &str) -> Result<(), String> {
    let (path, text, dialect) = ("example.md".into(), text.to_owned(), ManifestDialect::Own);
    let none = |_: &FoundAgent, name: &str| Err(format!("there is no {name}"));
    let loaded = Agents::builtin().with_files(&[FoundAgent { path, text, dialect }], &none);
    let problems = [loaded.left_out, loaded.notes].concat();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

/// Its fields say what it is.
pub(super) fn knowledge(text: &str) -> Result<(), String> {
    let has = |field: &str| text.lines().any(|line| line.starts_with(&format!("{field}:")));
    let told = |error: attache_core::front_matter::FrontMatterError| error.to_string();
    if has("mode") || has("id") {
        agent(text)
    } else if has("name") {
        Skill::parse(Path::new("pdf/SKILL.md"), "pdf".into(), text).map(drop).map_err(told)
    } else if has("argument-hint") {
        CommandTemplate::parse("example", text).map(drop).map_err(told)
    } else {
        Err("neither an agent, a skill nor a command".to_owned())
    }
}
