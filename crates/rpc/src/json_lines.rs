//! Messages as lines of JSON over a pair of pipes: the transport of stdio.

use crate::framing::{FramedLine, LineFramer};
use crate::limits::{READ_CHUNK_BYTES, WRITE_CHUNK_BYTES};
use crate::trace::TraceLane;
use crate::transport::{MessageSink, MessageSource, Received};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A line above the cap is answered with one error and skipped.
pub fn json_lines<R, W>(
    (reader, writer): (R, W),
    max_line_bytes: usize,
) -> (JsonLineSource<R>, JsonLineSink<W>) {
    let source = JsonLineSource {
        reader,
        lines: LineFramer::new(max_line_bytes),
        chunk: Vec::with_capacity(READ_CHUNK_BYTES),
        max_line_bytes,
    };
    (source, JsonLineSink { writer })
}

#[derive(Debug)]
pub struct JsonLineSource<R> {
    reader: R,
    lines: LineFramer,
    chunk: Vec<u8>,
    max_line_bytes: usize,
}

#[derive(Debug)]
pub struct JsonLineSink<W> {
    writer: W,
}

impl<R: AsyncRead + Send + Unpin + 'static> MessageSource for JsonLineSource<R> {
    async fn receive(&mut self, trace: Option<&TraceLane>) -> Received<'_> {
        while !self.lines.has_next() {
            self.chunk.clear();
            match self.reader.read_buf(&mut self.chunk).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "reading failed; the connection is treated as ended");
                    break;
                }
            }
            if let Some(trace) = trace {
                trace.record_incoming(&self.chunk);
            }
            self.lines.push(&self.chunk);
        }
        let line = match self.lines.has_next() {
            true => self.lines.next(),
            false => self.lines.finish(),
        };
        match line {
            Some(FramedLine::Text(text)) => Received::Message(text),
            Some(FramedLine::TooLong) => {
                let longest = self.max_line_bytes;
                Received::Unusable(format!("the line is longer than {longest} bytes (limits.max_line_bytes)"))
            }
            None => Received::End,
        }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> MessageSink for JsonLineSink<W> {
    /// Messages are lines already.
    async fn write(&mut self, messages: &[u8]) -> io::Result<usize> {
        self.writer.write(&messages[..messages.len().min(WRITE_CHUNK_BYTES)]).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}
