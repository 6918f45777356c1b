//! Takes spans and hands them to a task that sends them. The task begins with the first span; no caller waits
//! for it, but the end of the process for a moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_core::ports::Telemetry;
use attache_core::ports::telemetry::{ContentPolicy, FinishedSpan};
use attache_core::redact::Redactor;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::collector::{Collector, ServiceResource};
use crate::encode::OtlpEncoder;
use crate::limits::BATCH_DELAY;
use crate::queue::SpanQueue;
use crate::send::BatchSender;

#[derive(Debug)]
pub struct OtlpExporter {
    shared: Arc<ExportState>,
    /// `None` until there was a span, and again once it has ended. Why a lock: turns end side by side.
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
pub(crate) struct ExportState {
    pub(crate) destination: Collector,
    pub(crate) encoder: OtlpEncoder,
    /// Why a lock: turns put in what the worker takes out. Held for a push.
    queue: Mutex<SpanQueue>,
    /// A span came, or enough for a whole request.
    came: Notify,
    full: Notify,
    pub(crate) ending: CancellationToken,
    /// Spans of the request under way.
    in_flight: AtomicU64,
    lost: AtomicU64,
}

impl OtlpExporter {
    pub fn new(
        destination: Collector,
        resource: ServiceResource,
        content: ContentPolicy,
        redactor: Redactor,
    ) -> Self {
        let shared = ExportState {
            destination,
            encoder: OtlpEncoder { resource, content, redactor },
            queue: Mutex::default(),
            came: Notify::new(),
            full: Notify::new(),
            ending: CancellationToken::new(),
            in_flight: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), worker: Mutex::default() }
    }

    /// Sends what is left, for as long as this at most. Spans that come later are lost.
    pub async fn finish(&self, time: Duration) {
        self.shared.ending.cancel();
        let Some(mut worker) = self.worker().take() else { return };
        if tokio::time::timeout(time, &mut worker).await.is_err() {
            worker.abort();
            let left = self.shared.queue().len() as u64;
            let under_way = self.shared.in_flight.load(Ordering::Relaxed);
            self.shared.lose(left + under_way, "the collector did not answer before the end of the process");
        }
    }

    /// Spans that never reached the collector.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    fn worker(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OtlpExporter {
    fn drop(&mut self) {
        if let Some(worker) = self.worker().take() {
            worker.abort();
        }
    }
}

impl Telemetry for OtlpExporter {
    fn take(&self, span: FinishedSpan) {
        if self.shared.ending.is_cancelled() {
            return self.shared.lose(1, "the process ends");
        }
        let mut worker = self.worker();
        if worker.is_none() {
            let Ok(runtime) = Handle::try_current() else {
                return self.shared.lose(1, "there is nobody to send it");
            };
            *worker = Some(runtime.spawn(work(self.shared.clone())));
        }
        drop(worker);
        let (dropped, is_full) = {
            let mut queue = self.shared.queue();
            (queue.push(span), queue.is_batch_full())
        };
        self.shared.came.notify_one();
        if is_full {
            self.shared.full.notify_one();
        }
        if dropped > 0 {
            self.shared.lose(dropped, "more came than the collector takes");
        }
    }

    fn content(&self) -> ContentPolicy {
        self.shared.encoder.content
    }
}

impl ExportState {
    fn queue(&self) -> MutexGuard<'_, SpanQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Said once aloud: a collector that is down would fill the log.
    pub(crate) fn lose(&self, spans: u64, why: &str) {
        if spans == 0 {
            return;
        }
        let before = self.lost.fetch_add(spans, Ordering::Relaxed);
        let to = self.destination.shown();
        if before == 0 {
            tracing::warn!(spans, %to, why, "spans were lost; later losses are told with -v only");
        } else {
            tracing::debug!(spans, all = before + spans, %to, why, "spans were lost");
        }
    }
}

/// Until the process ends and nothing is left.
async fn work(shared: Arc<ExportState>) {
    let mut sender = BatchSender::new(shared.clone());
    loop {
        tokio::select! {
            () = shared.came.notified() => {}
            () = shared.ending.cancelled() => {}
        }
        tokio::select! {
            biased;
            () = shared.ending.cancelled() => {}
            () = shared.full.notified() => {}
            () = tokio::time::sleep(BATCH_DELAY) => {}
        }
        loop {
            let batch = shared.queue().take_batch();
            if batch.is_empty() {
                break;
            }
            shared.in_flight.store(batch.len() as u64, Ordering::Relaxed);
            sender.deliver(batch).await;
            shared.in_flight.store(0, Ordering::Relaxed);
        }
        if shared.ending.is_cancelled() {
            return;
        }
    }
}
