//! Begins turns at the times of a schedule: one at a time for each entry. Times that passed while nobody could
//! see to them are told, and not made up for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use attache_core::calendar::{local, minutes};
use attache_core::ports::Clock;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Cron, Trigger, TriggerHost, TriggerRunner};
use crate::limits::{MISSED_COUNTED, SCHEDULE_LATE, SCHEDULE_LOOK};
use crate::metrics::PromptWay;

/// A turn that begins again and again.
#[derive(Clone, Debug)]
pub struct ScheduleEntry {
    pub trigger: Trigger,
    pub cron: Cron,
    pub prompt: String,
}

/// Until `ending` fires; what runs goes on.
pub(crate) fn keep_schedule(entries: Vec<ScheduleEntry>, runner: &TriggerRunner, ending: &CancellationToken) {
    for entry in entries {
        let (runner, ending) = (runner.clone(), ending.clone());
        tokio::spawn(async move {
            let mut times = EntryTimes {
                name: entry.trigger.name.clone(),
                cron: entry.cron.clone(),
                clock: runner.agent.clock.clone(),
                host: runner.host.clone(),
            };
            let begin = || {
                let (runner, entry) = (runner.clone(), entry.clone());
                async move { begin(&runner, &entry).await }
            };
            tokio::select! {
                () = ending.cancelled() => {}
                () = times.keep(begin) => {}
            }
        });
    }
}

async fn begin(runner: &TriggerRunner, entry: &ScheduleEntry) {
    let what = format!("schedule \"{}\"", entry.trigger.name);
    match runner.begin(&entry.trigger).await {
        Ok(run) => {
            runner.host.tell(&format!("{what}: session {} begins", run.id()));
            runner.run(&what, run, entry.prompt.clone(), PromptWay::Schedule).await;
        }
        Err(reason) => runner.host.warn(&format!("{what} could not begin: {reason}")),
    }
}

/// When an entry is due, and what becomes of a time that can't be kept.
#[derive(Debug)]
struct EntryTimes {
    name: String,
    cron: Cron,
    clock: Arc<dyn Clock>,
    host: Arc<dyn TriggerHost>,
}

/// Times that were not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MissedTimes {
    count: usize,
    first: i64,
    last: i64,
}

/// Times that have passed: whether the last of them is to be kept now, and those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PassedTimes {
    missed: Option<MissedTimes>,
    due: Option<i64>,
}

impl EntryTimes {
    async fn keep<F>(&mut self, begin: impl Fn() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let now = self.clock.now_ms();
        let mut seen = self.host.seen_to(&self.name).unwrap_or(now).min(now);
        // A time of the moment at which the server begins is not one that it was there for.
        if let Some(missed) = self.passed(seen, now).all() {
            self.tell(missed, "no server ran then");
        }
        seen = self.see_to(now);
        let mut running: Option<JoinHandle<()>> = None;
        loop {
            let Some(next) = self.cron.next(seen, &self.clock.zone()) else { return };
            self.wait_until(next).await;
            let now = self.clock.now_ms().max(next);
            let PassedTimes { missed, due } = self.passed(seen, now);
            seen = self.see_to(now);
            if let Some(missed) = missed {
                self.tell(missed, "the machine or the server was not awake then");
            }
            let Some(due) = due else { continue };
            match &running {
                Some(run) if !run.is_finished() => {
                    self.tell(
                        MissedTimes { count: 1, first: due, last: due },
                        "the run before still went on",
                    );
                }
                Some(_) | None => running = Some(tokio::spawn(begin())),
            }
        }
    }

    /// In small steps: clocks are set, and machines sleep.
    async fn wait_until(&self, at_ms: i64) {
        loop {
            let left = at_ms.saturating_sub(self.clock.now_ms());
            let Ok(left) = u64::try_from(left) else { return };
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left).min(SCHEDULE_LOOK)).await;
        }
    }

    /// What lies between the two, the first excluded.
    fn passed(&self, seen: i64, now: i64) -> PassedTimes {
        let zone = self.clock.zone();
        let mut at = seen;
        let times: Vec<i64> = std::iter::from_fn(|| {
            at = self.cron.next(at, &zone).filter(|next| *next <= now)?;
            Some(at)
        })
        .take(MISSED_COUNTED)
        .collect();
        let late = i64::try_from(SCHEDULE_LATE.as_millis()).unwrap_or(i64::MAX);
        let due = times.last().copied().filter(|last| now - last <= late);
        let missed = &times[..times.len() - usize::from(due.is_some())];
        let missed = missed.first().zip(missed.last()).map(|(first, last)| MissedTimes {
            count: missed.len(),
            first: *first,
            last: *last,
        });
        PassedTimes { missed, due }
    }

    fn see_to(&self, now: i64) -> i64 {
        self.host.see_to(&self.name, now);
        now
    }

    fn tell(&self, missed: MissedTimes, why: &str) {
        let shown = |at| minutes(&local(at, self.clock.zone()));
        let MissedTimes { count, first, last } = missed;
        let times = match count {
            1 => format!("the run of {}", shown(first)),
            MISSED_COUNTED.. => format!("at least {count} runs from {} on", shown(first)),
            _ => format!("{count} runs from {} to {}", shown(first), shown(last)),
        };
        let text = format!("schedule \"{}\": {times} did not take place: {why}", self.name);
        self.host.warn(&text);
    }
}

