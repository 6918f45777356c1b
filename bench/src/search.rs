//! How fast words are found in many stored messages.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::Place;
use super::agent::Home;
use super::aims::{self, SEARCHED_SESSIONS, SEARCHED_TURNS, SEARCHES};
use super::figures::median_ms;
use super::table::{Limit, Row, Table};

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    for number in 0..SEARCHED_SESSIONS {
        import(&home, number)?;
    }
    // The first makes the index of what was imported.
    search(&home, "first")?;
    let mut list = Vec::new();
    for _ in 0..SEARCHES {
        list.push(run(&home, &["sessions", "list", "--limit", "1"])?);
    }
    let limit = Limit::new(median_ms(&list)?, "the same process lists one session");
    for (figure, words) in [("a rare word", "word31"), ("a word of every message", "everywhere")] {
        let mut times = Vec::new();
        for _ in 0..SEARCHES {
            times.push(search(&home, words)?);
        }
        table.push(Row {
            figure: format!("search of 100,000 messages for {figure}, with its process"),
            unit: "ms",
            value: median_ms(&times)?,
            limit: limit.clone(),
            aim: Some(aims::SEARCH_MS),
        });
    }
    Ok(())
}

/// A session with many messages, each with words of its own and words of all.
fn import(home: &Home, number: usize) -> Result<()> {
    let session = format!("ses_bench{number:08}");
    let row = json!({
        "id": session, "agent": "build", "workspace_root": "/bench", "model": null, "parent_id": null,
        "parent_message_id": null, "permissions": [], "metadata": {"title": format!("Session {number}")},
        "prompt_tokens": 0, "completion_tokens": 0, "reasoning_tokens": 0, "cache_read": 0, "cache_write": 0,
        "cost_usd": null, "created_at": number, "updated_at": number, "archived_at": null,
    });
    let mut text = format!("{}\n", json!({"type": "session", "version": 1, "data": row}));
    let messages = 2 * SEARCHED_TURNS;
    for nth in 0..messages {
        let message = format!("msg_{number}_{nth}");
        let role = if nth % 2 == 0 { "user" } else { "assistant" };
        let row = json!({"id": message, "session_id": session, "seq": nth + 1, "role": role, "metadata": {},
            "created_at": nth, "updated_at": nth});
        writeln!(text, "{}", json!({"type": "message", "data": row}))?;
        let said: Vec<String> =
            (1..60).map(|word| format!("word{}", (nth * word * 7919 + number) % 20_000)).collect();
        let part = json!({"type": "text", "text": format!("everywhere {}", said.join(" "))});
        let row = json!({"id": format!("prt_{number}_{nth}"), "message_id": message, "session_id": session,
            "index": 0, "type": "text", "data": part, "tool_call_id": null, "tool_state": null,
            "created_at": nth, "updated_at": nth});
        writeln!(text, "{}", json!({"type": "part", "data": row}))?;
    }
    let counts = json!({"messages": messages, "parts": messages, "blobs": 0});
    writeln!(text, "{}", json!({"type": "end", "data": counts}))?;
    let file = home.path("import.jsonl");
    fs::write(&file, text)?;
    run(home, &["sessions", "import", file.to_str().context("a path that is no text")?])?;
    Ok(())
}

fn search(home: &Home, words: &str) -> Result<Duration> {
    run(home, &["sessions", "search", "--json", words])
}

fn run(home: &Home, arguments: &[&str]) -> Result<Duration> {
    let mut command = Command::new(home.binary());
    command.args(arguments).env_clear().env("ATTACHE_HOME", home.path("home"));
    let begin = Instant::now();
    let output = command.output()?;
    let time = begin.elapsed();
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(time)
}
