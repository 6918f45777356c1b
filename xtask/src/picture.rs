//! Draws the demo as an SVG for the README: runs it on a terminal, turns its colours into text spans.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::house::{House, run};

/// Metrics of the drawn terminal, in pixels.
const CHARACTER: f32 = 7.8;
const LINE: usize = 17;
const MARGIN: usize = 16;
/// Longer lines are wrapped, as a terminal would.
const COLUMNS: usize = 110;

/// A run of characters of one colour.
struct Span {
    colour: &'static str,
    weight: &'static str,
    text: String,
}

pub(crate) fn draw(house: &House) -> Result<()> {
    run(house.cargo().args(["build", "--quiet", "--release", "--package", "attache"]))?;
    let binary = house.target().join("release/attache");
    // `script` gives the demo a terminal; its own log goes nowhere.
    let played = Command::new("script")
        .args(["-qec", &format!("{} demo", binary.display()), "/dev/null"])
        .env("TMPDIR", "/tmp")
        .output()
        .context("`script` (util-linux) is needed to draw the demo")?;
    ensure!(played.status.success(), "the demo failed: {}", String::from_utf8_lossy(&played.stdout));
    let text = String::from_utf8(played.stdout)?.replace('\r', "");
    let path = house.path("docs/demo.svg");
    fs::write(&path, svg(&shorten_paths(&text)))?;
    eprintln!("drew {}", path.display());
    Ok(())
}

/// Temporary directories differ from run to run; the picture should not.
fn shorten_paths(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/tmp/.tmp") {
        short.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find("/project").map_or(rest.len(), |end| end + "/project".len());
        short.push_str("~/project");
        rest = &rest[end..];
    }
    short + rest
}

fn svg(text: &str) -> String {
    let lines: Vec<Vec<Span>> = text.trim_end().lines().flat_map(|line| wrapped(spans(line))).collect();
    let width = MARGIN * 2 + (COLUMNS as f32 * CHARACTER) as usize;
    let height = MARGIN * 2 + lines.len() * LINE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"attache demo in a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\">\n"
    );
    for (row, spans) in lines.iter().enumerate() {
        let y = MARGIN + row * LINE + 12;
        let mut column = 0;
        for span in spans {
            let x = MARGIN as f32 + column as f32 * CHARACTER;
            let length = span.text.chars().count();
            column += length;
            if span.text.trim().is_empty() {
                continue;
            }
            out.push_str(&format!(
                "<text x=\"{x:.1}\" y=\"{y}\" fill=\"{}\" font-weight=\"{}\" textLength=\"{:.1}\" xml:space=\"preserve\">{}</text>\n",
                span.colour,
                span.weight,
                length as f32 * CHARACTER,
                escaped(&span.text)
            ));
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn spans(line: &str) -> Vec<Span> {
    const PLAIN: (&str, &str) = ("#d7dae0", "400");
    let (mut colour, mut weight) = PLAIN;
    let mut spans = Vec::new();
    for (nth, piece) in line.split("\x1b[").enumerate() {
        let text = match piece.split_once('m') {
            Some((code, text)) if nth > 0 => {
                (colour, weight) = match code {
                    "31" => ("#e06c75", "400"),
                    "32" => ("#98c379", "400"),
                    "33" => ("#e5c07b", "400"),
                    "34" => ("#61afef", "600"),
                    "35" => ("#c678dd", "400"),
                    "36" => ("#56b6c2", "600"),
                    "90" => ("#7f848e", "400"),
                    "1" => ("#ffffff", "700"),
                    _ => PLAIN,
                };
                text
            }
            _ => piece,
        };
        if !text.is_empty() {
            spans.push(Span { colour, weight, text: text.to_owned() });
        }
    }
    spans
}

fn wrapped(spans: Vec<Span>) -> Vec<Vec<Span>> {
    let mut lines = vec![Vec::new()];
    let mut room = COLUMNS;
    for span in spans {
        let mut text: Vec<char> = span.text.chars().collect();
        while text.len() > room {
            let rest = text.split_off(room);
            push(&mut lines, &span, text);
            lines.push(Vec::new());
            text = rest;
            room = COLUMNS;
        }
        room -= text.len();
        push(&mut lines, &span, text);
    }
    lines
}

fn push(lines: &mut [Vec<Span>], like: &Span, text: Vec<char>) {
    if let Some(line) = lines.last_mut() {
        line.push(Span { colour: like.colour, weight: like.weight, text: text.into_iter().collect() });
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_spans_and_markup_is_inert() {
        let drawn = svg("\x1b[32mgood\x1b[0m <b> & more");
        assert!(drawn.contains(">good</text>") && drawn.contains("#98c379"));
        assert!(drawn.contains("&lt;b&gt; &amp; more"));
    }

    #[test]
    fn long_lines_wrap() {
        let lines = wrapped(spans(&"x".repeat(COLUMNS * 2 + 1)));
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn temporary_paths_are_shortened() {
        assert_eq!(shorten_paths("Read /tmp/.tmpAbC/project/a.txt done"), "Read ~/project/a.txt done");
    }
}
