//! Draws real runs as SVG for the documents: the demo, and the chat when it asks. Runs them on a terminal,
//! turns their colours into text spans.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

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

/// With the program that is named, else with one that is built for it.
pub(crate) fn draw(house: &House, program: Option<&Path>) -> Result<()> {
    let binary = match program {
        Some(program) => std::path::absolute(program)?,
        None => {
            run(house.cargo().args(["build", "--quiet", "--release", "--package", "attache"]))?;
            house.target().join("release/attache")
        }
    };
    for (name, label, text) in [
        ("demo.svg", "attache demo in a terminal", demo(&binary)?),
        ("chat.svg", "attache chat asks before it changes a file", chat(&binary)?),
    ] {
        let path = house.path("docs").join(name);
        fs::write(&path, svg(label, &shorten_paths(&text)))?;
        eprintln!("drew {}", path.display());
    }
    Ok(())
}

/// What the demo prints on a terminal.
fn demo(binary: &Path) -> Result<String> {
    // `script` gives the demo a terminal; its own log goes nowhere.
    let played = Command::new("script")
        .args(["-qec", &format!("{} demo", binary.display()), "/dev/null"])
        .env("TMPDIR", "/tmp")
        .output()
        .context("`script` (util-linux) is needed to draw the demo")?;
    ensure!(played.status.success(), "the demo failed: {}", String::from_utf8_lossy(&played.stdout));
    Ok(String::from_utf8(played.stdout)?.replace('\r', ""))
}

const PROMPT: &str = "The total of the cart is wrong. Find out why.";

const SCRIPT: &str = r#"
on "The total of the cart is wrong. Find out why."
  reasoning "I should look at the file."
  text "I look at `cart.rs` first."
  call read {"path":"cart.rs"}
  ---
  text "`total` subtracts where it should **add**:"
  call edit {"path":"cart.rs","old_string":"sum - item.price","new_string":"sum + item.price"}
  ---
  text "Fixed."
"#;

const CART: &str = "\
pub fn total(items: &[Item]) -> u32 {
    let mut sum = 0;
    for item in items {
        sum = sum - item.price;
    }
    sum
}
";

/// The screen of a chat that wants to change a file.
fn chat(binary: &Path) -> Result<String> {
    let place = PathBuf::from(format!("/tmp/.tmp{}", std::process::id()));
    let (home, project) = (place.join("home"), place.join("project"));
    fs::create_dir_all(&home)?;
    fs::create_dir_all(&project)?;
    fs::write(home.join("cart.script"), SCRIPT)?;
    let provider = "[providers.script]\ndialect = \"script\"\nscript = \"cart.script\"\n";
    fs::write(home.join("config.toml"), format!("model = \"script/default\"\n{provider}"))?;
    fs::write(project.join("cart.rs"), CART)?;
    let terminal = Screen { socket: place.join("tmux") };
    let line = format!("cd '{}' && exec '{}' chat", project.display(), binary.display());
    let start = ["-f", "/dev/null", "-u", "new-session", "-d", "-x", "100", "-y", "32", &line];
    terminal.tmux(&start, Some(&home))?;
    terminal.wait_for("Say what to do.")?;
    terminal.tmux(&["send-keys", "-l", PROMPT], None)?;
    terminal.tmux(&["send-keys", "Enter"], None)?;
    terminal.wait_for("6 Reject, and say")?;
    let screen = terminal.tmux(&["capture-pane", "-p", "-e"], None)?;
    terminal.tmux(&["kill-server"], None)?;
    fs::remove_dir_all(&place)?;
    Ok(screen)
}

/// A terminal that nobody sees.
struct Screen {
    socket: PathBuf,
}

impl Screen {
    fn tmux(&self, arguments: &[&str], home: Option<&Path>) -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.envs(home.map(|home| ("ATTACHE_HOME", home)));
        let output = command.output().context("tmux is needed to draw the chat")?;
        ensure!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn wait_for(&self, words: &str) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            if self.tmux(&["capture-pane", "-p"], None)?.contains(words) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{words:?} is not on the screen")
    }
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

fn svg(label: &str, text: &str) -> String {
    let lines: Vec<Vec<Span>> = text.trim_end().lines().flat_map(|line| wrapped(spans(line))).collect();
    let width = MARGIN * 2 + (COLUMNS as f32 * CHARACTER) as usize;
    let height = MARGIN * 2 + lines.len() * LINE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n\
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

const PLAIN: (&str, &str) = ("#d7dae0", "400");
const DIM: &str = "#7f848e";

fn spans(line: &str) -> Vec<Span> {
    let mut pen = PLAIN;
    let mut spans = Vec::new();
    for (nth, piece) in line.split("\x1b[").enumerate() {
        let text = match piece.split_once('m') {
            Some((codes, text)) if nth > 0 => {
                pen = codes.split(';').fold(pen, after);
                text
            }
            _ => piece,
        };
        if !text.is_empty() {
            spans.push(Span { colour: pen.0, weight: pen.1, text: text.to_owned() });
        }
    }
    spans
}

/// Colour and weight behind one code.
fn after((colour, weight): (&'static str, &'static str), code: &str) -> (&'static str, &'static str) {
    match code {
        "1" if colour == PLAIN.0 => ("#ffffff", "700"),
        "1" => (colour, "700"),
        "2" => (DIM, weight),
        "31" => ("#e06c75", weight),
        "32" => ("#98c379", weight),
        "33" => ("#e5c07b", weight),
        "34" => ("#61afef", "600"),
        "35" => ("#c678dd", weight),
        "36" => ("#56b6c2", "600"),
        "90" => (DIM, weight),
        // Underlined, and colours behind the text.
        "4" | "49" => (colour, weight),
        _ => PLAIN,
    }
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
        let drawn = svg("a label", "\x1b[32mgood\x1b[0m <b> & more\x1b[1;31mbad\x1b[39m\x1b[2mdim");
        assert!(drawn.contains(">good</text>") && drawn.contains("#98c379") && drawn.contains("\"a label\""));
        assert!(drawn.contains("fill=\"#e06c75\" font-weight=\"700\"") && drawn.contains(DIM));
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