impl PassedTimes {
    /// With the one that would be kept.
    fn all(self) -> Option<MissedTimes> {
        match (self.missed, self.due) {
            (missed, None) => missed,
            (None, Some(due)) => Some(MissedTimes { count: 1, first: due, last: due }),
            (Some(missed), Some(due)) => Some(MissedTimes { count: missed.count + 1, last: due, ..missed }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use attache_core::calendar::TimeZone;
    use jiff::Timestamp;

    use super::*;

    /// A clock that runs with the test's, plus whatever somebody set it by.
    #[derive(Debug)]
    struct SetClock {
        began: tokio::time::Instant,
        offset: AtomicI64,
    }

    impl Clock for SetClock {
        fn now_ms(&self) -> i64 {
            self.offset.load(Ordering::SeqCst) + i64::try_from(self.began.elapsed().as_millis()).unwrap()
        }

        fn zone(&self) -> TimeZone {
            TimeZone::UTC
        }
    }

    #[derive(Debug, Default)]
    struct Told {
        seen: Mutex<Option<i64>>,
        told: Mutex<Vec<String>>,
    }

    impl TriggerHost for Told {
        fn seen_to(&self, _: &str) -> Option<i64> {
            *self.seen.lock().unwrap()
        }

        fn see_to(&self, _: &str, at_ms: i64) {
            *self.seen.lock().unwrap() = Some(at_ms);
        }

        fn tell(&self, _: &str) {}

        fn warn(&self, text: &str) {
            self.told.lock().unwrap().push(text.to_owned());
        }
    }

    struct Kept {
        clock: Arc<SetClock>,
        host: Arc<Told>,
        runs: Arc<AtomicUsize>,
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    /// Every quarter of an hour, each run so long.
    fn keep(now: &str, seen: Option<&str>, run: Duration) -> Kept {
        let clock =
            Arc::new(SetClock { began: tokio::time::Instant::now(), offset: AtomicI64::new(ms(now)) });
        let host = Arc::new(Told { seen: Mutex::new(seen.map(ms)), ..Told::default() });
        let runs = Arc::<AtomicUsize>::default();
        let (cron, name) = (Cron::parse("*/15 * * * *").unwrap(), "quarter".to_owned());
        let mut times = EntryTimes { name, cron, clock: clock.clone(), host: host.clone() };
        let counted = runs.clone();
        tokio::spawn(async move {
            let begin = || {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(run)
            };
            times.keep(begin).await;
        });
        Kept { clock, host, runs }
    }

    impl Kept {
        async fn pass(&self, time: Duration) -> (usize, Vec<String>) {
            tokio::time::sleep(time).await;
            let told = std::mem::take(&mut *self.host.told.lock().unwrap());
            (self.runs.swap(0, Ordering::SeqCst), told)
        }
    }

    const QUARTER: Duration = Duration::from_secs(15 * 60);
    const MOMENT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn each_time_begins_one_run() {
        let kept = keep("2026-05-01T10:01:00Z", None, MOMENT);
        assert_eq!(kept.pass(QUARTER * 4).await, (4, vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn times_without_a_server_are_told_and_not_made_up_for() {
        let kept = keep("2026-05-01T10:01:00Z", Some("2026-05-01T09:01:00Z"), MOMENT);
        let (runs, told) = kept.pass(MOMENT).await;
        assert_eq!(runs, 0);
        assert_eq!(
            told,
            [
                "schedule \"quarter\": 4 runs from 2026-05-01 09:15 to 2026-05-01 10:00 did not take place: no server ran then"
            ]
        );
        let kept = keep("2026-05-01T10:01:00Z", Some("2020-05-01T09:01:00Z"), MOMENT);
        let (_, told) = kept.pass(MOMENT).await;
        assert!(told[0].contains("at least 1000 runs from 2020-05-01 09:15 on"), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_goes_on_leaves_the_next_one_out() {
        let kept = keep("2026-05-01T10:01:00Z", None, QUARTER + QUARTER / 2);
        let (runs, told) = kept.pass(QUARTER * 4).await;
        assert_eq!((runs, told.len()), (2, 2), "{told:?}");
        assert!(
            told[0].contains("the run of 2026-05-01 10:30") && told[0].contains("still went on"),
            "{told:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_repeats_nothing_and_what_it_leaps_over_is_told() {
        let kept = keep("2026-05-01T10:01:00Z", None, MOMENT);
        assert_eq!(kept.pass(QUARTER).await, (1, vec![]));
        // An hour back: 10:15 comes a second time.
        kept.clock.offset.fetch_sub(60 * 60 * 1_000, Ordering::SeqCst);
        assert_eq!(kept.pass(QUARTER * 4).await, (0, vec![]));
        assert_eq!(kept.pass(QUARTER).await.0, 1);
        // Asleep for an hour and two minutes.
        kept.clock.offset.fetch_add(62 * 60 * 1_000, Ordering::SeqCst);
        let (runs, told) = kept.pass(Duration::from_secs(60)).await;
        assert_eq!((runs, told.len()), (0, 1), "{told:?}");
        assert!(told[0].contains("4 runs from 2026-05-01 10:45 to 2026-05-01 11:30"), "{told:?}");
        assert_eq!(kept.pass(QUARTER).await.0, 1);
    }
}
