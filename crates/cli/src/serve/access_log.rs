//! One line for each request, on stderr or in a file. A slow reader delays no request: we count and drop lines
//! that we cannot write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use attache_core::legible::legible_line;
use attache_http::{FinishedRequest, RequestObserver};
use jiff::Timestamp;

use crate::config::AccessLogTarget;
use crate::limits::{ACCESS_LOG_END, ACCESS_LOG_LINES};

/// Stopped by `finish`.
#[derive(Debug)]
pub(super) struct AccessLog {
    /// A lock, because `finish` takes it away, once.
    lines: Mutex<Option<SyncSender<String>>>,
    lost: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl AccessLog {
    /// `None` if the configuration wants no log.
    pub(super) fn open(target: &AccessLogTarget) -> Result<Option<Arc<Self>>> {
        let output = match target {
            AccessLogTarget::Off => return Ok(None),
            AccessLogTarget::Stderr => LogOutput::Stderr,
            AccessLogTarget::File(path) => {
                let file =
                    open_file(path).with_context(|| format!("`serve.access_log`: {}", path.display()))?;
                LogOutput::File { path: path.clone(), file }
            }
        };
        let (lines, queued) = sync_channel(ACCESS_LOG_LINES);
        let lost = Arc::<AtomicU64>::default();
        let missing = lost.clone();
        let thread = std::thread::Builder::new().name("access-log".to_owned());
        let writer = thread.spawn(move || write_all(output, &queued, &missing))?;
        Ok(Some(Arc::new(Self { lines: Mutex::new(Some(lines)), lost, writer: Mutex::new(Some(writer)) })))
    }

    /// Waits a moment for the last lines; gives up on a reader that is stuck.
    pub(super) async fn finish(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return };
        let begun = tokio::time::Instant::now();
        while !writer.is_finished() && begun.elapsed() < ACCESS_LOG_END {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl RequestObserver for AccessLog {
    fn begun(&self) {}

    fn finished(&self, request: &FinishedRequest) {
        let line = line(Timestamp::now(), request);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Time, address, token, method, path, status, bytes and milliseconds; `-` for unknown values.
fn line(now: Timestamp, request: &FinishedRequest) -> String {
    let FinishedRequest { client, requester, method, path, status, bytes, time } = request;
    let client = client.0.map_or_else(|| "-".to_owned(), |address| address.to_string());
    let (now, token) = (now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"), requester.as_deref().unwrap_or("-"));
    let (path, status, time) = (legible_line(path), status.as_u16(), time.as_millis());
    format!("{now} {client} {token} {method} {path} {status} {bytes} {time}\n")
}

enum LogOutput {
    Stderr,
    File { path: PathBuf, file: File },
}

impl LogOutput {
    fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Stderr => io::stderr().write_all(text.as_bytes()),
            Self::File { path, file } => {
                // Another program has moved the file away, as log rotation does.
                let there = std::fs::metadata(&*path).ok();
                let here = file.metadata()?;
                if there.is_none_or(|there| (there.dev(), there.ino()) != (here.dev(), here.ino())) {
                    *file = open_file(path)?;
                }
                file.write_all(text.as_bytes())
            }
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn write_all(mut output: LogOutput, queued: &Receiver<String>, lost: &AtomicU64) {
    loop {
        let text = match queued.recv_timeout(Duration::from_secs(1)) {
            Ok(first) => queued.try_iter().take(100).fold(first, |text, line| text + &line),
            Err(RecvTimeoutError::Timeout) => String::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let missing = lost.swap(0, Ordering::Relaxed);
        let told =
            (missing > 0).then(|| format!("attache: {missing} lines of the access log were left out\n"));
        let text = text + told.as_deref().unwrap_or_default();
        if !text.is_empty()
            && let Err(error) = output.write(&text)
        {
            tracing::warn!(%error, "the access log could not be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use attache_http::ClientAddress;

    use super::*;

    fn request(path: &str) -> FinishedRequest {
        FinishedRequest {
            client: ClientAddress(Some("127.0.0.1".parse().unwrap())),
            requester: Some("ci".into()),
            method: "POST".parse().unwrap(),
            path: path.to_owned(),
            status: "202".parse().unwrap(),
            bytes: 12,
            time: Duration::from_millis(3),
        }
    }

    #[test]
    fn a_line_says_who_asked_what_and_how_it_ended() {
        let time: Timestamp = "2026-03-29T01:02:03.004Z".parse().unwrap();
        assert_eq!(
            line(time, &request("/acp")),
            "2026-03-29T01:02:03.004Z 127.0.0.1 ci POST /acp 202 12 3\n"
        );
        let nobody = FinishedRequest { client: ClientAddress(None), requester: None, ..request("/a\nb") };
        let line = line(time, &nobody);
        assert!(line.contains(" - - POST /a") && line.matches('\n').count() == 1, "{line}");
    }

    #[tokio::test]
    async fn a_log_that_was_moved_away_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let log = AccessLog::open(&AccessLogTarget::File(path.clone())).unwrap().unwrap();
        let written = async |path: &Path| {
            for _ in 0..1_000 {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                if text.contains('\n') {
                    return text;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("nothing is written");
        };
        log.finished(&request("/one"));
        assert!(written(&path).await.contains("/one"));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::rename(&path, directory.path().join("old")).unwrap();
        log.finished(&request("/two"));
        assert!(written(&path).await.contains("/two"));
        log.finished(&request("/three"));
        log.finish().await;
        assert!(std::fs::read_to_string(&path).unwrap().contains("/three"));
    }
}
