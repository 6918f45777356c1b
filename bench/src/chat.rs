//! The chat in a terminal, beside goose and codex in theirs: how soon one can type, what an answer costs to
//! show, how long a frame and a key take, and what all of it takes of memory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use attache_models::Dialect;

use super::Place;
use super::agent::Home;
use super::aims::{
    CHAT_CPU_RATIO, CHAT_DELTAS, CHAT_KEYS, CHAT_LINES, CHAT_RSS_MB, CHAT_STARTS, ECHO_MS, FIRST_PROMPT_MS,
    FRAME_MS, MENTION_MS, MENTIONED_FILES,
};
use super::figures::{median, median_ms, megabytes, milliseconds};
use super::table::{Limit, Row, Table};
use super::usage::Usage;
use super::wire::answers::body_of;
use super::wire::server::ModelServer;
use rivals::{RIVALS, Rival};
use terminal::Terminal;

mod rivals;
mod terminal;

const SIZE: (u16, u16) = (120, 40);
const READY: &str = "Say what to do.";

/// The last words of an answer, as no program writes them by itself.
const END: &str = "zzENDzz";

/// Between two deltas: a thousand a second, faster than models are.
const PAUSE: Duration = Duration::from_millis(1);

/// Between the words of a prompt and the key that sends them.
const BEFORE_ENTER: Duration = Duration::from_secs(2);

/// What one program took in one terminal.
#[derive(Clone, Copy, Debug)]
struct Shown {
    first_prompt: Duration,
    cpu: Duration,
    rss_kb: u64,
}

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let ours = ours(place)?;
    let mut others = Vec::new();
    for rival in RIVALS {
        match rival.program(place.target()) {
            Some(program) => others.push((rival.name, theirs(rival, &program, place)?)),
            None => eprintln!("   {} is not installed: cargo xtask peers", rival.name),
        }
    }
    beside(ours, &others, table)?;
    long_history(place, table)?;
    keys(place, table)?;
    mentions(place, table)
}

/// The deltas of an answer: words in lines, and at last the end.
fn pieces() -> Vec<&'static str> {
    let word = |number: u64| if number.is_multiple_of(12) { "token\n\n" } else { "token " };
    (1..CHAT_DELTAS).map(word).chain([END]).collect()
}

fn model(dialect: Dialect) -> Result<ModelServer> {
    let body = body_of(dialect, &pieces());
    ModelServer::at_a_pace(&body, &body_of(dialect, &["A title"]), PAUSE)
}

fn chat(home: &Home, arguments: &[&str]) -> Result<Terminal> {
    let mut command = Command::new(home.binary());
    command.arg("chat").args(arguments).env_clear().env("ATTACHE_HOME", home.path("home"));
    command.env("HOME", home.path("home")).env("LANG", "C.UTF-8").current_dir(home.path("work"));
    if let Some(search) = std::env::var_os("PATH") {
        command.env("PATH", search);
    }
    Terminal::start(&mut command, SIZE.0, SIZE.1)
}

fn ours(place: &Place) -> Result<Shown> {
    let server = model(Dialect::OpenAiChat)?;
    let home = place.home_with(&server.provider(Dialect::OpenAiChat))?;
    let mut starts = Vec::new();
    for _ in 0..CHAT_STARTS {
        let started = Instant::now();
        let mut terminal = chat(&home, &[])?;
        terminal.until(READY)?;
        starts.push(started.elapsed());
    }
    let shown = answered(chat(&home, &[])?, READY)?;
    Ok(Shown { first_prompt: median(&starts)?, ..shown })
}

fn theirs(rival: Rival, program: &Path, place: &Place) -> Result<Shown> {
    let server = model(rival.dialect)?;
    let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(place.target())?;
    let open = || -> Result<(Terminal, Instant)> {
        let mut command = rival.command(program, directory.path(), &server.address())?;
        let started = Instant::now();
        Ok((Terminal::start(&mut command, SIZE.0, SIZE.1)?, started))
    };
    let mut starts = Vec::new();
    for _ in 0..CHAT_STARTS {
        let (mut terminal, started) = open()?;
        terminal.until(rival.ready)?;
        starts.push(started.elapsed());
    }
    let shown = answered(open()?.0, rival.ready)?;
    Ok(Shown { first_prompt: median(&starts)?, ..shown })
}

/// One prompt, up to the end of its answer.
fn answered(mut terminal: Terminal, ready: &str) -> Result<Shown> {
    terminal.until(ready)?;
    terminal.quiet_for(Duration::from_millis(500))?;
    terminal.write(b"say much")?;
    // A program that still starts takes a key that follows soon for a part of something pasted.
    terminal.pass(BEFORE_ENTER)?;
    let before: Usage = terminal.usage()?;
    terminal.write(b"\r")?;
    terminal.until(END)?;
    terminal.pass(Duration::from_millis(300))?;
    let after = terminal.usage()?;
    Ok(Shown {
        first_prompt: Duration::ZERO,
        cpu: after.cpu.saturating_sub(before.cpu),
        rss_kb: after.peak_kb,
    })
}

