//! Going back in a long session, loading it, copying it, and what the snapshots behind that add to an edit.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Home, Prompt};
use super::aims::{
    FORK_MS, LOADED_PER_SECOND, LOADS, REWIND_MS, REWINDS, REWOUND_TURNS, SNAPSHOT_MS, SNAPSHOT_TURNS,
};
use super::figures::median_ms;
use super::table::{Row, Table};
use super::tools::SAMPLE;

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    long_session(place, table)?;
    snapshots(place, table)
}

fn long_session(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    let first = agent.prompt(&session, Prompt::OneToken)?;
    let first: Value = serde_json::from_slice(&first.last_line)?;
    let first = first["result"]["_meta"]["attache/messageId"].as_str().context("no messageId")?.to_owned();
    for _ in 1..REWOUND_TURNS {
        agent.prompt(&session, Prompt::OneToken)?;
    }
    let (mut rewinds, mut unrewinds, mut forks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REWINDS {
        let rewind = json!({"sessionId": session, "messageId": first});
        let (time, answer) = timed(&mut agent, "_attache/session/rewind", &rewind)?;
        ensure!(answer["result"]["hidden"] == 2 * REWOUND_TURNS, "not everything was rewound: {answer}");
        rewinds.push(time);
        let unrewind = json!({"sessionId": session});
        unrewinds.push(timed(&mut agent, "_attache/session/unrewind", &unrewind)?.0);
    }
    let rate = load_rate(&home, &session)?;
    // Behind them: what a copy leaves for the search index to do would be in their way.
    for _ in 0..REWINDS {
        let fork = json!({"sessionId": session, "cwd": home.path("work")});
        forks.push(timed(&mut agent, "session/fork", &fork)?.0);
    }
    agent.finish()?;
    table.push(Row {
        figure: "session/load of 10,000 messages: rate".to_owned(),
        unit: "updates/s",
        value: rate,
        limit: None,
        aim: Some(LOADED_PER_SECOND),
    });
    for (figure, times, aim) in [
        ("rewind of 10,000 messages", rewinds, REWIND_MS),
        ("the same taken back", unrewinds, REWIND_MS),
        ("fork of 10,000 messages", forks, FORK_MS),
    ] {
        let (value, limit) = (median_ms(&times)?, None);
        table.push(Row { figure: figure.to_owned(), unit: "ms", value, limit, aim: Some(aim) });
    }
    Ok(())
}

/// Updates that a new process shows per second; the median of a few.
fn load_rate(home: &Home, session: &str) -> Result<f64> {
    let (mut times, mut shown) = (Vec::new(), Vec::new());
    for _ in 0..LOADS {
        let mut agent = home.start()?;
        shown.clear();
        times.push(agent.load_session(session, &mut shown)?.time);
        agent.finish()?;
    }
    let updates = memmem::find_iter(&shown, "\"session/update\"").count();
    ensure!(updates >= 2 * REWOUND_TURNS, "{updates} updates of {REWOUND_TURNS} turns");
    Ok(updates as f64 * 1_000.0 / median_ms(&times)?)
}

fn timed(agent: &mut Agent, method: &str, parameters: &Value) -> Result<(Duration, Value)> {
    let exchange = agent.request(method, parameters)?;
    Ok((exchange.time, serde_json::from_slice(&exchange.last_line)?))
}

/// The same turns with snapshots and without, in turns, so that both meet the same machine.
fn snapshots(place: &Place, table: &mut Table) -> Result<()> {
    let mut agents = Vec::new();
    for kept in [true, false] {
        let home = place.home_with(&format!(
            "model = \"bench/default\"\napproval = \"edits\"\nsnapshots = {kept}\n\n\
             [providers.bench]\ndialect = \"script\"\nscript = \"bench.script\"\n"
        ))?;
        let sample = home.path("work").join(SAMPLE);
        fs::create_dir_all(sample.parent().context("no directory")?)?;
        fs::write(sample, "fn unique_word() {}\n".to_owned() + &"// a line of a file\n".repeat(500))?;
        let mut agent = home.start()?;
        let (session, _) = agent.new_session()?;
        agents.push((home, agent, session, Vec::new()));
    }
    for _ in 0..SNAPSHOT_TURNS {
        for (_, agent, session, times) in &mut agents {
            times.push(agent.prompt(session, Prompt::Edit)?.time);
        }
    }
    let mut medians = Vec::new();
    for (_home, agent, _, times) in agents {
        agent.finish()?;
        medians.push(median_ms(&times)?);
    }
    let [with, without] = medians[..] else { anyhow::bail!("two agents were measured") };
    table.push(Row {
        figure: "snapshot before an edit".to_owned(),
        unit: "ms",
        value: (with - without) / 2.0,
        limit: None,
        aim: Some(SNAPSHOT_MS),
    });
    Ok(())
}
