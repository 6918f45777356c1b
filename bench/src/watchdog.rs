//! What a command costs before it runs: it is read and judged. The commands are those of the reviewed corpus.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attache_core::ids::SessionId;
use attache_core::ports::tool::{Effect, Workspace};
use attache_core::scope::Guarded;
use attache_core::watchdog::{
    Action, Approval, Commands, Containment, Judge, Matter, PatternBase, Rulebook, Rules,
};
use attache_shell::{self as shell, Disk, Repository, Tracked};
use attache_tools::RestrictionsOfSession;

use super::Place;
use super::aims::{VERDICT_MICROSECONDS, VERDICTS};
use super::figures::{median, microseconds};
use super::table::{Row, Table};

const CORPUS: &str = include_str!("../../crates/shell/tests/corpus.tsv");

pub(crate) fn measure(_: &Place, table: &mut Table) -> Result<()> {
    let commands = commands()?;
    let workspace = workspace();
    let rules = Rulebook::new(
        &[],
        &[],
        &Rules::default(),
        PatternBase { root: &workspace.root, home: Some(Path::new(HOME)) },
    );
    let judge = Judge {
        rules: &rules,
        commands: Commands::Any,
        approval: Approval::Ask,
        containment: &Containment::Full.into(),
        workspace: &workspace,
        granted: &[],
    };
    let mut times = Vec::new();
    for (command, expected) in &commands {
        times.push(verdict_time(command, *expected, &judge)?);
    }
    table.push(Row {
        figure: "verdict on a command, median of the corpus".to_owned(),
        unit: "µs",
        value: microseconds(median(&times)?),
        limit: None,
        aim: Some(VERDICT_MICROSECONDS),
    });
    let longest = times.iter().max().copied().context("the corpus is empty")?;
    table.push(Row {
        figure: "verdict on a command, longest of the corpus".to_owned(),
        unit: "µs",
        value: microseconds(longest),
        limit: None,
        aim: None,
    });
    Ok(())
}

/// The middle of some; the first loads grammar and tables and is not counted.
fn verdict_time(command: &str, expected: Action, judge: &Judge<'_>) -> Result<Duration> {
    let restrictions = RestrictionsOfSession { guarded: &judge.workspace.guarded, closed: None };
    let context = shell::Context {
        directory: Path::new(ROOT),
        home: Some(Path::new(HOME)),
        temporary: Some(Path::new(SCRATCH)),
        disk: &PlainRepository,
        restrictions: &restrictions,
    };
    let mut times = Vec::new();
    for _ in 0..=VERDICTS {
        let started = Instant::now();
        let footprint = shell::read(black_box(command), &context);
        let accesses = attache_tools::accesses(footprint.touches);
        let matter = Matter { tool: "bash", effect: Effect::Mutates, accesses: &accesses };
        let action = judge.judge(&matter).verdict.action;
        times.push(started.elapsed());
        ensure!(action == expected, "{command:?}: {}, not {}", action.as_str(), expected.as_str());
    }
    median(&times[1..])
}

/// A plain repository that tracks nothing; nothing else is there.
struct PlainRepository;

impl Disk for PlainRepository {
    fn repository(&self, _: &Path) -> Repository {
        Repository::Plain
    }

    fn tracked(&self, _: &Path, _: &mut dyn FnMut(&Path)) -> Tracked {
        Tracked::Below(ROOT.into())
    }
}

const ROOT: &str = "/w";
const HOME: &str = "/home/u";
const SCRATCH: &str = "/data/attache/scratch/ses_1";

fn workspace() -> Workspace {
    Workspace {
        session_id: SessionId::new("ses_1"),
        root: ROOT.into(),
        additional: Vec::new(),
        scratch: SCRATCH.into(),
        guarded: Arc::new(Guarded::new(Some(HOME.into()), vec!["/data/attache".into()])),
        skills: Default::default(),
    }
}

/// The commands with their verdicts. Lines are `class, verdict, command`; how commands are escaped is told at
/// the top.
fn commands() -> Result<Vec<(String, Action)>> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut columns = line.splitn(3, '\t').skip(1);
            let (verdict, command) = columns.next().zip(columns.next()).context("a line without columns")?;
            let verdict = Action::parse(verdict).with_context(|| format!("no verdict: {line}"))?;
            Ok((unescaped(command).with_context(|| format!("an unknown escape: {line}"))?, verdict))
        })
        .collect()
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next()? {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                '\\' => plain.push('\\'),
                '{' => {
                    let count: String = rest.by_ref().take_while(|character| *character != '}').collect();
                    let count: usize = count.strip_suffix(" spaces")?.parse().ok()?;
                    plain.extend(std::iter::repeat_n(' ', count));
                }
                _ => return None,
            },
            character => plain.push(character),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_read_as_its_own_test_reads_it() {
        assert!(commands().unwrap().len() >= 1_000);
        assert_eq!(unescaped(r"a\\\n\{3 spaces}b"), Some("a\\\n   b".to_owned()));
        assert_eq!(unescaped(r"\q"), None);
    }
}
