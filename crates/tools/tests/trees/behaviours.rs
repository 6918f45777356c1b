//! What commands do to stay: shell texts that leave processes behind in every way that is known. Runs none of
//! them.

use attache_sandbox::Level;

/// Stands for the mark that all processes of one run carry, among their arguments or in their environment.
const MARK: &str = "MARK";

/// A command that leaves something running. Each text makes a file `ready` when that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    pub(super) output: Output,
    text: Text,
}

/// Whether what is left running keeps the command's output open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Held,
    Let,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    Everywhere(&'static str),
    /// Where processes are counted it may be the real thing; elsewhere it must stop by itself, for the
    /// machine's sake.
    Bomb {
        counted: &'static str,
        bounded: &'static str,
    },
}

/// What the shell itself does after it has left something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    Stays,
    /// Until its owner is gone: nothing of it may end before by itself or by count.
    StaysForItsOwner,
    Exits,
}

pub(super) const BEHAVIOURS: [Behaviour; 10] = [
    Behaviour {
        name: "ignores TERM",
        output: Output::Let,
        text: Text::Everywhere("trap '' TERM; (touch ready; sleep MARK; sleep MARK) >/dev/null 2>&1 &"),
    },
    Behaviour {
        name: "forks twice",
        output: Output::Let,
        text: Text::Everywhere("( ( (touch ready; exec sleep MARK) & ) & ) >/dev/null 2>&1"),
    },
    Behaviour {
        name: "leaves session, directory and environment",
        output: Output::Let,
        text: Text::Everywhere(
            "setsid env -i PATH=\"$PATH\" bash -c \
             '(cd /; setsid sleep MARK &); touch ready; cd /; exec sleep MARK' >/dev/null 2>&1 &",
        ),
    },
    Behaviour {
        name: "keeps the pipe open",
        output: Output::Held,
        text: Text::Everywhere("(touch ready; exec sleep MARK) &"),
    },
    Behaviour {
        name: "is a fork bomb",
        output: Output::Let,
        // Begins behind the end of the shell where that ends, so that it is known what is told of it.
        text: Text::Bomb {
            counted: "f() { f | f & }; (touch ready; while kill -0 $$ && [ -e exits ]; do sleep 0.01; done; f) \
                      >/dev/null 2>&1 &",
            bounded: "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) | f $(($1 - 1)) & fi; sleep MARK; }; \
                      (f 6 & touch ready) >/dev/null 2>&1 &",
        },
    },
    Behaviour {
        name: "hops from session to session",
        output: Output::Let,
        text: Text::Everywhere(
            "echo 'sleep 0.01; touch ready; setsid bash hop MARK &' > hop; \
             for i in 1 2 3 4; do bash hop MARK >/dev/null 2>&1 & done",
        ),
    },
    Behaviour {
        name: "floods",
        output: Output::Held,
        text: Text::Everywhere("(touch ready; exec yes MARK) &"),
    },
    Behaviour {
        name: "writes a line of 10 GB",
        output: Output::Held,
        text: Text::Everywhere("(touch ready; exec head -c 10G /dev/zero) | tr '\\0' x &"),
    },
    Behaviour {
        name: "reads its input",
        output: Output::Let,
        text: Text::Everywhere(
            "cat; read answer; (bash -c 'cat; read answer; touch ready; sleep MARK') >/dev/null 2>&1 <&0 &",
        ),
    },
    Behaviour {
        name: "opens a terminal",
        output: Output::Let,
        // Where no terminal can be had the rest goes on without one.
        text: Text::Everywhere(
            "(: </dev/tty) 2>/dev/null; (script -qc 'touch ready; sleep MARK' /dev/null || \
             { touch ready; exec sleep MARK; }) >/dev/null 2>&1 &",
        ),
    },
];

impl Behaviour {
    pub(super) fn of_name(name: &str) -> Self {
        *BEHAVIOURS.iter().find(|behaviour| behaviour.name == name).unwrap()
    }

    /// Whether the sandbox ends it before anybody else does.
    pub(super) fn is_counted_out(&self, level: Level) -> bool {
        matches!(self.text, Text::Bomb { .. }) && level == Level::Full
    }

    /// The whole command. A shell that exits makes a file `ended` before.
    pub(super) fn command(&self, level: Level, shell: Shell, mark: &str) -> String {
        let text = match (self.text, shell) {
            (Text::Everywhere(text), _) => text,
            (Text::Bomb { counted, .. }, Shell::Stays | Shell::Exits) if self.is_counted_out(level) => {
                counted
            }
            (Text::Bomb { bounded, .. }, _) => bounded,
        };
        let (before, after) = match shell {
            Shell::Stays | Shell::StaysForItsOwner => ("", "wait; sleep MARK; sleep MARK"),
            Shell::Exits => ("touch exits;", "until [ -e ready ]; do sleep 0.01; done; touch ended"),
        };
        format!("export TREE=MARK; {before} {text}\n{after}").replace(MARK, mark)
    }
}
