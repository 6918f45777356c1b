//! The trace's thread: puts pieces together to lines and writes records. Knows nothing of the connection.

use super::{PIECE_OVERHEAD_BYTES, TraceEntry, TracePiece, TrafficDirection};
use crate::limits::{KEEP_BUFFER_BYTES, TRACE_RECORD_BYTES};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) struct TraceRecorder<W: Write> {
    output: BufWriter<W>,
    queued: Arc<AtomicUsize>,
    lanes: HashMap<u64, Unended>,
    health: Health,
}

/// Bytes behind the last newline, per direction.
#[derive(Default)]
struct Unended {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

#[derive(PartialEq, Eq)]
enum Health {
    Writing,
    /// The file could not be written. Told once; the traffic goes on without a trace.
    Failed,
}

#[derive(Serialize)]
struct Record<'a> {
    at: u64,
    dir: TrafficDirection,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<u64>,
    #[serde(flatten)]
    content: RecordContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum RecordContent<'a> {
    Line(&'a str),
    Base64(String),
    LostBytes(u64),
}

/// Whether a newline stood behind the bytes of a record.
#[derive(Clone, Copy)]
enum RecordEnd {
    Newline,
    More,
}

#[derive(Clone, Copy)]
struct Stamp {
    at: u64,
    lane: u64,
    direction: TrafficDirection,
}

impl<W: Write> TraceRecorder<W> {
    pub(super) fn new(output: W, queued: Arc<AtomicUsize>) -> Self {
        let output = BufWriter::with_capacity(64 * 1024, output);
        Self { output, queued, lanes: HashMap::new(), health: Health::Writing }
    }

    pub(super) fn run(mut self, entries: &Receiver<TraceEntry>) {
        loop {
            let entry = match entries.try_recv() {
                Ok(entry) => entry,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    let flushed = self.output.flush();
                    self.note(flushed);
                    match entries.recv() {
                        Ok(entry) => entry,
                        Err(_) => break,
                    }
                }
            };
            let written = self.entry(entry);
            self.note(written);
        }
        let flushed = self.output.flush();
        self.note(flushed);
    }

    fn entry(&mut self, entry: TraceEntry) -> io::Result<()> {
        match entry {
            TraceEntry::Piece(piece) => {
                self.queued.fetch_sub(piece.bytes.len() + PIECE_OVERHEAD_BYTES, Ordering::Relaxed);
                self.piece(&piece)
            }
            TraceEntry::LaneEnded { lane, lost_in, lost_out } => {
                let at = milliseconds(SystemTime::now());
                self.gap(Stamp { at, lane, direction: TrafficDirection::In }, lost_in)?;
                self.gap(Stamp { at, lane, direction: TrafficDirection::Out }, lost_out)?;
                self.lanes.remove(&lane);
                Ok(())
            }
            TraceEntry::Flush(done) => {
                let flushed = self.output.flush();
                // Whoever asked may have stopped waiting.
                if done.send(()).is_err() {
                    tracing::debug!("the trace is no longer waited for");
                }
                flushed
            }
        }
    }

    fn piece(&mut self, piece: &TracePiece) -> io::Result<()> {
        let stamp = Stamp { at: milliseconds(piece.at), lane: piece.lane, direction: piece.direction };
        if piece.lost_before > 0 {
            self.gap(stamp, piece.lost_before)?;
        }
        let mut rest = piece.bytes.as_slice();
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let mut line = std::mem::take(self.unended(stamp));
            line.extend_from_slice(&rest[..newline]);
            rest = &rest[newline + 1..];
            self.record(stamp, &line, RecordEnd::Newline)?;
            line.clear();
            line.shrink_to(KEEP_BUFFER_BYTES);
            *self.unended(stamp) = line;
        }
        self.unended(stamp).extend_from_slice(rest);
        if self.unended(stamp).len() >= TRACE_RECORD_BYTES {
            let mut part = std::mem::take(self.unended(stamp));
            let split = whole_characters(&part);
            *self.unended(stamp) = part.split_off(split);
            self.record(stamp, &part, RecordEnd::More)?;
        }
        Ok(())
    }

    /// Writes what comes before a gap, then the gap.
    fn gap(&mut self, stamp: Stamp, lost: u64) -> io::Result<()> {
        let unended = std::mem::take(self.unended(stamp));
        if !unended.is_empty() {
            self.record(stamp, &unended, RecordEnd::More)?;
        }
        match lost {
            0 => Ok(()),
            lost => self.write(stamp, RecordContent::LostBytes(lost), None),
        }
    }

    fn record(&mut self, stamp: Stamp, bytes: &[u8], end: RecordEnd) -> io::Result<()> {
        let content = match std::str::from_utf8(bytes) {
            Ok(text) => RecordContent::Line(text),
            Err(_) => RecordContent::Base64(STANDARD.encode(bytes)),
        };
        let more = match end {
            RecordEnd::Newline => None,
            RecordEnd::More => Some(true),
        };
        self.write(stamp, content, more)
    }

    fn write(&mut self, stamp: Stamp, content: RecordContent<'_>, more: Option<bool>) -> io::Result<()> {
        if self.health == Health::Failed {
            return Ok(());
        }
        let peer = Some(stamp.lane).filter(|lane| *lane > 0);
        serde_json::to_writer(
            &mut self.output,
            &Record { at: stamp.at, dir: stamp.direction, peer, content, more },
        )?;
        self.output.write_all(b"\n")
    }

    fn unended(&mut self, stamp: Stamp) -> &mut Vec<u8> {
        let lane = self.lanes.entry(stamp.lane).or_default();
        match stamp.direction {
            TrafficDirection::In => &mut lane.incoming,
            TrafficDirection::Out => &mut lane.outgoing,
        }
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && self.health == Health::Writing
        {
            self.health = Health::Failed;
            tracing::warn!(%error, "the trace cannot be written; going on without it");
        }
    }
}

/// Where to split so that a character cut by the end stays whole in the next record.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

fn milliseconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
