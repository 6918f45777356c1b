//! Where the shell is after `cd`: a directory that is there is entered, and nothing behind it starts from
//! anywhere else.

use std::path::Path;

use attache_shell::{Context, Disk, Touch, read};

use super::context;

/// `src` and `lib` are there, and nothing else.
struct TwoDirectories;

impl Disk for TwoDirectories {
    fn can_be_entered(&self, directory: &Path) -> bool {
        matches!(directory.to_str(), Some("/w" | "/w/src" | "/w/lib" | "/w/src/inner"))
    }
}

fn directories(command: &str) -> Vec<String> {
    let touches = read(command, &Context { disk: &TwoDirectories, ..context() }).touches;
    let of_commands = touches.iter().filter_map(|touch| match touch {
        Touch::Command(command) if command.words[0] == "make" => {
            Some(command.directory.display().to_string())
        }
        Touch::Command(_) | Touch::Read(_) | Touch::Write(_) | Touch::Host(_) => None,
    });
    of_commands.collect()
}

#[test]
fn a_directory_that_is_there_is_entered() {
    for (command, expected) in [
        ("cd src && ls; cd ..; make", &["/w"][..]),
        ("cd src && ls && cd .. && make", &["/w"]),
        ("cd src; cd ..; make", &["/w"]),
        ("cd src || exit 1; cd ..; make", &["/w"]),
        ("if cd src; then ls; fi; cd ..; make", &["/w"]),
        ("cd src && cd inner && ls; cd ../..; make", &["/w"]),
        ("cd src && ls; cd ../lib && ls; cd ..; make", &["/w"]),
        ("{ cd src; ls; }; cd ..; make", &["/w"]),
        // What would run if it failed is judged all the same, where it would run.
        ("cd src || make", &["/w"]),
        ("cd src || make; make", &["/w", "/w/src"]),
    ] {
        assert_eq!(directories(command), expected, "{command}");
    }
    // What has effects may change where the next `cd` leads, but not out of the workspace.
    assert_eq!(directories("cd src && npm test; cd ..; make"), ["/w", "/w/src"]);
}

#[test]
fn a_directory_that_may_not_be_there_may_not_be_entered() {
    for command in [
        "cd out && ls; cd ..; make",
        // It may be gone by then.
        "rm -r src; cd src && ls; cd ..; make",
        "touch x; cd src && ls; cd ..; make",
        "rm -r src & cd src; cd ..; make",
        "make; cd src && ls; cd ..; make",
        // bash takes names away only behind directories, and options only in front.
        "cd missing/../src; cd ..; make",
        "cd src/a.txt/../inner; cd ..; cd ..; make",
        "cd src -L; cd ..; make",
        "cd src --; cd ..; make",
        "pushd -L src; cd ..; make",
        "pushd -e src; cd ..; make",
        // In a loop what follows it runs before it, too.
        "for i in 1 2; do cd src && rm -r ../src; cd ..; make; done",
        "while true; do cd src && rm -r ../src; cd ..; make; done",
    ] {
        let found = directories(command);
        assert!(found.contains(&"/".to_owned()), "{command}: {found:?}");
    }
}
