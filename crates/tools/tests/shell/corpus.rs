//! Every command of the corpus gets the verdict that is written beside it.

use std::collections::HashSet;

use attache_core::ports::tool::{Access, Effect};
use attache_core::watchdog::{Action, Approval, Containment, Ground, Judge, Matter, Rulebook, Rules};

use super::{accesses, workspace};

pub(super) struct Line {
    pub(super) class: String,
    pub(super) verdict: String,
    pub(super) command: String,
}

pub(super) fn lines() -> Vec<Line> {
    let text = include_str!("corpus.tsv");
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

fn line(line: &str) -> Line {
    let mut columns = line.splitn(3, '\t');
    let mut next = || columns.next().unwrap_or_else(|| panic!("three columns: {line}")).to_owned();
    Line { class: next(), verdict: next(), command: unescaped(&next()) }
}

pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some('{') => {
                    let count: String =
                        characters.by_ref().take_while(|character| *character != '}').collect();
                    let count: usize = count.split(' ').next().unwrap().parse().unwrap();
                    plain.push_str(&" ".repeat(count));
                }
                Some(other) => plain.push(other),
                None => panic!("an escape at the end of {text}"),
            },
            (character, false) => plain.push(character),
        }
    }
    plain
}

/// Asked of the judge that the product asks: approval `ask`, a sandbox in force.
fn with_judge<T>(session: &Rules, accesses: &[Access], then: impl Fn(&Judge<'_>, &Matter<'_>) -> T) -> T {
    let workspace = workspace();
    let ground = Ground { root: &workspace.root, home: None };
    let judge = Judge {
        rules: &Rulebook::new(&[], &[], session, ground),
        approval: Approval::Ask,
        containment: &Containment::Full.into(),
        workspace: &workspace,
        granted: &[],
    };
    then(&judge, &Matter { tool: "bash", effect: Effect::Mutates, accesses })
}

fn verdict(accesses: &[Access], session: &Rules) -> &'static str {
    with_judge(session, accesses, |judge, matter| judge.judge(matter).verdict.action.as_str())
}

#[test]
fn every_command_gets_the_verdict_written_beside_it() {
    let wrong: Vec<String> = lines()
        .iter()
        .filter_map(|line| {
            let found = accesses(&line.command);
            let said = verdict(&found, &Rules::default());
            (said != line.verdict).then(|| {
                format!("[{}] {:?}: {said}, not {}: {found:?}", line.class, line.command, line.verdict)
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_is_large_and_repeats_nothing() {
    let lines = lines();
    let commands: HashSet<&str> = lines.iter().map(|line| line.command.as_str()).collect();
    assert_eq!(commands.len(), lines.len());
    assert!(lines.len() >= 1_000, "{}", lines.len());
}

/// The rules that an "always" answer makes of a command; none where it is not offered.
fn always(command: &str) -> Rules {
    let mut rules = Rules::default();
    let always = with_judge(&rules, &accesses(command), |judge, matter| judge.always(matter));
    for rule in always.iter().flat_map(|always| always.rules(Action::Allow)) {
        rules.add(rule);
    }
    rules
}

#[test]
fn after_always_the_next_similar_command_is_not_asked_about() {
    for (first, next, expected) in [
        ("cargo test", "cargo test -p core --lib", "allow"),
        ("cargo test -p core", "timeout 60 cargo test", "allow"),
        ("cargo test", "cargo publish", "ask"),
        ("cargo build && cargo test", "cargo test --all && cargo build --release", "allow"),
        ("npm run build", "npm run build -- --watch", "allow"),
        ("npm run build", "npm run deploy", "ask"),
        ("git commit -m one", "git commit -m 'two; three'", "allow"),
        ("git commit -m x", "git push", "ask"),
        ("git push", "git push origin main", "allow"),
        ("git add .", "cd src && git add -A", "allow"),
        ("make test", "make test -j8", "allow"),
        ("make test", "make install", "ask"),
        ("pytest -q", "pytest tests/a.py", "allow"),
        ("python3 -m pytest", "python3 -m pytest -x", "allow"),
        ("python3 -m pytest", "python3 -m pip install x", "ask"),
        ("python3 -c 'print(1)'", "python3 -c 'print(2)'", "ask"),
        ("bash a.sh", "bash b.sh", "ask"),
        ("sudo ls", "sudo ls", "ask"),
        ("curl https://a.org", "curl https://b.org", "ask"),
        ("cat x | sh", "cat y | sh", "ask"),
        ("go test ./...", "go test -run X ./pkg", "allow"),
        ("FOO=1 cargo test", "cargo test", "ask"),
        ("cargo test", "FOO=1 cargo test", "ask"),
        ("cargo test", "cargo test; rm -rf /w/src", "ask"),
        ("cargo test", "cargo test $(rm a)", "ask"),
        ("cargo test", "RUSTC_WRAPPER=./x cargo test", "ask"),
        ("npm install", "npm install lodash", "allow"),
        ("tar xf a.tar", "tar xzf b.tgz", "allow"),
        ("tar xf a.tar", "tar xf b.tar --to-command=sh", "ask"),
        ("tar xf a.tar", "tar cf b.tar /etc/hosts", "ask"),
        ("tar xf a.tar", "tar xf b.tar -C /opt", "ask"),
        ("rustfmt src/a.rs", "rustfmt src/b.rs", "allow"),
        ("rustfmt src/a.rs", "rustfmt /opt/b.rs", "ask"),
        ("sqlite3 a.db .tables", "sqlite3 /opt/b.db .tables", "ask"),
        ("git -C sub push", "git push", "allow"),
    ] {
        assert_eq!(verdict(&accesses(next), &always(first)), expected, "{first:?}, then {next:?}");
    }
}
