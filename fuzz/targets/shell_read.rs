//! No text makes the reader of commands panic or change its mind, and what it names are plain paths, never nothing.
#![no_main]

use std::path::Path;

use attache_core::ports::tool::Access;
use attache_core::scope::Guarded;
use attache_tools::programs::Programs;
use attache_tools::shell::{Ground, Keys, Reading, Repository, Tracked, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|command: &str| {
    let reading = reading(command);
    assert_eq!(reading, self::reading(command), "read again");
    assert!(!reading.accesses.is_empty(), "nobody could judge it");
    for access in &reading.accesses {
        let path = match access {
            Access::ReadPath(path) | Access::WritePath(path) => path,
            Access::Command(command) => &command.directory,
            Access::Network { host } => {
                assert!(!host.is_empty(), "a host without a name");
                continue;
            }
        };
        assert!(path.is_absolute() && path.iter().all(|name| name != ".."), "{path:?}");
    }
});

fn reading(command: &str) -> Reading {
    let guarded = Guarded::new(Some("/home/u".into()), vec!["/data/attache".into()]);
    let programs = Programs::default();
    let ground = Ground {
        directory: Path::new("/w"),
        home: Some(Path::new("/home/u")),
        temporary: None,
        programs: &programs,
        repository: |_| Repository::Plain,
        tracked: |_, _| Tracked::Below("/w".into()),
        guarded: &guarded,
        keys: |_| Keys::Unseen,
        closed: None,
        links: |_, _| Vec::new(),
        elsewhere: |_, _| None,
    };
    read(command, &ground)
}