fn beside(ours: Shown, others: &[(&str, Shown)], table: &mut Table) -> Result<()> {
    let best = |value: fn(&Shown) -> f64| {
        let all = others.iter().map(|(name, shown)| (value(shown), format!("{name} in the same terminal")));
        let best = all.min_by(|one, other| one.0.total_cmp(&other.0));
        best.and_then(|(value, what)| Limit::new(value, what))
    };
    let cpu = |shown: &Shown| milliseconds(shown.cpu);
    let mut push = |figure: &str, unit, value, limit, aim| {
        table.push(Row { figure: format!("chat: {figure}"), unit, value, limit, aim });
    };
    let first: fn(&Shown) -> f64 = |shown| milliseconds(shown.first_prompt);
    push("start → one can type", "ms", first(&ours), best(first), Some(FIRST_PROMPT_MS));
    let deltas = format!("{CHAT_DELTAS} deltas in 5 s: CPU");
    push(&deltas, "ms", cpu(&ours), best(|shown| milliseconds(shown.cpu)), None);
    if let Some(other) = others.iter().map(|(_, shown)| cpu(shown)).min_by(f64::total_cmp) {
        ensure!(other > 0.0, "the others took no time at all");
        push(
            "the same against the better of the others",
            "times",
            cpu(&ours) / other,
            None,
            Some(CHAT_CPU_RATIO),
        );
    }
    let memory: fn(&Shown) -> f64 = |shown| megabytes(shown.rss_kb);
    push("memory at most, agent included", "MB", memory(&ours), best(memory), Some(CHAT_RSS_MB));
    Ok(())
}

/// A home whose model says so many lines, and then goes on for a while at a pace.
fn talkative(place: &Place) -> Result<Home> {
    let home = place.home()?;
    let script = format!(
        "on \"history\"\n  stream {CHAT_LINES} \"a line of an answer\\n\\n\"\n  text \"{END}\"\n\
         on \"more\"\n  stream 3000 \"token \" every 1ms\n  text \"\\n\\n{END}\"\n"
    );
    fs::write(home.path("home/bench.script"), script)?;
    Ok(home)
}

/// What a frame takes beyond the pause that is kept between two, at the end of a long conversation.
fn long_history(place: &Place, table: &mut Table) -> Result<()> {
    let home = talkative(place)?;
    let mut terminal = chat(&home, &[])?;
    terminal.until(READY)?;
    let pause_of = |terminal: &mut Terminal| -> Result<Duration> {
        terminal.quiet_for(Duration::from_millis(500))?;
        terminal.write(b"more\r")?;
        terminal.until("token")?;
        Ok(terminal.until(END)?.longest_pause)
    };
    let fresh = pause_of(&mut terminal)?;
    terminal.quiet_for(Duration::from_millis(500))?;
    terminal.write(b"history\r")?;
    terminal.until(END)?;
    let late = pause_of(&mut terminal)?;
    let frame = Duration::from_millis(16);
    table.push(Row {
        figure: format!("chat: longest frame at {CHAT_LINES} lines of history"),
        unit: "ms",
        value: milliseconds(late.saturating_sub(frame)),
        limit: Limit::new(milliseconds(fresh.saturating_sub(frame)), "the same in a new session"),
        aim: Some(FRAME_MS),
    });
    let rss = terminal.usage()?.rss_kb;
    table.push(Row {
        figure: format!("chat: memory at {CHAT_LINES} lines of history"),
        unit: "MB",
        value: megabytes(rss),
        limit: None,
        aim: None,
    });
    Ok(())
}

/// From a key to its letter on the screen, while an answer streams in.
fn keys(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    let script = "on \"stream\"\n  stream 600000 \"token \" every 1ms\n";
    fs::write(home.path("home/bench.script"), script)?;
    let mut terminal = chat(&home, &[])?;
    terminal.until(READY)?;
    terminal.write(b"stream\r")?;
    terminal.until("token")?;
    let mut times = Vec::new();
    for _ in 0..CHAT_KEYS {
        // No phase of the frames is met more often than others.
        terminal.pass(Duration::from_micros(20_000 + (times.len() as u64 * 337) % 16_000))?;
        terminal.write(b"Q")?;
        times.push(terminal.until("Q")?.time);
        terminal.write(b"\x7f")?;
    }
    times.sort();
    let p99 = times[times.len() * 99 / 100];
    table.push(Row {
        figure: "chat: a key on the screen while an answer streams, p99".to_owned(),
        unit: "ms",
        value: milliseconds(p99),
        limit: None,
        aim: Some(ECHO_MS),
    });
    Ok(())
}

fn mentions(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home()?;
    for part in 0..MENTIONED_FILES / 1_000 {
        let directory = home.path(&format!("work/part{part}"));
        fs::create_dir(&directory)?;
        for number in 0..1_000 {
            fs::File::create(directory.join(format!("file-{}.rs", part * 1_000 + number)))?;
        }
    }
    let mut terminal = chat(&home, &[])?;
    terminal.until(READY)?;
    let mut times = Vec::new();
    for _ in 0..CHAT_STARTS {
        // The names of the files have been read meanwhile.
        terminal.quiet_for(Duration::from_secs(2))?;
        terminal.write(b"@file-9999")?;
        terminal.quiet_for(Duration::from_millis(500))?;
        terminal.write(b"9")?;
        times.push(terminal.until("part99/file-99999.rs")?.time);
        // Puts the list away and empties the line.
        terminal.write(b"\x15")?;
    }
    table.push(Row {
        figure: format!("chat: `@` and a name among {MENTIONED_FILES} files"),
        unit: "ms",
        value: median_ms(&times)?,
        limit: None,
        aim: Some(MENTION_MS),
    });
    Ok(())
}
