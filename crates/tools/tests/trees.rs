//! Trees of processes that want to stay: each behaviour, ended in each way, at each level; nothing survives.

mod behaviours;
mod survivors;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use attache_core::ports::ToolOutcome;
use attache_sandbox::Level;
use futures_util::StreamExt;
use serde_json::json;

use crate::kill::{VICTIM, Victim};
use crate::sandbox::ORDINARY;
use crate::trial::{Alone, Trial, alone, resident_kilobytes};

use behaviours::{BEHAVIOURS, Behaviour, Output, Shell};
use survivors::Tree;

/// The whole tree is gone after this, counted from the signal, or from the death of who owned it.
const GONE: Duration = Duration::from_secs(3);

/// A shell that has exited is answered for within this, whatever it has left: two seconds for the output, and
/// the end.
const DRAINED: Duration = Duration::from_secs(3);

/// What holds no output is not waited for.
const UNDRAINED: Duration = Duration::from_secs(2);

const SANDBOXED_ROUNDS: usize = 6;

/// How often each behaviour is ended in each of the three ways.
const ROUNDS: [(Level, usize); 3] = [(Level::Full, SANDBOXED_ROUNDS), (Level::Reduced, 1), (Level::None, 1)];

const _: () = assert!(3 * BEHAVIOURS.len() * (SANDBOXED_ROUNDS + 2) >= 200);

/// One command to be run and ended.
#[derive(Clone, Copy, Debug)]
struct Run {
    behaviour: Behaviour,
    level: Level,
    round: usize,
}

/// All runs of one way, two at a time; what makes hundreds of processes runs alone, so that it takes no time of
/// another's dead-line. Once more as an ordinary user it is one of each.
async fn each<Done: Future<Output = ()>>(run: impl Fn(Run) -> Done) {
    let is_repeated = std::env::var_os(ORDINARY).is_some();
    let runs = ROUNDS.into_iter().flat_map(|(level, rounds)| {
        let rounds = if is_repeated { 1 } else { rounds };
        (0..rounds).flat_map(move |round| BEHAVIOURS.map(|behaviour| Run { behaviour, level, round }))
    });
    let (floods, calm): (Vec<Run>, Vec<Run>) = runs.partition(|run| run.behaviour.is_counted_out(run.level));
    for (runs, at_a_time) in [(calm, 2), (floods, 1)] {
        let running = futures_util::stream::iter(runs).map(&run).buffer_unordered(at_a_time);
        running.for_each(|()| std::future::ready(())).await;
    }
}

