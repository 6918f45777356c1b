//! The table of figures: each beside its limit and its aim, as Markdown that a terminal shows well, too.

use super::aims::Aim;

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    /// What no implementation could beat here, measured in the same run.
    pub(crate) limit: Option<Limit>,
    pub(crate) aim: Option<Aim>,
}

#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) value: f64,
    /// What was measured.
    pub(crate) what: String,
}

impl Limit {
    pub(crate) fn new(value: f64, what: impl Into<String>) -> Option<Self> {
        Some(Self { value, what: what.into() })
    }
}

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        eprintln!("   {}: {} {}", row.figure, number(row.value), row.unit);
        self.rows.push(row);
    }

    pub(crate) fn text(&self) -> String {
        let header = ["figure", "unit", "attache", "limit", "ratio", "aim", "", "the limit is"];
        let mut lines: Vec<Vec<String>> = vec![header.map(str::to_owned).to_vec()];
        lines.extend(self.rows.iter().map(cells));
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default().max(3)
            })
            .collect();
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            push_line(&mut text, line, &widths);
            if index == 0 {
                text += &rule(&widths);
            }
        }
        text
    }

    /// Figures that miss their aim.
    pub(crate) fn short(&self) -> usize {
        self.rows.iter().filter(|row| verdict(row) == "short").count()
    }
}

/// Figures are read from the right, words from the left.
const RIGHT: std::ops::RangeInclusive<usize> = 2..=5;

fn push_line(text: &mut String, cells: &[String], widths: &[usize]) {
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(width - cell.chars().count());
        *text += &match RIGHT.contains(&column) {
            true => format!("| {pad}{cell} "),
            false => format!("| {cell}{pad} "),
        };
    }
    *text += "|\n";
}

fn rule(widths: &[usize]) -> String {
    let columns = widths.iter().enumerate().map(|(column, width)| match RIGHT.contains(&column) {
        true => format!("|{}:", "-".repeat(width + 1)),
        false => format!("|{}", "-".repeat(width + 2)),
    });
    columns.collect::<String>() + "|\n"
}

fn cells(row: &Row) -> Vec<String> {
    let limit = row.limit.as_ref();
    vec![
        row.figure.clone(),
        row.unit.to_owned(),
        number(row.value),
        limit.map_or_else(String::new, |limit| number(limit.value)),
        limit.map_or_else(String::new, |limit| ratio(row, limit)),
        row.aim.map_or_else(String::new, aim),
        verdict(row).to_owned(),
        limit.map_or_else(String::new, |limit| limit.what.clone()),
    ]
}

/// How many times worse than the limit; for rates more is better.
fn ratio(row: &Row, limit: &Limit) -> String {
    let times = match row.unit.ends_with("/s") {
        true => limit.value / row.value,
        false => row.value / limit.value,
    };
    format!("{times:.1}×")
}

fn verdict(row: &Row) -> &'static str {
    match row.aim {
        None => "",
        Some(aim) if aim.is_met(row.value) => "ok",
        Some(_) => "short",
    }
}

fn aim(aim: Aim) -> String {
    match aim {
        Aim::Below(value) => format!("< {}", whole(value)),
        Aim::AtMost(value) => format!("≤ {}", whole(value)),
        Aim::AtLeast(value) => format!("≥ {}", whole(value)),
    }
}

/// As it was written; one that was measured, too, in three digits.
fn whole(value: f64) -> String {
    match (value.fract() == 0.0, (value * 100.0).fract() == 0.0) {
        (true, _) => thousands(value),
        (false, true) => format!("{value}"),
        (false, false) => number(value),
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => thousands(value.round()),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: &'static str, value: f64, aim: Aim) -> Row {
        Row { figure: "f".into(), unit, value, limit: Limit::new(10.0, "raw"), aim: Some(aim) }
    }

    #[test]
    fn a_missed_aim_is_said_and_counted() {
        let mut table = Table::default();
        table.push(row("ms", 20.0, Aim::Below(20.0)));
        table.push(row("updates/s", 5.0, Aim::AtLeast(5.0)));
        table.push(row("ms", 1_234_567.0, Aim::AtMost(8.5)));
        assert_eq!(table.short(), 2);
        let text = table.text();
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
        assert_eq!(lines[2][1..9], ["f", "ms", "20.0", "10.0", "2.0×", "< 20", "short", "raw"]);
        assert_eq!(lines[3][5..8], ["2.0×", "≥ 5", "ok"]);
        assert_eq!(lines[4][3], "1,234,567");
    }
}
