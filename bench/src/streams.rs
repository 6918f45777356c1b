//! Long answers: how fast they are shown with every chunk committed before, and what a chunk costs.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use memchr::memmem;

use super::agent::{Agent, Home, Prompt};
use super::aims::{self, Aim, DELTA, LONG_STREAM, SHORT_STREAM, Stream, WRITTEN_DELTAS};
use super::driven::{Driven, Until};
use super::figures::{median, megabytes, microseconds, milliseconds};
use super::raw::{self, Raw};
use super::table::{Limit, Row, Table};
use super::{Place, settle};

/// What a number of turns took, per turn.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Duration,
    cpu: Duration,
    updates: f64,
    /// To files; what went through the pipe is taken off.
    written: f64,
    peak_kb: u64,
}

/// The limits of one stream: its bytes through a pipe, its batches into a database.
#[derive(Clone, Copy, Debug)]
struct Floor {
    pipe: Cost,
    commits: Cost,
    batches: usize,
}

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    for stream in [SHORT_STREAM, LONG_STREAM] {
        let floor = floor(place, &home, stream)?;
        rows(stream, cost(&home, stream)?, floor, table);
    }
    let (few, many) = (written(place, WRITTEN_DELTAS)?, written(place, 10 * WRITTEN_DELTAS)?);
    table.push(Row {
        figure: "bytes written for 10 times the deltas".into(),
        unit: "times",
        value: many as f64 / few as f64,
        limit: Limit::new(10.0, "10,000 deltas, then 100,000"),
        aim: Some(aims::WRITE_GROWTH),
    });
    Ok(())
}

/// From a new database to the end of the process, so that nothing is left in the write-ahead log and uncounted.
fn written(place: &Place, deltas: u64) -> Result<u64> {
    let home = place.home()?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let before = agent.usage()?.written;
    let turn = agent.prompt(&session, Prompt::Deltas(deltas))?;
    Ok((agent.finish_measured()? - before).saturating_sub(turn.bytes))
}

/// In one process and one session each, as a long conversation would be.
fn cost(home: &Home, stream: Stream) -> Result<Cost> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    check(&mut agent, &session, stream)?;
    settle();
    let (before, mut times) = (agent.usage()?, Vec::new());
    let (mut updates, mut piped) = (0, 0);
    for _ in 0..stream.turns {
        let turn = agent.prompt(&session, Prompt::Deltas(stream.deltas))?;
        times.push(turn.time);
        updates += turn.updates;
        piped += turn.bytes;
    }
    settle();
    let after = agent.usage()?;
    agent.finish()?;
    let turns = stream.turns as f64;
    Ok(Cost {
        time: median(&times)?,
        cpu: (after.cpu - before.cpu).div_f64(turns),
        updates: updates as f64 / turns,
        written: (after.written - before.written).saturating_sub(piped) as f64 / turns,
        peak_kb: after.peak_kb,
    })
}

/// A turn that is not timed: nothing may be missing, or the figures are those of another program.
fn check(agent: &mut Agent, session: &str, stream: Stream) -> Result<()> {
    let mut shown = Vec::new();
    agent.prompt_recorded(session, Prompt::Deltas(stream.deltas), &mut shown)?;
    let found = memmem::find_iter(&shown, DELTA).count() as u64;
    ensure!(found == stream.deltas, "{found} of {} deltas were shown", stream.deltas);
    Ok(())
}

/// Records what the agent writes, to the pipe and to its log, and lets bare processes write the same.
fn floor(place: &Place, home: &Home, stream: Stream) -> Result<Floor> {
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let mut shown = Vec::new();
    agent.prompt_recorded(&session, Prompt::Deltas(stream.deltas), &mut shown)?;
    agent.finish()?;
    let bytes = home.path("shown");
    fs::write(&bytes, &shown)?;
    let lines = memchr::memchr_iter(b'\n', &shown).count() as u64;

    let batches = recorded(place, stream)?;
    let file = home.path("batches.json");
    fs::write(&file, serde_json::to_vec(&batches)?)?;
    let commits = Raw::Commits { batches: file, database: home.path(&format!("raw-{}", stream.deltas)) };
    Ok(Floor {
        pipe: raw_cost(&Raw::Pipe(bytes), stream, lines)?,
        commits: raw_cost(&commits, stream, 1)?,
        batches: batches.len(),
    })
}

