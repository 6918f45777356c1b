//! What the reader of shell commands says, command by command, against reviewed data.

mod brush;
mod commands;
pub(crate) mod corpus;
mod git;
mod network;
mod only_reads;
mod origins;
mod properties;
mod second_opinion;
mod secrets;
mod traced;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ids::SessionId;
use attache_core::ports::tool::{Access, CommandNature, Workspace};
use attache_core::scope::Guarded;
use attache_tools::programs::Programs;
use attache_tools::shell::{Ground, Keys, Reading, Repository, Tracked, read};

static GUARDED: LazyLock<Guarded> =
    LazyLock::new(|| Guarded::new(Some("/home/u".into()), vec!["/data/attache".into()]));

/// None is looked for: names mean programs of the system.
static PROGRAMS: LazyLock<Programs> = LazyLock::new(Programs::default);

fn ground() -> Ground<'static> {
    Ground {
        directory: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        temporary: Some(Path::new("/data/attache/scratch/ses_1")),
        programs: &PROGRAMS,
        repository: |_| Repository::Plain,
        tracked: |_, _| Tracked::Below("/w".into()),
        guarded: &GUARDED,
        keys: |_| Keys::Unseen,
        closed: None,
        links: |_, _| Vec::new(),
        elsewhere: |_, _| None,
    }
}

fn reading(command: &str) -> Reading {
    read(command, &ground())
}

fn accesses(command: &str) -> Vec<Access> {
    reading(command).accesses
}

/// Whether anything in it could not be followed.
fn is_unclear(reading: &Reading) -> bool {
    reading.accesses.iter().any(|access| match access {
        Access::Command(command) => matches!(command.nature, CommandNature::Unclear(_)),
        Access::ReadPath(_) | Access::WritePath(_) | Access::Network { .. } => false,
    })
}

fn workspace() -> Workspace {
    Workspace {
        session_id: SessionId::new("ses_1"),
        root: PathBuf::from("/w"),
        additional: vec![],
        scratch: PathBuf::from("/data/attache/scratch/ses_1"),
        guarded: Arc::new(GUARDED.clone()),
    }
}
