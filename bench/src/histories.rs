//! Long conversations: how fast they are loaded, in how much memory, and whether turns slow down.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memchr::memmem;

use super::agent::{Agent, Home, Prompt};
use super::aims::{
    self, Aim, COMPARED_TURNS, HISTORY_TURNS, LARGE_TURNS, LOADED_TURNS, LOADS, LONG_SESSION_TURNS,
    PART_LOADS, PART_TURNS, PARTS_PER_TURN,
};
use super::driven::Until;
use super::figures::{median, median_ms, megabytes, milliseconds};
use super::floor::{COMMITS_OF_A_TURN, Floor};
use super::raw::{self, Raw};
use super::table::{Limit, Row, Table};
use super::{Place, settle};

/// A conversation to be loaded.
struct Conversation<'a> {
    name: &'a str,
    session: &'a str,
    loads: usize,
    /// Fewer updates than this would be another conversation.
    least_updates: usize,
    aim: Aim,
}

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    let session = many_turns(&home, LOADED_TURNS)?;
    let messages = Conversation {
        name: "session/load of 1,000 messages",
        session: &session,
        loads: LOADS,
        least_updates: 2 * LOADED_TURNS,
        aim: aims::LOAD_MESSAGES_MS,
    };
    loads(&home, &messages, table)?;
    let session = many_parts(&home)?;
    let parts = Conversation {
        name: "session/load of 100,000 parts",
        session: &session,
        loads: PART_LOADS,
        least_updates: PART_TURNS * PARTS_PER_TURN,
        aim: aims::LOAD_PARTS_MS,
    };
    loads(&home, &parts, table)?;
    growth(&home, Floor::measure(place)?, table)?;
    large_history(&home, table)?;
    long_session(&home, table)
}

fn many_turns(home: &Home, turns: usize) -> Result<String> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    for _ in 0..turns {
        agent.prompt(&session, Prompt::OneToken)?;
    }
    agent.finish()?;
    Ok(session)
}

fn many_parts(home: &Home) -> Result<String> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    for _ in 0..PART_TURNS {
        agent.prompt(&session, Prompt::Parts)?;
    }
    agent.finish()?;
    Ok(session)
}

/// Each in a new process: what was cached by the writer of the conversation does not help.
fn loads(home: &Home, conversation: &Conversation<'_>, table: &mut Table) -> Result<()> {
    let (mut times, mut peaks, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for _ in 0..conversation.loads {
        let mut agent = home.start()?;
        idle.push(agent.usage()?.rss_kb);
        shown.clear();
        let load = agent.load_session(conversation.session, &mut shown)?;
        times.push(load.time);
        peaks.push(agent.usage()?.peak_kb);
        agent.finish()?;
    }
    let updates = memmem::find_iter(&shown, "\"session/update\"").count();
    let least = conversation.least_updates;
    ensure!(updates >= least, "{}: {updates} updates, at least {least} expected", conversation.name);
    let (rows, pipe) = load_floor(home, conversation, &shown)?;
    let what = format!("raw rows {:.1} ms + raw pipe {:.1} ms", milliseconds(rows), milliseconds(pipe));
    table.push(Row {
        figure: conversation.name.into(),
        unit: "ms",
        value: median_ms(&times)?,
        limit: Limit::new(milliseconds(rows + pipe), what),
        aim: Some(conversation.aim),
    });
    table.push(Row {
        figure: format!("{}: peak resident", conversation.name),
        unit: "MB",
        value: megabytes(median(&peaks)?),
        limit: Limit::new(megabytes(median(&idle)?), "the same process before it"),
        aim: Some(aims::LOAD_PEAK_MB),
    });
    Ok(())
}

/// Reading the rows and throwing them away; writing the updates without making them.
fn load_floor(home: &Home, conversation: &Conversation<'_>, shown: &[u8]) -> Result<(Duration, Duration)> {
    let mut reads = Vec::new();
    for _ in 0..conversation.loads {
        let (time, rows) = raw::read_rows(&home.database(), conversation.session)?;
        ensure!(rows > 0, "no rows of {}", conversation.session);
        reads.push(time);
    }
    Ok((median(&reads)?, pipe(&home.path("shown"), shown, conversation.loads)?))
}

fn pipe(file: &Path, bytes: &[u8], runs: usize) -> Result<Duration> {
    fs::write(file, bytes)?;
    let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    let mut process = Raw::Pipe(file.to_path_buf()).start()?;
    process.exchange(b"{}\n", Until::Count(lines))?;
    let mut times = Vec::new();
    for _ in 0..runs {
        times.push(process.exchange(b"{}\n", Until::Count(lines))?.time);
    }
    process.finish()?;
    median(&times)
}

/// The same process and session from the first turn on: the last turns against the first.
fn growth(home: &Home, floor: Floor, table: &mut Table) -> Result<()> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let first = turns(&mut agent, &session, COMPARED_TURNS)?;
    turns(&mut agent, &session, HISTORY_TURNS - COMPARED_TURNS)?;
    settle();
    let last = turns(&mut agent, &session, COMPARED_TURNS)?;
    agent.finish()?;
    let (first, last) = (median_ms(&first)?, median_ms(&last)?);
    let row = |figure: &str, unit, value, limit, aim| Row { figure: figure.into(), unit, value, limit, aim };
    table.push(row(
        "turn at a history of 0",
        "ms",
        first,
        floor.of_commits(COMMITS_OF_A_TURN),
        Some(aims::TURN_MS),
    ));
    let limit = Limit::new(first, "turn at a history of 0");
    table.push(row("turn at a history of 1,000 turns", "ms", last, limit, Some(aims::TURN_MS)));
    let growth = last / first;
    let limit = Limit::new(1.0, "no growth");
    table.push(row("growth of a turn over 1,000 turns", "times", growth, limit, Some(aims::TURN_GROWTH)));
    Ok(())
}

