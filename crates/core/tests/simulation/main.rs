//! A deterministic simulation of the core: a seed decides every delay, order and action; afterwards the
//! invariants are checked over everything that was committed, shown, answered and run. `TEST_SIM_SEED=n`
//! replays one seed and tells its story; `TEST_SIM_SEEDS=n` runs n seeds per test.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod check;
mod observed;
mod shown_to_fail;
mod story;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use story::Rewinds;

/// Seeds of one test; several tests, so that they run side by side.
const SEEDS: u64 = 320;

#[test]
fn seeds_1() {
    run(0);
}

#[test]
fn seeds_2() {
    run(1);
}

#[test]
fn seeds_3() {
    run(2);
}

#[test]
fn seeds_4() {
    run(3);
}

#[test]
fn seeds_5() {
    run(4);
}

#[test]
fn seeds_6() {
    run(5);
}

#[test]
fn seeds_7() {
    run(6);
}

#[test]
fn seeds_8() {
    run(7);
}

/// Each of these found a fault when it was first run; nothing was rewound then.
#[test]
fn seeds_that_failed_once() {
    for seed in [288, 501, 1_823, 12_338, 16_085, 22_533] {
        assert_eq!(check::everything(&simulate_with(seed, Rewinds::None)), Ok(()), "seed {seed}");
    }
}

/// The same seed gives the same run, entry by entry; else no failure could be replayed.
#[test]
fn turns_are_rewound_while_others_run() {
    let hidden = (0..40).filter(|seed| {
        let observed = simulate(*seed);
        observed.disk.messages.values().any(|row| row.metadata.is_hidden() && row.seq.is_some())
    });
    let hidden = hidden.count();
    assert!(hidden >= 4, "only {hidden} of 40 stories end with a turn that was rewound");
}

#[test]
fn a_seed_replays_itself() {
    for seed in [3, 77, 1_234] {
        let [first, second] = [(); 2].map(|()| simulate(seed));
        assert_eq!(first.disk.archive, second.disk.archive, "seed {seed}");
        assert_eq!(first.runs, second.runs, "seed {seed}");
    }
}

fn run(block: u64) {
    let wanted = std::env::var("TEST_SIM_SEED").ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match wanted {
        // One block replays it; the others have nothing to do.
        Some(seed) if block == 0 => seed..seed + 1,
        Some(_) => 0..0,
        None => {
            let seeds = std::env::var("TEST_SIM_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
            block * seeds..(block + 1) * seeds
        }
    };
    let mut failed = Vec::new();
    for seed in seeds {
        let result = catch_unwind(AssertUnwindSafe(|| check::everything(&simulate(seed))));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(broken)) => failed.push(format!("seed {seed}: {broken}")),
            Err(_) => failed.push(format!("seed {seed}: panicked")),
        }
    }
    assert!(
        failed.is_empty(),
        "{} seeds failed; replay one with TEST_SIM_SEED=n cargo test -p attache-core --test simulation\n{}",
        failed.len(),
        failed.join("\n")
    );
}

fn simulate(seed: u64) -> observed::Observed {
    simulate_with(seed, Rewinds::Some)
}

fn simulate_with(seed: u64, rewinds: Rewinds) -> observed::Observed {
    quieten_wanted_panics();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story::tell(seed, rewinds))
}

/// Tools that panic on purpose would fill the output.
fn quieten_wanted_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let wanted = panic.payload_as_str().is_some_and(|text| text.ends_with("as the test wants"));
            if !wanted {
                usual(panic);
            }
        }));
    });
}
