//! Runs steps one after another, each under its heading and with its time. A failure is told, never skipped
//! over.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: String,
    time: Duration,
    outcome: Result<()>,
}

impl Steps {
    /// A failed step does not keep the next from running: one run shows all that is wrong.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = work();
        let time = started.elapsed();
        match &outcome {
            Ok(()) => eprintln!("-- {name}: ok ({})", seconds(time)),
            Err(error) => eprintln!("-- {name}: FAILED ({}): {error:#}", seconds(time)),
        }
        self.done.push(Done { name: name.to_owned(), time, outcome });
    }

    pub(crate) fn finish(self) -> Result<()> {
        eprint!("\n{}", self.summary());
        match self.done.iter().filter(|done| done.outcome.is_err()).count() {
            0 if self.done.is_empty() => bail!("nothing was run"),
            0 => Ok(()),
            failed => bail!("{failed} of {} steps failed", self.done.len()),
        }
    }

    fn summary(&self) -> String {
        let mut text = String::from("== summary\n");
        for done in &self.done {
            let verdict = if done.outcome.is_ok() { "ok    " } else { "FAILED" };
            text += &format!("{verdict} {:>8}  {}\n", seconds(done.time), done.name);
        }
        for done in &self.done {
            if let Err(error) = &done.outcome {
                text += &format!("failed: {}: {error:#}\n", done.name);
            }
        }
        let failed = self.done.iter().filter(|done| done.outcome.is_err()).count();
        text + &format!("{} passed, {failed} failed\n", self.done.len() - failed)
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_run_and_is_named_at_the_end() {
        let mut steps = Steps::default();
        steps.step("first", || bail!("broken"));
        steps.step("second", || Ok(()));
        let summary = steps.summary();
        assert!(summary.contains("failed: first: broken"), "{summary}");
        assert!(summary.ends_with("1 passed, 1 failed\n"), "{summary}");
        assert!(steps.finish().is_err());
    }

    #[test]
    fn only_a_run_that_did_something_passes() {
        assert!(Steps::default().finish().is_err());
        let mut steps = Steps::default();
        steps.step("one", || Ok(()));
        assert!(steps.finish().is_ok());
    }
}