/// A number that nothing else on the machine has among its words.
fn mark() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("6{:07}.{:04}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

fn trial(level: Level) -> Trial {
    match level {
        Level::Full | Level::Reduced => Trial::held(level),
        Level::None => Trial::new(),
    }
}

async fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Nothing of it lives, at the latest `GONE` after `since`.
async fn nothing_survives(run: Run, tree: &mut Tree, since: Instant) {
    loop {
        let alive = tree.alive();
        if alive.is_empty() {
            return;
        }
        assert!(
            since.elapsed() < GONE,
            "{run:?}: {} survive, {:?}",
            alive.len(),
            &alive[..alive.len().min(5)]
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_tree_that_is_cancelled_or_out_of_time_is_gone_in_three_seconds() {
    each(ended).await;
}

async fn ended(run: Run) {
    const TIME: Duration = Duration::from_millis(1_500);
    let trial = trial(run.level);
    let mark = mark();
    let mut tree = Tree::of(&mark);
    let is_cancelled = run.round > 0;
    // What is ended by its count needs the time to get there, also on a busy machine.
    let has_time = is_cancelled || run.behaviour.is_counted_out(run.level);
    let timeout = if has_time { GONE * 20 } else { TIME };
    let command = run.behaviour.command(run.level, Shell::Stays, &mark);
    let input = json!({"command": command, "timeout_ms": timeout.as_millis()});
    let (tool, runtime) = (trial.tool("bash").clone(), trial.runtime());
    let call = tokio::spawn(async move { tool.run(input, runtime).await });
    let mut signalled = Instant::now();
    if is_cancelled && !run.behaviour.is_counted_out(run.level) {
        let ready = trial.root.join("ready");
        wait_until("it does not get ready", GONE * 10, || ready.exists()).await;
        assert_ne!(tree.alive(), Vec::<String>::new(), "{run:?}: nothing to be ended");
        signalled = Instant::now();
        trial.cancel.cancel();
    }
    let outcome = call.await.unwrap();
    let ToolOutcome::Error { text, .. } = outcome else { panic!("{run:?}: {outcome:?}") };
    let expected = if run.behaviour.is_counted_out(run.level) {
        signalled = Instant::now();
        "it had more than 512 processes and was ended"
    } else if is_cancelled {
        "cancelled and ended"
    } else {
        // Its time runs from its start on, which is before it was ready.
        signalled = made_at(&trial.root.join("ready")) + TIME;
        "timed out after 1500 ms and ended"
    };
    assert!(text.contains(expected), "{run:?}: {text:.300}");
    assert!(signalled.elapsed() <= GONE, "{run:?}: answered after {:?}", signalled.elapsed());
    assert!(trial.root.join("ready").exists(), "{run:?}: it did not get ready");
    nothing_survives(run, &mut tree, signalled).await;
}

/// When a file was made, on the clock that dead-lines are measured with.
fn made_at(path: &Path) -> Instant {
    let metadata = path.metadata().unwrap();
    // Some are touched again and again.
    let made = metadata.created().or_else(|_| metadata.modified()).unwrap();
    Instant::now() - made.elapsed().unwrap_or_default()
}

#[tokio::test]
async fn what_a_shell_leaves_ends_with_it() {
    each(left).await;
}

async fn left(run: Run) {
    let trial = trial(run.level);
    let mark = mark();
    let command = run.behaviour.command(run.level, Shell::Exits, &mark);
    let (_, presentation) = trial.done("bash", json!({"command": command})).await;
    let returned = (Instant::now(), SystemTime::now());
    assert_eq!(presentation.metadata.unwrap().exit_code, Some(0), "{run:?}");
    let exited = trial.root.join("ended").metadata().unwrap().modified().unwrap();
    let elapsed = returned.1.duration_since(exited).unwrap_or_default();
    let most = match run.behaviour.output {
        Output::Held => DRAINED,
        Output::Let => UNDRAINED,
    };
    assert!(elapsed <= most, "{run:?}: answered {elapsed:?} after its shell's end");
    nothing_survives(run, &mut Tree::of(&mark), returned.0 - elapsed).await;
}

#[tokio::test]
async fn a_tree_dies_with_who_owns_it() {
    each(orphaned).await;
}

async fn orphaned(run: Run) {
    let mark = mark();
    let mut tree = Tree::of(&mark);
    // What the victim can't remove any more goes with this.
    let place = tempfile::tempdir().unwrap();
    let argument = format!("{:?}/{}/{mark}", run.level, run.behaviour.name);
    let victim = Victim::start_in(place.path(), "trees::victim_with_a_tree", &argument);
    wait_until("it does not get ready", GONE * 10, || ready_below(place.path()).is_some()).await;
    assert_ne!(tree.alive(), Vec::<String>::new(), "{run:?}: nothing to be ended");
    let killed = Instant::now();
    victim.kill();
    nothing_survives(run, &mut tree, killed).await;
}

/// The file that the victim's command makes, in the workspace that the victim makes.
fn ready_below(place: &Path) -> Option<PathBuf> {
    let entries = place.read_dir().unwrap().flatten();
    entries.map(|entry| entry.path().join("root/ready")).find(|path| path.exists())
}

#[tokio::test]
async fn victim_with_a_tree() {
    let Ok(argument) = std::env::var(VICTIM) else { return };
    let [level, name, mark] = argument.split('/').collect::<Vec<_>>().try_into().unwrap();
    let level = ROUNDS.iter().map(|(level, _)| *level).find(|known| format!("{known:?}") == level).unwrap();
    let command = Behaviour::of_name(name).command(level, Shell::StaysForItsOwner, mark);
    trial(level).run("bash", json!({"command": command})).await;
}

#[tokio::test]
async fn a_flood_and_a_line_without_end_do_not_fill_our_memory() {
    if alone("trees::a_flood_and_a_line_without_end_do_not_fill_our_memory", &[]) == Alone::Done {
        return;
    }
    for (level, _) in ROUNDS {
        let trial = trial(level);
        trial.done("bash", json!({"command": "seq 100000"})).await;
        let before = resident_kilobytes();
        for name in ["floods", "writes a line of 10 GB"] {
            let command = Behaviour::of_name(name).command(level, Shell::Stays, &mark());
            let error = trial.failed("bash", json!({"command": command, "timeout_ms": 1_000})).await;
            assert!(error.contains("bytes left out") && error.len() < 210_000, "{level:?}: {name}");
        }
        assert!(resident_kilobytes() < before + 8 * 1024, "{level:?}: {before} → {}", resident_kilobytes());
    }
}