/// The same process: turns of an empty session against turns of one that holds 10 MB, taken in turns so that
/// both meet the same machine.
fn large_history(home: &Home, table: &mut Table) -> Result<()> {
    let mut agent = home.start()?;
    let (large, _) = agent.new_session()?;
    for _ in 0..LARGE_TURNS {
        agent.prompt(&large, Prompt::LargeAnswer)?;
    }
    settle();
    let (mut empty_times, mut large_times) = (Vec::new(), Vec::new());
    for _ in 0..COMPARED_TURNS {
        let (empty, _) = agent.new_session()?;
        // The first turn of a session also assembles its prompt, with any history.
        agent.prompt(&empty, Prompt::OneToken)?;
        empty_times.push(agent.prompt(&empty, Prompt::OneToken)?.time);
        large_times.push(agent.prompt(&large, Prompt::OneToken)?.time);
    }
    agent.finish()?;
    let (empty, large) = (median_ms(&empty_times)?, median_ms(&large_times)?);
    let limit = Limit::new(empty, "turn of an empty session beside it");
    let figure = "turn at a history of 10 MB".into();
    table.push(Row { figure, unit: "ms", value: large, limit, aim: Some(aims::TURN_MS) });
    let (figure, limit) = ("growth of a turn at 10 MB".into(), Limit::new(1.0, "no growth"));
    table.push(Row { figure, unit: "times", value: large / empty, limit, aim: Some(aims::TURN_GROWTH) });
    Ok(())
}

/// One session of 20 MB: whether its last turns take longer than its first, and what the process has grown by.
fn long_session(home: &Home, table: &mut Table) -> Result<()> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let mut times = Vec::new();
    let mut early = None;
    for turn in 0..LONG_SESSION_TURNS {
        times.push(agent.prompt(&session, Prompt::LongAnswer)?.time);
        if turn + 1 == COMPARED_TURNS {
            settle();
            early = Some(agent.process().usage()?.rss_kb);
        }
    }
    settle();
    let late = agent.process().usage()?.rss_kb;
    agent.finish()?;
    let early = early.context("fewer turns than are compared")?;
    let (first, last) =
        (median_ms(&times[..COMPARED_TURNS])?, median_ms(&times[LONG_SESSION_TURNS - COMPARED_TURNS..])?);
    let limit = Limit::new(first, "the first turns of the same session");
    let figure = "turn of 20 KB at a history of 20 MB".into();
    table.push(Row { figure, unit: "ms", value: last, limit, aim: None });
    let (figure, limit) = ("growth of a turn at 20 MB".into(), Limit::new(1.0, "no growth"));
    table.push(Row { figure, unit: "times", value: last / first, limit, aim: Some(aims::TURN_GROWTH) });
    let limit = Limit::new(megabytes(early), "the same process at a history of 1 MB");
    let (figure, aim) = ("resident at a history of 20 MB".into(), Some(aims::LONG_SESSION_MB));
    table.push(Row { figure, unit: "MB", value: megabytes(late), limit, aim });
    Ok(())
}

fn turns(agent: &mut Agent, session: &str, count: usize) -> Result<Vec<Duration>> {
    (0..count).map(|_| Ok(agent.prompt(session, Prompt::OneToken)?.time)).collect()
}
