//! Agents of Python behind attache, beside the packages that serve the very same agents over ACP: start, a long
//! answer, memory, the five hundredth turn, a load; and what each delta costs that goes through attache.

mod servers;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memchr::memmem;

use super::agent::{Agent, Prompt};
use super::aims::{self, Aim, FOREIGN_STARTS, FOREIGN_TURNS, FOREIGN_WARM_TURNS};
use super::figures::{median, megabytes, microseconds, milliseconds};
use super::table::{Limit, Row, Table};
use super::usage::Usage;
use super::{Place, settle};
use servers::{DELTA, Framework, PIPE_MARK, Packages, ServedBy};

/// What one way to serve an agent takes.
#[derive(Debug)]
struct Served {
    start: Duration,
    /// Of the long answer.
    time: Duration,
    /// Of all processes, for the long answer.
    cpu: Duration,
    /// Of attache's own process, for the long answer.
    own_cpu: Duration,
    rss_kb: u64,
    first_turn: Duration,
    last_turn: Duration,
    load: Duration,
}

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let Some(packages) = Packages::find(place.target()) else {
        eprintln!("   left out: peers/python-agents is not installed; `cargo xtask peers` does that");
        return Ok(());
    };
    for framework in Framework::ALL {
        let ours = served(place, &packages, framework, ServedBy::Attache)?;
        let rival = served(place, &packages, framework, ServedBy::Rival)?;
        let bare = bare(place, &packages, framework)?;
        compare(framework, &ours, &rival, table);
        cost(framework, &ours, bare, table);
    }
    Ok(())
}

fn served(place: &Place, packages: &Packages, framework: Framework, by: ServedBy) -> Result<Served> {
    let home = place.home_with(&packages.configuration(framework))?;
    let mut starts = Vec::new();
    for _ in 0..FOREIGN_STARTS {
        let started = Instant::now();
        let (mut agent, session) = opened(packages, &home, framework, by)?;
        agent.prompt(&session, Prompt::OneToken)?;
        starts.push(started.elapsed());
        agent.end()?;
    }
    let (mut agent, session) = opened(packages, &home, framework, by)?;
    let prompt = Prompt::Deltas(framework.deltas());
    let mut shown = Vec::new();
    agent.prompt_recorded(&session, prompt, &mut shown)?;
    let found = memmem::find_iter(&shown, DELTA.as_bytes()).count() as u64;
    ensure!(found == framework.deltas(), "{found} of {} deltas were shown", framework.deltas());
    settle();
    let before = (Usage::of_tree(agent.process().id())?, agent.usage()?);
    let turn = agent.prompt(&session, prompt)?;
    settle();
    let after = (Usage::of_tree(agent.process().id())?, agent.usage()?);
    let (session, _) = agent.new_session()?;
    let mut turns = Vec::new();
    for _ in 0..FOREIGN_TURNS {
        turns.push(agent.prompt(&session, Prompt::OneToken)?.time);
    }
    let load = load(packages, &home, (framework, by), (agent, &session))?;
    Ok(Served {
        start: median(&starts)?,
        time: turn.time,
        cpu: after.0.cpu.saturating_sub(before.0.cpu),
        own_cpu: after.1.cpu.saturating_sub(before.1.cpu),
        rss_kb: after.0.rss_kb,
        first_turn: median(&turns[1..=FOREIGN_WARM_TURNS])?,
        last_turn: median(&turns[turns.len() - FOREIGN_WARM_TURNS..])?,
        load,
    })
}

/// Of all those turns: by attache in a new process, by others in the one that has them.
fn load(
    packages: &Packages,
    home: &super::agent::Home,
    (framework, by): (Framework, ServedBy),
    (mut agent, session): (Agent, &str),
) -> Result<Duration> {
    if by == ServedBy::Attache {
        agent.end()?;
        agent = packages.start(home, framework, by)?;
    }
    let mut shown = Vec::new();
    let loaded = agent.load_session(session, &mut shown)?;
    let updates = usize::try_from(loaded.updates)?;
    ensure!(updates >= 2 * FOREIGN_TURNS, "{updates} updates are no load of {FOREIGN_TURNS} turns");
    agent.end()?;
    Ok(loaded.time)
}

fn opened(
    packages: &Packages,
    home: &super::agent::Home,
    framework: Framework,
    by: ServedBy,
) -> Result<(Agent, String)> {
    let mut agent = packages.start(home, framework, by)?;
    let (session, _) = agent.new_session()?;
    Ok((agent, session))
}

/// The long answer of the agent's process alone, line by line from its pipe.
fn bare(place: &Place, packages: &Packages, framework: Framework) -> Result<Duration> {
    let home = place.home()?;
    let mut process = packages.start_bare(&home, framework)?;
    let mut times = Vec::new();
    for number in 0..2 {
        let line = packages.bare_run(&home, framework, number);
        times.push(process.exchange(line.as_bytes(), PIPE_MARK)?.time);
    }
    process.kill()?;
    // The first one imports what the framework imports late.
    Ok(times[1])
}

fn compare(framework: Framework, ours: &Served, rival: &Served, table: &mut Table) {
    let (name, rival_name, deltas) = (framework.name(), framework.rival(), framework.deltas());
    let mut row = |figure: String, unit: &'static str, of: &dyn Fn(&Served) -> f64| {
        let (value, limit) = (of(ours), of(rival));
        table.push(Row {
            figure: format!("{name}: {figure}"),
            unit,
            value,
            limit: Limit::new(limit, rival_name),
            aim: Some(Aim::Below(limit)),
        });
    };
    row("start to the first answer".into(), "ms", &|served| milliseconds(served.start));
    row(format!("{deltas} deltas"), "ms", &|served| milliseconds(served.time));
    row(format!("CPU for {deltas} deltas, all processes"), "ms", &|served| milliseconds(served.cpu));
    row("memory after them, all processes".into(), "MB", &|served| megabytes(served.rss_kb));
    row("turn 500".into(), "ms", &|served| milliseconds(served.last_turn));
    row("turn 500 to turn 1".into(), "times", &|served| {
        served.last_turn.as_secs_f64() / served.first_turn.as_secs_f64()
    });
    row("session/load of 1,000 messages".into(), "ms", &|served| milliseconds(served.load));
}

/// What attache adds to each delta.
fn cost(framework: Framework, ours: &Served, bare: Duration, table: &mut Table) {
    let (name, deltas) = (framework.name(), framework.deltas() as f64);
    let added = ours.time.saturating_sub(bare);
    for (figure, time) in [("time that attache adds", added), ("CPU of attache's own process", ours.own_cpu)]
    {
        table.push(Row {
            figure: format!("{name}: {figure}, each delta"),
            unit: "µs",
            value: microseconds(time) / deltas,
            limit: Limit::new(microseconds(bare) / deltas, "the agent's process alone, read line by line"),
            aim: Some(aims::FOREIGN_DELTA_MICROSECONDS),
        });
    }
}
