//! `attache usage`: what all sessions used and cost, by day, model or workspace. Reads only.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::figures::{SessionFigures, UsageKey, UsageQuery, UsageSum};
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::answer;
use crate::args::{UsageArgs, UsageBy};
use crate::paint::{Colour, Paint};
use crate::sessions::dollars;
use crate::setup::{self, Sources};
use crate::when;

pub(crate) async fn run(sources: &Sources, arguments: &UsageArgs) -> Result<()> {
    let query = UsageQuery { since: arguments.since.as_deref().map(since).transpose()?, zone: when::zone() };
    let sums = match setup::look_into_store(&sources.config, &sources.dirs)? {
        Some(store) => summed(store.usage(query).await?, arguments.by),
        None => BTreeMap::new(),
    };
    if arguments.json {
        let rows: Vec<String> =
            sums.iter().map(|(name, sum)| format!("  {}", as_json(name, sum, arguments.by))).collect();
        let text = if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) };
        return Ok(answer::write_painted(&text)?);
    }
    if sums.is_empty() {
        answer::note("no model has reported any usage yet");
        return Ok(());
    }
    Ok(answer::write_painted(&table(&sums, arguments.by, Paint::for_answers())?)?)
}

/// The beginning of a day, in the user's zone.
fn since(typed: &str) -> Result<i64> {
    let Ok(day) = typed.parse::<Date>() else {
        bail!("`{}` is no date; write it as 2026-03-29", legible_line(typed));
    };
    Ok(day.to_zoned(when::zone())?.timestamp().as_millisecond())
}

fn summed(sums: BTreeMap<UsageKey, UsageSum>, by: UsageBy) -> BTreeMap<String, UsageSum> {
    let mut together: BTreeMap<String, UsageSum> = BTreeMap::new();
    for (key, sum) in sums {
        let name = match by {
            UsageBy::Day => key.day,
            UsageBy::Model => key.model,
            UsageBy::Workspace => key.workspace_root.to_string_lossy().into_owned(),
        };
        let one = together.entry(name).or_default();
        one.answers += sum.answers;
        one.totals.add(&sum.totals);
    }
    together
}

const COLUMNS: [&str; 8] =
    ["", "answers", "input", "output", "reasoning", "cache read", "cache write", "cost"];

fn table(sums: &BTreeMap<String, UsageSum>, by: UsageBy, paint: Paint) -> Result<String> {
    let mut total = UsageSum::default();
    let mut rows: Vec<[String; 8]> = Vec::new();
    for (name, sum) in sums {
        total.answers += sum.answers;
        total.totals.add(&sum.totals);
        rows.push(cells(&legible_line(shown(name, by)), sum));
    }
    if rows.len() > 1 {
        rows.push(cells("total", &total));
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([COLUMNS[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |cells: &[String; 8]| {
        let rest = cells.iter().zip(&widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        format!("{:<first$}{}", cells[0], rest.collect::<String>(), first = widths[0]).trim_end().to_owned()
    };
    let mut text = String::new();
    writeln!(text, "{}", paint.paint(Colour::Grey, &line(&COLUMNS.map(str::to_owned))))?;
    for row in &rows {
        writeln!(text, "{}", line(row))?;
    }
    Ok(text)
}

fn shown(name: &str, by: UsageBy) -> &str {
    match (name, by) {
        ("", UsageBy::Model) => "(not known)",
        (name, UsageBy::Day | UsageBy::Model | UsageBy::Workspace) => name,
    }
}

fn cells(name: &str, sum: &UsageSum) -> [String; 8] {
    let totals = &sum.totals;
    [
        name.to_owned(),
        sum.answers.to_string(),
        totals.prompt_tokens.to_string(),
        totals.completion_tokens.to_string(),
        totals.reasoning_tokens.to_string(),
        totals.cache_read.to_string(),
        totals.cache_write.to_string(),
        totals.known_cost_usd().map(dollars).unwrap_or_default(),
    ]
}

/// For programs, under the names of exports; null for unknown values.
fn as_json(name: &str, sum: &UsageSum, by: UsageBy) -> Value {
    let totals = &sum.totals;
    let key = match by {
        UsageBy::Day => "day",
        UsageBy::Model => "model",
        UsageBy::Workspace => "workspace_root",
    };
    json!({
        key: (!name.is_empty()).then_some(name),
        "answers": sum.answers,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "reasoning_tokens": totals.reasoning_tokens,
        "cache_read": totals.cache_read,
        "cache_write": totals.cache_write,
        "cost_usd": totals.known_cost_usd(),
    })
}
