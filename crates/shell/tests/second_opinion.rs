//! Another parser of bash reads the corpus too: it finds the commands that ours finds, or the difference has a
//! reason.

use std::collections::BTreeSet;

use super::{brush, corpus, footprint, is_unclear};

/// To a parser these are programs with words; ours looks at the command in their words.
const RUNNERS: &[&str] = &[
    "bash", "builtin", "command", "dash", "doas", "env", "eval", "exec", "find", "ionice", "nice", "nohup",
    "setsid", "sh", "stdbuf", "sudo", "time", "timeout", "watch", "xargs", "zsh",
];

/// Lines where ours names less than the text has, each with its reason.
const NOT_REACHED: &[(&str, &str)] = &[
    ("f() { ls \"$1\"; }; echo defined", "nobody calls the function"),
    (
        "(f() { ls; }); f",
        "the function ends with its subshell; what is called is another program of that name",
    ),
];

#[test]
fn another_parser_finds_the_same_commands() {
    let mut compared = 0;
    let mut different = Vec::new();
    for line in corpus::lines() {
        let ours = footprint(&line.command);
        if is_unclear(&ours) {
            continue;
        }
        let Some(theirs) = brush::opinion(&line.command) else { continue };
        compared += 1;
        let ours: BTreeSet<String> = ours.programs.into_iter().collect();
        let runs_others = theirs.open || RUNNERS.iter().any(|name| names(&theirs.names, name));
        let missing: Vec<_> = theirs.names.difference(&ours).collect();
        let added: Vec<_> = ours.difference(&theirs.names).filter(|_| !runs_others).collect();
        let explained = NOT_REACHED.iter().any(|(command, _)| *command == line.command);
        if explained == missing.is_empty() || !added.is_empty() {
            different.push(format!("{:?}: missing {missing:?}, added {added:?}", line.command));
        }
    }
    assert!(different.is_empty(), "{} of {compared}:\n{}", different.len(), different.join("\n"));
    // Most of the corpus; the rest is unclear to us on purpose, or beyond the other parser.
    assert!(compared >= 1_000, "only {compared} lines were compared");
}

fn names(found: &BTreeSet<String>, name: &str) -> bool {
    found.iter().any(|found| found.rsplit('/').next() == Some(name))
}
