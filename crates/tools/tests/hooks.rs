//! Hooks at their port: what they are told, what they say on each of their outputs, and how they end, at every
//! level of the sandbox.

use std::time::{Duration, Instant};

use attache_core::hooks::{Hook, HookCommand, HookHold};
use attache_core::ports::hooks::{HookEnd, HookJob, HookRunner};
use attache_core::ports::tool::Site;
use attache_sandbox::Level;
use attache_testkit::fakes::hooks::hook;
use attache_tools::{HookProcesses, UnheldHooks};
use tokio_util::sync::CancellationToken;

use crate::trial::Trial;

fn runner(trial: &Trial, unheld: UnheldHooks) -> HookProcesses {
    HookProcesses { sandbox: trial.sandbox.clone(), unheld }
}

fn job(trial: &Trial, hook: Hook, input: &str) -> HookJob {
    HookJob { hook, input: input.to_owned(), site: Site::of_roots(trial.workspace.clone()) }
}

async fn end(trial: &Trial, hook: Hook, input: &str) -> HookEnd {
    let runner = runner(trial, UnheldHooks::Run);
    runner.run(job(trial, hook, input), CancellationToken::new()).await
}

fn exited(code: i32, output: &str, errors: &str) -> HookEnd {
    HookEnd::Exited { code, output: output.to_owned(), errors: errors.to_owned() }
}

#[tokio::test]
async fn input_output_and_errors_are_told_apart_at_every_level() {
    for level in [Level::None, Level::Reduced, Level::Full] {
        let trial = Trial::held(level);
        let said = end(&trial, hook("before-tool", "echo why >&2; cat; exit 2"), "{\"a\":1}").await;
        assert_eq!(said, exited(2, "{\"a\":1}", "why\n"), "{level:?}");
        // Also who opens it by its name.
        let said = end(&trial, hook("before-tool", "cat /dev/stdin"), "again").await;
        assert_eq!(said, exited(0, "again", ""), "{level:?}");
        let silent = end(&trial, hook("before-tool", "true"), "nobody reads this").await;
        assert_eq!(silent, exited(0, "", ""), "{level:?}");
    }
}

#[tokio::test]
async fn a_list_is_run_as_it_is() {
    let trial = Trial::new();
    let words = ["printf", "%s|", "a b", "$HOME", "*"].map(str::to_owned).to_vec();
    let listed = Hook { command: HookCommand::Line(words), ..hook("prompt", "x") };
    assert_eq!(end(&trial, listed, "").await, exited(0, "a b|$HOME|*|", ""));
    let missing = Hook { command: HookCommand::Line(vec!["/nowhere/x".into()]), ..hook("prompt", "x") };
    let HookEnd::Exited { code: 127, errors, .. } = end(&trial, missing, "").await else { panic!() };
    assert!(errors.contains("/nowhere/x"), "{errors}");
}

#[tokio::test]
async fn what_it_prints_is_bounded_and_a_large_input_is_whole() {
    let trial = Trial::new();
    let flood =
        hook("prompt", "head -c 5000000 /dev/zero | tr '\\0' x; head -c 5000000 /dev/zero | tr '\\0' y >&2");
    let HookEnd::Exited { code: 0, output, errors } = end(&trial, flood, "").await else { panic!() };
    assert_eq!((output.len(), errors.len()), (64 * 1024, 16 * 1024));
    let large = "z".repeat(3_000_000);
    assert_eq!(end(&trial, hook("prompt", "wc -c"), &large).await, exited(0, "3000000\n", ""));
}

#[tokio::test]
async fn a_root_can_be_written_and_nothing_else() {
    let trial = Trial::held(Level::Full);
    let outside = trial.base.join("home");
    let command = format!("touch made; touch {}/left 2>/dev/null && echo left; exit 0", outside.display());
    assert_eq!(end(&trial, hook("after-tool", &command), "").await, exited(0, "", ""));
    assert!(trial.root.join("made").exists() && !outside.join("left").exists());
    let free = Hook { hold: HookHold::Off, ..hook("after-tool", &command) };
    assert_eq!(end(&trial, free, "").await, exited(0, "left\n", ""));
    assert!(outside.join("left").exists());
}

#[tokio::test]
async fn what_nothing_can_hold_is_not_run_unless_the_user_wants_it() {
    let trial = Trial::new();
    let run = async |hook: Hook| {
        runner(&trial, UnheldHooks::Refused).run(job(&trial, hook, ""), CancellationToken::new()).await
    };
    let HookEnd::Failed(why) = run(hook("prompt", "touch made")).await else { panic!() };
    assert!(why.contains("nothing can hold it here") && !trial.root.join("made").exists(), "{why}");
    let free = Hook { hold: HookHold::Off, ..hook("prompt", "touch made") };
    assert_eq!(run(free).await, exited(0, "", ""));
    assert!(trial.root.join("made").exists());
}

const STUBBORN: &str = "trap '' TERM; setsid bash -c \"trap '' TERM; touch started; sleep 313\" & sleep 313";

fn sleeps(root: &std::path::Path) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let place = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        command.starts_with(b"sleep\x00313") && place.starts_with(root)
    };
    entries.into_iter().any(|entry| is_ours(&entry))
}

#[tokio::test]
async fn time_runs_out_for_all_it_started() {
    for level in [Level::None, Level::Full] {
        let trial = Trial::held(level);
        let short = Hook { time: Duration::from_secs(1), ..hook("prompt", STUBBORN) };
        let since = Instant::now();
        assert_eq!(end(&trial, short, "").await, HookEnd::TimedOut(Duration::from_secs(1)));
        assert!(trial.root.join("started").exists());
        assert!(since.elapsed() < Duration::from_millis(1_900), "{level:?} {:?}", since.elapsed());
        assert!(!sleeps(&trial.root), "{level:?}");
    }
}

/// By the token, and by letting go of the future.
#[tokio::test]
async fn a_cancel_ends_all_it_started() {
    for level in [Level::None, Level::Full] {
        let trial = Trial::held(level);
        let cancel = CancellationToken::new();
        let runner = runner(&trial, UnheldHooks::Run);
        let running = tokio::spawn(runner.run(job(&trial, hook("prompt", STUBBORN), ""), cancel.clone()));
        while !sleeps(&trial.root) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let since = Instant::now();
        cancel.cancel();
        assert_eq!(running.await.unwrap(), HookEnd::Cancelled);
        assert!(since.elapsed() < Duration::from_millis(500), "{level:?} {:?}", since.elapsed());
        assert!(!sleeps(&trial.root), "{level:?}");

        let running =
            tokio::spawn(runner.run(job(&trial, hook("prompt", STUBBORN), ""), CancellationToken::new()));
        while !sleeps(&trial.root) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running.abort();
        let since = Instant::now();
        while sleeps(&trial.root) {
            assert!(since.elapsed() < Duration::from_millis(500), "{level:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
