//! How fast a process and a session are there, what they weigh, and how fast a short turn is.

use anyhow::Result;

use super::agent::{Home, Prompt};
use super::aims::{self, FIRST_TURNS, IDLE_SESSIONS, NEW_SESSIONS, STARTS, TOOL_TURNS};
use super::driven::Until;
use super::figures::{median_ms, megabytes};
use super::floor::{
    COMMITS_BEFORE_AN_UPDATE, COMMITS_OF_A_SESSION, COMMITS_OF_A_TOOL_ROUND, COMMITS_OF_A_TURN, Floor,
};
use super::raw::{self, Raw};
use super::table::{Limit, Row, Table};
use super::{Place, settle};

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    starts(place, &home, table)?;
    let floor = Floor::measure(place)?;
    new_sessions(&home, "session/new", floor, table)?;
    let knowing = place.home()?;
    knowing.write_skills(SKILLS)?;
    new_sessions(&knowing, "session/new, 3 AGENTS.md and 200 skills", floor, table)?;
    memory(place, table)?;
    short_turns(&home, floor, table)
}

fn starts(place: &Place, home: &Home, table: &mut Table) -> Result<()> {
    let (mut bare, mut used, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    home.start()?.finish()?;
    // In turns, so that a noisy moment hits all of them.
    for _ in 0..STARTS {
        let mut process = Raw::Answer.start()?;
        process.exchange(b"{}\n", Until::Count(1))?;
        bare.push(process.age());
        process.finish()?;
        for (home, times) in [(home, &mut used), (&place.home()?, &mut fresh)] {
            let agent = home.start()?;
            times.push(agent.process().age());
            agent.finish()?;
        }
    }
    let limit = Limit::new(median_ms(&bare)?, "bare process answers a line");
    table.push(Row {
        figure: "start → initialize".into(),
        unit: "ms",
        value: median_ms(&used)?,
        limit: limit.clone(),
        aim: Some(aims::START_MS),
    });
    table.push(Row {
        figure: "start → initialize, the first on a machine".into(),
        unit: "ms",
        value: median_ms(&fresh)?,
        limit,
        aim: None,
    });
    Ok(())
}

/// Skills of a project that has many.
const SKILLS: usize = 200;

fn new_sessions(home: &Home, figure: &str, floor: Floor, table: &mut Table) -> Result<()> {
    let mut agent = home.start()?;
    let mut times = Vec::new();
    for _ in 0..NEW_SESSIONS {
        let (session, exchange) = agent.new_session()?;
        times.push(exchange.time);
        // Not timed: a turn begins when all skills are found, so the next session has the machine to itself.
        agent.prompt(&session, Prompt::OneToken)?;
    }
    agent.finish()?;
    table.push(Row {
        figure: figure.into(),
        unit: "ms",
        value: median_ms(&times)?,
        limit: floor.of_commits(COMMITS_OF_A_SESSION),
        aim: Some(aims::SESSION_NEW_MS),
    });
    Ok(())
}

/// Each session has had a turn: one that was only opened would weigh less.
fn memory(place: &Place, table: &mut Table) -> Result<()> {
    let mut bare = Raw::Answer.start()?;
    bare.exchange(b"{}\n", Until::Count(1))?;
    let limit = Limit::new(megabytes(bare.usage()?.rss_kb), "bare process");
    bare.finish()?;
    let home = place.home()?;
    let mut agent = home.start()?;
    let (mut weights, mut stored) = (Vec::new(), Vec::new());
    for count in 1..=IDLE_SESSIONS {
        let (session, _) = agent.new_session()?;
        agent.prompt(&session, Prompt::OneToken)?;
        if count == 1 || count == IDLE_SESSIONS {
            settle();
            weights.push(agent.usage()?.rss_kb);
            stored.push(raw::used_bytes(&home.database())?);
        }
    }
    agent.finish()?;
    let ([one, many], [few_rows, rows]) = (&weights[..], &stored[..]) else {
        anyhow::bail!("the memory was not read twice");
    };
    for (sessions, weight, aim) in [(1, *one, Some(aims::RSS_MB)), (IDLE_SESSIONS, *many, None)] {
        table.push(Row {
            figure: format!("resident, idle sessions: {sessions}"),
            unit: "MB",
            value: megabytes(weight),
            limit: limit.clone(),
            aim,
        });
    }
    let further = (IDLE_SESSIONS - 1) as f64;
    table.push(Row {
        figure: "each further idle session".into(),
        unit: "KB",
        value: many.saturating_sub(*one) as f64 / further,
        limit: Limit::new(
            rows.saturating_sub(*few_rows) as f64 / 1024.0 / further,
            "its rows in the database",
        ),
        aim: Some(aims::FURTHER_SESSION_KB),
    });
    Ok(())
}

/// The first turn of a session: its admission, its lease and its system prompt are in it.
fn short_turns(home: &Home, floor: Floor, table: &mut Table) -> Result<()> {
    let mut agent = home.start()?;
    let (mut shown, mut answered, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..FIRST_TURNS {
        let (session, _) = agent.new_session()?;
        let turn = agent.prompt(&session, Prompt::OneToken)?;
        shown.push(turn.first_shown);
        answered.push(turn.time);
    }
    for _ in 0..TOOL_TURNS {
        let (session, _) = agent.new_session()?;
        rounds.push(agent.prompt(&session, Prompt::ToolRounds)?.time);
    }
    agent.finish()?;
    let row = |figure: &str, times: &[_], commits, aim| -> Result<Row> {
        let value = median_ms(times)?;
        Ok(Row { figure: figure.into(), unit: "ms", value, limit: floor.of_commits(commits), aim: Some(aim) })
    };
    table.push(row("first update of a turn", &shown, COMMITS_BEFORE_AN_UPDATE, aims::FIRST_UPDATE_MS)?);
    table.push(row("turn of one token", &answered, COMMITS_OF_A_TURN, aims::TURN_MS)?);
    let commits = COMMITS_OF_A_TURN + COMMITS_OF_A_TOOL_ROUND * aims::TOOL_ROUNDS;
    table.push(row("turn of 20 tool rounds", &rounds, commits, aims::TOOL_ROUNDS_MS)?);
    Ok(())
}
