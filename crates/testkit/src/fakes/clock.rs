//! Wall-clock time that follows tokio's, so that paused time moves both.

use attache_core::calendar::TimeZone;
use attache_core::ports::Clock;
use tokio::time::Instant;

#[derive(Debug)]
pub struct TokioClock {
    started: Instant,
}

impl TokioClock {
    /// Starts at a fixed date: 2026-01-01.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> i64 {
        1_767_225_600_000 + self.started.elapsed().as_millis() as i64
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }
}
