//! Every command of the corpus gets the verdict that is written beside it.

use std::collections::HashSet;

use attache_core::ports::tool::{Access, Effect};
use attache_core::watchdog::{
    Action, Approval, Commands, Containment, Ground, Judge, Matter, Rulebook, Rules,
};

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
        commands: Commands::Any,
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
        ("tar xf a.tar", "tar xzf b.tgz", "ask"),
        ("tar xf a.tar", "tar xf b.tar --to-command=sh", "ask"),
        ("tar xf a.tar", "tar cf b.tar /etc/hosts", "ask"),
        ("tar xf a.tar", "tar xf b.tar -C /opt", "ask"),
        ("rustfmt src/a.rs", "rustfmt src/b.rs", "allow"),
        ("rustfmt src/a.rs", "rustfmt /opt/b.rs", "ask"),
        ("sqlite3 a.db .tables", "sqlite3 /opt/b.db .tables", "ask"),
        ("git -C sub push", "git push", "allow"),
        // What a program can be made to do beside is not covered.
        ("sed -i s/a/b/ a", "sed -i s/c/d/ a", "allow"),
        ("sed -i s/a/b/ a", "sed -i 's/a/b/e' a", "ask"),
        ("sed -i s/a/b/ a", "sed -i 's/a/b/w x' a", "ask"),
        ("git bisect start", "git bisect run sh x", "ask"),
        ("git rebase main", "git rebase dev", "allow"),
        ("git rebase main", "git rebase main --exec 'sh x'", "ask"),
        ("git rebase main", "git rebase -i -x 'sh x' main", "ask"),
        ("git push", "git push --receive-pack='sh x' origin", "ask"),
        ("git frob a", "git frob b", "ask"),
        ("cargo test", "cargo test --config 'build.rustc=\"./x\"'", "ask"),
        ("go test ./...", "go test -exec ./x ./...", "ask"),
        ("make test", "make -f x test", "ask"),
        ("make -f x a", "make -f x b", "ask"),
        ("find . -name a -delete", "find . -delete", "ask"),
        ("docker compose up", "docker compose exec a sh", "ask"),
        ("docker compose up", "docker compose up -d", "allow"),
        ("sqlite3 a.db .tables", "sqlite3 a.db '.shell sh'", "ask"),
        ("psql -c 'select 1'", "psql -c '\\! sh'", "ask"),
        ("gcc a.c", "gcc a.c -wrapper sh,-c", "ask"),
        ("man ls", "man -P sh ls", "ask"),
        // Interpreters by any name, however they are reached.
        ("python3.12 a.py", "python3.12 b.py", "ask"),
        ("python3.12 a.py", "python3.12 a.py", "allow"),
        ("python3.12 -m pytest", "python3.12 -m pytest -x", "allow"),
        ("python3.12 -m pytest", "python3.12 -m timeit x", "ask"),
        ("python3 -m timeit x", "python3 -m timeit y", "ask"),
        ("pypy3.10 -c a", "pypy3.10 -c b", "ask"),
        ("lua5.4 a.lua", "lua5.4 b.lua", "ask"),
        ("tsx a.ts", "tsx b.ts", "ask"),
        ("uv run pytest", "uv run pytest -x", "allow"),
        ("uv run pytest", "uv run python -c x", "ask"),
        ("uv run python a.py", "uv run python b.py", "ask"),
        ("npx jest", "npx jest -t a", "allow"),
        ("npx jest", "npx -c 'sh x'", "ask"),
        ("npx frob a", "npx frob b", "ask"),
        // Programs that nobody described: this line, with this input.
        ("frob a", "frob a", "allow"),
        ("frob a", "frob b", "ask"),
        ("./build.sh a", "./build.sh b", "ask"),
        ("cat a | ./x", "cat a | ./x", "allow"),
        ("cat a | ./x", "cat b | ./x", "ask"),
        ("./x", "cat b | ./x", "ask"),
        ("./x <<< a", "./x <<< b", "ask"),
        ("./x <<E\na\nE", "./x <<E\nb\nE", "ask"),
        ("./x < a", "./x < b", "ask"),
        ("{ ./x; } < a", "{ ./x; } < b", "ask"),
        ("exec < a; ./x", "exec < b; ./x", "ask"),
        ("git apply <<< a", "git apply <<< b", "ask"),
        ("make test | tee out.log", "make test | tail -5 | tee out.log", "allow"),
        // Where people need it.
        ("source .venv/bin/activate && pytest", "source .venv/bin/activate && pytest -x tests", "allow"),
        ("source .venv/bin/activate && pytest", ". evil/bin/activate && pytest", "ask"),
        ("source .venv/bin/activate", "source .venv/bin/activate && ls", "ask"),
        ("PYTHONPATH=src pytest", "PYTHONPATH=src pytest -q", "allow"),
        ("PYTHONPATH=src pytest", "PYTHONPATH=evil pytest", "ask"),
        ("pytest", "PYTHONPATH=src pytest", "ask"),
        (".venv/bin/pytest -q", ".venv/bin/pytest tests", "allow"),
        (".venv/bin/pytest -q", ".venv/bin/python x", "ask"),
        ("pytest > $TMPDIR/log", "pytest -x > $TMPDIR/other", "allow"),
        ("cp a $TMPDIR/a", "cp b \"$TMPDIR/b\"", "allow"),
    ] {
        assert_eq!(verdict(&accesses(next), &always(first)), expected, "{first:?}, then {next:?}");
    }
}
