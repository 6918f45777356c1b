//! A byte-accurate copy of the traffic as JSON lines, written by a thread of its own. Never delays the
//! protocol.
//!
//! One record per line: `{"at":ms,"dir":"in","line":"…"}`. Bytes that are not UTF-8 are written as `base64`
//! instead of `line`. `"more":true` means that no newline follows: the line goes on in the next record of that
//! direction, or was never ended. `{"at":ms,"dir":"out","lost_bytes":n}` tells that the disk was too slow and n
//! bytes are missing there. `peer` counts connections from the second one on.

mod record;

use crate::limits::TRACE_QUEUE_BYTES;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::SystemTime;
use tokio::sync::oneshot;

/// A handle to the trace's thread; the thread ends with the last handle and writes what it still has.
#[derive(Clone, Debug)]
pub struct Trace {
    shared: Arc<TraceShared>,
}

#[derive(Debug)]
struct TraceShared {
    entries: Sender<TraceEntry>,
    /// Bytes on their way to the thread, which takes them off again.
    queued: Arc<AtomicUsize>,
    lanes: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrafficDirection {
    In,
    Out,
}

/// One connection's part of the trace.
#[derive(Debug)]
pub struct TraceLane {
    trace: Trace,
    number: u64,
    lost_in: AtomicU64,
    lost_out: AtomicU64,
}

#[derive(Debug)]
enum TraceEntry {
    Piece(TracePiece),
    /// The connection is over; what it left unended is written out.
    LaneEnded {
        lane: u64,
        lost_in: u64,
        lost_out: u64,
    },
    Flush(oneshot::Sender<()>),
}

#[derive(Debug)]
struct TracePiece {
    lane: u64,
    direction: TrafficDirection,
    at: SystemTime,
    /// Bytes of this direction that were left out right before this piece.
    lost_before: u64,
    bytes: Vec<u8>,
}

/// What a piece costs in the queue beside its bytes.
const PIECE_OVERHEAD_BYTES: usize = 128;

impl Trace {
    /// Appends to `path`, creating it readable for its owner only: traffic holds what the user works on.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::start(options.open(path)?)
    }

    /// Resolves when everything recorded before is in the file.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.shared.entries.send(TraceEntry::Flush(done)).is_ok() && written.await.is_err() {
            tracing::debug!("the trace's thread is gone");
        }
    }

    fn start(file: File) -> io::Result<Self> {
        let (entries, receiver) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let recorder = record::TraceRecorder::new(file, Arc::clone(&queued));
        std::thread::Builder::new().name("rpc-trace".to_owned()).spawn(move || recorder.run(&receiver))?;
        Ok(Self { shared: Arc::new(TraceShared { entries, queued, lanes: AtomicU64::new(0) }) })
    }

    pub(crate) fn lane(&self) -> TraceLane {
        TraceLane {
            trace: self.clone(),
            number: self.shared.lanes.fetch_add(1, Ordering::Relaxed),
            lost_in: AtomicU64::new(0),
            lost_out: AtomicU64::new(0),
        }
    }
}

impl TraceLane {
    /// Copies bytes that arrived, framing included.
    pub fn record_incoming(&self, bytes: &[u8]) {
        self.record(TrafficDirection::In, bytes);
    }

    /// Copies the bytes for the thread, or counts them as lost if it is too far behind.
    pub(crate) fn record(&self, direction: TrafficDirection, bytes: &[u8]) {
        let lost = match direction {
            TrafficDirection::In => &self.lost_in,
            TrafficDirection::Out => &self.lost_out,
        };
        let cost = bytes.len() + PIECE_OVERHEAD_BYTES;
        let shared = &self.trace.shared;
        if shared.queued.fetch_add(cost, Ordering::Relaxed) + cost > TRACE_QUEUE_BYTES {
            shared.queued.fetch_sub(cost, Ordering::Relaxed);
            lost.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return;
        }
        let piece = TracePiece {
            lane: self.number,
            direction,
            at: SystemTime::now(),
            lost_before: lost.swap(0, Ordering::Relaxed),
            bytes: bytes.to_vec(),
        };
        self.submit(TraceEntry::Piece(piece));
    }

    fn submit(&self, entry: TraceEntry) {
        if self.trace.shared.entries.send(entry).is_err() {
            tracing::debug!("the trace's thread is gone");
        }
    }
}

impl Drop for TraceLane {
    fn drop(&mut self) {
        let (lost_in, lost_out) = (*self.lost_in.get_mut(), *self.lost_out.get_mut());
        self.submit(TraceEntry::LaneEnded { lane: self.number, lost_in, lost_out });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    /// A trace whose thread does not run yet.
    fn stalled() -> (Trace, Receiver<TraceEntry>) {
        let (entries, receiver) = channel();
        let shared = TraceShared { entries, queued: Arc::new(AtomicUsize::new(0)), lanes: AtomicU64::new(0) };
        (Trace { shared: Arc::new(shared) }, receiver)
    }

    fn written(trace: Trace, entries: &Receiver<TraceEntry>) -> Vec<serde_json::Value> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let queued = Arc::clone(&trace.shared.queued);
        drop(trace);
        record::TraceRecorder::new(file.as_file_mut().try_clone().unwrap(), queued).run(entries);
        let text = std::fs::read_to_string(file.path()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_trace_that_falls_behind_holds_its_bound_and_tells_what_is_missing() {
        let (trace, entries) = stalled();
        let lane = trace.lane();
        let line = [vec![b'x'; 99_999], vec![b'\n']].concat();
        for _ in 0..200 {
            lane.record(TrafficDirection::Out, &line);
        }
        assert!(trace.shared.queued.load(Ordering::Relaxed) <= TRACE_QUEUE_BYTES);
        drop(lane);
        let records = written(trace, &entries);
        let (last, lines) = records.split_last().unwrap();
        let lost = last["lost_bytes"].as_u64().unwrap() as usize;
        assert!(lost > 0);
        assert_eq!(lines.len() * line.len() + lost, 200 * line.len());
    }

    #[test]
    fn a_gap_stands_where_it_happened() {
        let (trace, entries) = stalled();
        let lane = trace.lane();
        lane.record(TrafficDirection::In, b"before\nhalf a li");
        trace.shared.queued.store(TRACE_QUEUE_BYTES, Ordering::Relaxed);
        lane.record(TrafficDirection::In, b"ne\nlost\nand ");
        trace.shared.queued.store(1000, Ordering::Relaxed);
        lane.record(TrafficDirection::In, b"after\n");
        drop(lane);
        let records = written(trace, &entries);
        let contents: Vec<_> = records
            .iter()
            .map(|record| (record["line"].as_str(), record["lost_bytes"].as_u64(), record["more"].as_bool()))
            .collect();
        assert_eq!(
            contents,
            [
                (Some("before"), None, None),
                (Some("half a li"), None, Some(true)),
                (None, Some(12), None),
                (Some("after"), None, None),
            ]
        );
    }
}