/// The log of a run is kept while the run is open: the very batches that were committed can be read from it.
fn recorded(place: &Place, stream: Stream) -> Result<Vec<String>> {
    let home = place.home()?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    agent.prompt_unanswered(&session, Prompt::DeltasThenSilence(stream.deltas), stream.deltas)?;
    let batches = raw::recorded_batches(&home.database())?;
    agent.kill()?;
    let chunks: usize = batches.iter().map(|batch| batch.lines().count()).sum();
    ensure!(chunks as u64 >= stream.deltas, "the run log holds {chunks} chunks of {}", stream.deltas);
    Ok(batches)
}

fn raw_cost(raw: &Raw, stream: Stream, lines: u64) -> Result<Cost> {
    let mut process = raw.start()?;
    let once = |process: &mut Driven| process.exchange(b"{}\n", Until::Count(lines));
    once(&mut process)?;
    let (before, mut times, mut piped) = (process.usage()?, Vec::new(), 0);
    for _ in 0..stream.turns {
        let run = once(&mut process)?;
        times.push(run.time);
        piped += run.bytes;
    }
    let after = process.usage()?;
    process.finish()?;
    let turns = stream.turns as f64;
    Ok(Cost {
        time: median(&times)?,
        cpu: (after.cpu - before.cpu).div_f64(turns),
        updates: lines as f64,
        written: (after.written - before.written).saturating_sub(piped) as f64 / turns,
        peak_kb: after.peak_kb,
    })
}

fn rows(stream: Stream, cost: Cost, floor: Floor, table: &mut Table) {
    let deltas = stream.deltas as f64;
    let name = match stream.deltas {
        5_000 => "5,000 deltas",
        _ => "100,000 deltas",
    };
    let is_short = stream.deltas == SHORT_STREAM.deltas;
    let both = format!(
        "raw pipe {:.1} ms + {} raw commits {:.1} ms",
        milliseconds(floor.pipe.time),
        floor.batches,
        milliseconds(floor.commits.time)
    );
    let time = floor.pipe.time + floor.commits.time;
    let cpu = floor.pipe.cpu + floor.commits.cpu;
    let cpu_text = format!(
        "raw pipe {:.2} µs + raw commits {:.2} µs",
        microseconds(floor.pipe.cpu) / deltas,
        microseconds(floor.commits.cpu) / deltas
    );
    let mut push = |what: &str, unit, value, limit, aim: Option<Aim>| {
        table.push(Row { figure: format!("{name}: {what}"), unit, value, limit, aim });
    };
    let aim = is_short.then_some(aims::SHORT_STREAM_MS);
    push("time", "ms", milliseconds(cost.time), Limit::new(milliseconds(time), both.clone()), aim);
    push(
        "rate",
        "updates/s",
        cost.updates / cost.time.as_secs_f64(),
        Limit::new(deltas / time.as_secs_f64(), both),
        Some(aims::UPDATES_PER_SECOND),
    );
    push("shown in", "updates", cost.updates, Limit::new(deltas, "deltas"), None);
    push(
        "CPU per update",
        "µs",
        microseconds(cost.cpu) / cost.updates,
        Limit::new(microseconds(cpu) / deltas, cpu_text),
        Some(aims::CPU_MICROSECONDS),
    );
    let written = Limit::new(floor.commits.written / deltas, "raw commits of the same batches");
    push("written per chunk", "bytes", cost.written / deltas, written, None);
    let bare = Limit::new(megabytes(floor.commits.peak_kb), "process of the raw commits");
    push("peak resident", "MB", megabytes(cost.peak_kb), bare, None);
}
