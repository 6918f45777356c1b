//! The reader of commands together with what it is told about: rules, repositories, programs, and what really
//! runs.

#[path = "../../shell/tests/commands.rs"]
mod commands;
mod corpus;
mod git;
mod links;
mod origins;
mod traced;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use attache_core::ids::SessionId;
use attache_core::ports::tool::{Access, Workspace};
use attache_core::scope::Guarded;
use attache_shell::{Context, Disk, Footprint, Nature, Repository, Touch, Tracked, read};
use attache_tools::RestrictionsOfSession;

static GUARDED: LazyLock<Guarded> =
    LazyLock::new(|| Guarded::new(Some("/home/u".into()), vec!["/data/attache".into()]));

static RESTRICTIONS: LazyLock<RestrictionsOfSession<'static>> =
    LazyLock::new(|| RestrictionsOfSession { guarded: &GUARDED, closed: None });

/// A plain repository that tracks nothing; nothing else is there.
struct PlainRepository;

impl Disk for PlainRepository {
    fn repository(&self, _: &Path) -> Repository {
        Repository::Plain
    }

    fn tracked(&self, _: &Path, _: &mut dyn FnMut(&Path)) -> Tracked {
        Tracked::Below("/w".into())
    }
}

fn context() -> Context<'static> {
    Context {
        directory: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        temporary: Some(Path::new("/data/attache/scratch/ses_1")),
        disk: &PlainRepository,
        restrictions: &*RESTRICTIONS,
    }
}

fn accesses(command: &str) -> Vec<Access> {
    attache_tools::accesses(read(command, &context()).touches)
}

/// Whether anything in it could not be followed.
fn is_unclear(footprint: &Footprint) -> bool {
    footprint.touches.iter().any(|touch| match touch {
        Touch::Command(command) => matches!(command.nature, Nature::Unclear(_)),
        Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => false,
    })
}

fn workspace() -> Workspace {
    Workspace {
        session_id: SessionId::new("ses_1"),
        root: PathBuf::from("/w"),
        additional: vec![],
        scratch: PathBuf::from("/data/attache/scratch/ses_1"),
        guarded: Arc::new(GUARDED.clone()),
        skills: Default::default(),
    }
}
