//! No text makes the reader of commands panic or change its mind, and what it names are plain paths, never
//! nothing.
#![no_main]

use std::path::{Path, PathBuf};

use attache_shell::{Context, Disk, Footprint, Repository, Restrictions, Touch, Tracked, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|command: &str| {
    let footprint = footprint(command);
    assert_eq!(footprint, self::footprint(command), "read again");
    assert!(!footprint.touches.is_empty(), "nothing to decide about");
    for touch in &footprint.touches {
        let path = match touch {
            Touch::Read(path) | Touch::Write(path) => path,
            Touch::Command(command) => &command.directory,
            Touch::Host(host) => {
                assert!(!host.is_empty(), "a host without a name");
                continue;
            }
        };
        assert!(path.is_absolute() && path.iter().all(|name| name != ".."), "{path:?}");
    }
});

fn footprint(command: &str) -> Footprint {
    let context = Context {
        directory: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        temporary: None,
        disk: &PlainRepository,
        restrictions: &SecretHome,
    };
    read(command, &context)
}

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

struct SecretHome;

impl Restrictions for SecretHome {
    fn secret_names(&self) -> &[&str] {
        &["id_rsa"]
    }

    fn hidden_paths(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        Box::new(std::iter::once(PathBuf::from("/home/u/.ssh")))
    }

    fn hides(&self, path: &Path) -> bool {
        path.starts_with("/home/u/.ssh")
    }

    fn protects(&self, path: &Path) -> bool {
        self.hides(path) || path.starts_with("/w/.git")
    }

    fn has_rules(&self) -> bool {
        true
    }

    fn keeps(&self, file: &Path, _: &Path) -> bool {
        file.starts_with("/w/private")
    }

    fn denies(&self, file: &Path) -> bool {
        file.starts_with("/w/private")
    }
}
