//! A directory swapped for a link out of the root, over and over, while the tool writes into it ten thousand
//! times.

use std::sync::atomic::{AtomicBool, Ordering};

use attache_core::ports::ToolOutcome;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::trial::{Trial, names};

const WRITES: usize = 10_000;

#[test]
fn ten_thousand_writes_into_a_swapped_directory_stay_inside() {
    // In memory where that is possible: ten thousand times to the disk is long, and the race is the same.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let base = place.path().canonicalize().unwrap();
    let (inner, link, outside) = (base.join("root/inner"), base.join("root/link"), base.join("outside"));
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let trial = Trial::beneath(base);
    let stop = AtomicBool::new(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &inner, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for number in 0..WRITES {
            let input = json!({"path": format!("inner/f{}", number % 10), "content": "x"});
            match runtime.block_on(trial.run("write", input)) {
                ToolOutcome::Output { .. } => written += 1,
                ToolOutcome::Error { .. } | ToolOutcome::Picture { .. } => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused: no race took place");
    assert_eq!(names(&outside), Vec::<String>::new());
}
