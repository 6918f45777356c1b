//! What tools cost on a large tree: a whole turn with one call, beside the program that people would use. Needs
//! `rg`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Place;
use super::agent::{Agent, Prompt};
use super::aims::{Aim, SEARCH_RATIO, TOOL_CALLS, TREE_DIRECTORIES, TREE_FILES_EACH, TREE_LINES};
use super::figures::median_ms;
use super::table::{Limit, Row, Table};

/// Edits pass without a question: no user is there to answer.
const CONFIG: &str = "model = \"bench/default\"\napproval = \"edits\"\n\n[providers.bench]\ndialect = \"script\"\nscript = \"bench.script\"\n";

pub(crate) fn measure(place: &Place, table: &mut Table) -> Result<()> {
    let home = place.home_with(CONFIG)?;
    let tree = home.path("work");
    plant(&tree)?;
    let mut agent = home.start()?;
    let (session, _) = agent.new_session()?;
    for (figure, prompt, peer, aim) in [
        ("glob over 50,000 files", Prompt::Glob, &["rg", "--files"][..], Some(SEARCH_RATIO)),
        ("grep over 50,000 files", Prompt::Grep, &["rg", "--line-number", NEEDLE], Some(SEARCH_RATIO)),
        ("read of a file", Prompt::Read, &["cat", SAMPLE], None),
        ("edit of a file, there and back", Prompt::Edit, &["sh", "-c", THERE_AND_BACK], None),
    ] {
        let (ours, theirs) = in_turns(&mut agent, &session, prompt, &tree, peer)?;
        let limit = Limit::new(theirs, peer.join(" "));
        table.push(Row { figure: figure.to_owned(), unit: "ms", value: ours, limit, aim: None });
        if let Some(aim) = aim {
            let figure = format!("{figure}, beside {}", peer[0]);
            table.push(Row {
                figure,
                unit: "times",
                value: ours / theirs,
                limit: None,
                aim: Some::<Aim>(aim),
            });
        }
    }
    agent.finish()
}

/// What is searched for: in one file of a hundred.
pub(crate) const NEEDLE: &str = "needle_[0-9]+";

/// A file that is always there.
pub(crate) const SAMPLE: &str = "d000/f00.rs";

const THERE_AND_BACK: &str =
    "sed -i s/unique_word/other_word/ d000/f00.rs && sed -i s/other_word/unique_word/ d000/f00.rs";

/// One after the other, so that both meet the same machine; the first of each warms the cache and is not
/// counted.
fn in_turns(
    agent: &mut Agent,
    session: &str,
    prompt: Prompt,
    tree: &Path,
    peer: &[&str],
) -> Result<(f64, f64)> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=TOOL_CALLS {
        let started = Instant::now();
        agent.prompt(session, prompt)?;
        ours.push(started.elapsed());
        theirs.push(run(tree, peer)?);
    }
    Ok((median_ms(&ours[1..])?, median_ms(&theirs[1..])?))
}

fn run(tree: &Path, arguments: &[&str]) -> Result<Duration> {
    let (program, arguments) = arguments.split_first().context("no program")?;
    let started = Instant::now();
    // Into a pipe, as an agent would read it: with nowhere to write to, rg stops at the first match.
    let output = Command::new(program).args(arguments).current_dir(tree).stdin(Stdio::null()).output();
    let elapsed = started.elapsed();
    let output = output.with_context(|| format!("{program} is not installed"))?;
    ensure!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(elapsed)
}

/// Source as it is: many directories, files of a few kilobytes.
fn plant(tree: &Path) -> Result<()> {
    for directory in 0..TREE_DIRECTORIES {
        let path = tree.join(format!("d{directory:03}"));
        fs::create_dir(&path)?;
        for file in 0..TREE_FILES_EACH {
            let number = directory * TREE_FILES_EACH + file;
            let mut text = String::new();
            for line in 0..TREE_LINES {
                text += &format!("    let value_{line} = compute_{number}(line, {line});\n");
            }
            if number.is_multiple_of(100) {
                text += &format!("// needle_{number} unique_word\n");
            }
            fs::write(path.join(format!("f{file:02}.rs")), text)?;
        }
    }
    Ok(())
}
