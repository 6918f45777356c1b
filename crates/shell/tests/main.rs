//! What the reader of shell commands says, command by command, against reviewed data.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod brush;
mod commands;
mod corpus;
mod directories;
mod network;
mod only_reads;
mod properties;
mod second_opinion;
mod secrets;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use attache_shell::{
    Context, Disk, EntryKind, Footprint, Nature, Repository, Restrictions, Touch, Tracked, read,
};

/// A plain repository that tracks nothing, and private keys where a test wants some.
struct FakeDisk {
    has_key: fn(&Path) -> bool,
}

impl Disk for FakeDisk {
    fn entries(&self, directory: &Path, visit: &mut dyn FnMut(&OsStr, EntryKind) -> ControlFlow<()>) {
        if (self.has_key)(directory) {
            let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
                visit(OsStr::new("id_rsa"), EntryKind::File);
        }
    }

    fn repository(&self, _: &Path) -> Repository {
        Repository::Plain
    }

    fn tracked(&self, _: &Path, _: &mut dyn FnMut(&Path)) -> Tracked {
        Tracked::Below("/w".into())
    }
}

/// Keys by their names, and two places in the home.
struct FakeRestrictions;

const HIDDEN: [&str; 2] = ["/home/u/.ssh", "/home/u/.netrc"];

impl Restrictions for FakeRestrictions {
    fn secret_names(&self) -> &[&str] {
        &["id_rsa", "id_ed25519"]
    }

    fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        Box::new(HIDDEN.iter().map(PathBuf::from))
    }

    fn hides(&self, path: &Path) -> bool {
        HIDDEN.iter().any(|hidden| path.starts_with(hidden))
    }

    fn protects(&self, path: &Path) -> bool {
        self.hides(path)
    }

    fn has_rules(&self) -> bool {
        false
    }

    fn keeps(&self, _: &Path, _: &Path) -> bool {
        false
    }

    fn denies(&self, _: &Path) -> bool {
        false
    }
}

fn context() -> Context<'static> {
    Context {
        directory: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        temporary: Some(Path::new("/data/attache/scratch/ses_1")),
        disk: &FakeDisk { has_key: |_| false },
        restrictions: &FakeRestrictions,
    }
}

fn footprint(command: &str) -> Footprint {
    read(command, &context())
}

/// Whether anything in it could not be followed.
fn is_unclear(footprint: &Footprint) -> bool {
    footprint.touches.iter().any(|touch| match touch {
        Touch::Command(command) => matches!(command.nature, Nature::Unclear(_)),
        Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => false,
    })
}

#[test]
fn the_corpus_is_large_and_repeats_nothing() {
    let lines = corpus::lines();
    let commands: HashSet<&str> = lines.iter().map(|line| line.command.as_str()).collect();
    assert_eq!(commands.len(), lines.len());
    assert!(lines.len() >= 1_000, "{}", lines.len());
    for line in &lines {
        assert!(!line.class.is_empty(), "{}", line.command);
        assert!(matches!(line.verdict.as_str(), "allow" | "ask" | "deny"), "{}", line.command);
    }
}

/// What an interpreter reads from a here-document, with and without the word that says so.
#[test]
fn a_dash_before_a_here_document_changes_nothing() {
    for (with, without) in [
        ("python3 - <<'PY'\nprint(1)\nPY", "python3 <<'PY'\nprint(1)\nPY"),
        ("cd src && python3 - <<'PY'\nprint(1)\nPY", "cd src && python3 <<'PY'\nprint(1)\nPY"),
        ("cat - <<'E' > out\nx\nE", "cat <<'E' > out\nx\nE"),
    ] {
        let (with, without) = (footprint(with), footprint(without));
        assert!(!is_unclear(&with), "{with:?}");
        assert_eq!(natures(&with), natures(&without));
    }
}

fn natures(footprint: &Footprint) -> Vec<Nature> {
    let nature = |touch: &Touch| match touch {
        Touch::Command(command) => Some(command.nature.clone()),
        Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => None,
    };
    footprint.touches.iter().filter_map(nature).collect()
}
