//! A bounded pipe in memory that ends like one of the operating system: dropping the writer is the end of the
//! stream, dropping the reader breaks the writer. Either end may also be used by a blocking thread of this
//! crate.

use crate::limits::KEEP_BUFFER_BYTES;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One direction. A write waits while `capacity` bytes are unread.
pub fn pipe(capacity: usize) -> (PipeReader, PipeWriter) {
    let channel =
        Arc::new(PipeChannel { state: Mutex::default(), changed: Condvar::new(), capacity: capacity.max(1) });
    (PipeReader { channel: Arc::clone(&channel) }, PipeWriter { channel })
}

/// Both directions: what one end writes, the other reads.
pub fn duplex(capacity: usize) -> ((PipeReader, PipeWriter), (PipeReader, PipeWriter)) {
    let (left_reader, right_writer) = pipe(capacity);
    let (right_reader, left_writer) = pipe(capacity);
    ((left_reader, left_writer), (right_reader, right_writer))
}

#[derive(Debug)]
pub struct PipeReader {
    channel: Arc<PipeChannel>,
}

#[derive(Debug)]
pub struct PipeWriter {
    channel: Arc<PipeChannel>,
}

#[derive(Debug)]
struct PipeChannel {
    state: Mutex<PipeState>,
    /// Wakes an end that is a blocking thread; async ends have their waker in the state.
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct PipeState {
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read already.
    read: usize,
    /// Bytes a blocking reader took and has not yet finished with; flushing waits for them.
    in_hand: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Threads asleep on `changed`; waking none would still be a system call.
    sleeping: usize,
    writer_end: WriterEnd,
    reader_gone: Option<io::ErrorKind>,
}

#[derive(Debug, Default)]
enum WriterEnd {
    #[default]
    Open,
    Ended,
    /// The source broke; told to the reader once, after everything before it.
    Failed(io::ErrorKind),
}

impl PipeState {
    fn unread(&self) -> usize {
        self.buffer.len() - self.read
    }

    /// Appends as much as fits.
    fn accept(&mut self, bytes: &[u8], capacity: usize) -> usize {
        let count = bytes.len().min(capacity.saturating_sub(self.unread()));
        if self.read > 0 && self.buffer.len() + count > self.buffer.capacity() {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }

    fn check_reader(&self) -> io::Result<()> {
        match self.reader_gone {
            Some(kind) => Err(kind.into()),
            None => Ok(()),
        }
    }
}

impl PipeChannel {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, PipeState>) -> MutexGuard<'a, PipeState> {
        state.sleeping += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sleeping -= 1;
        state
    }

    /// Releases the lock, then wakes the side that may go on.
    fn wake(&self, mut state: MutexGuard<'_, PipeState>, side: fn(&mut PipeState) -> &mut Option<Waker>) {
        let waker = side(&mut state).take();
        let sleeping = state.sleeping > 0;
        drop(state);
        if sleeping {
            self.changed.notify_all();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wake_reader(&self, state: MutexGuard<'_, PipeState>) {
        self.wake(state, |state| &mut state.reader);
    }

    fn wake_writer(&self, state: MutexGuard<'_, PipeState>) {
        self.wake(state, |state| &mut state.writer);
    }
}

impl PipeReader {
    /// Blocks until there is something, and swaps all of it into `batch`; false at the end of the stream. What
    /// was taken the time before counts as finished with.
    pub(crate) fn take_all(&self, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        batch.shrink_to(KEEP_BUFFER_BYTES);
        let mut state = self.channel.lock();
        if state.in_hand > 0 {
            state.in_hand = 0;
            self.channel.wake_writer(state);
            state = self.channel.lock();
        }
        while state.unread() == 0 {
            if !matches!(state.writer_end, WriterEnd::Open) {
                return false;
            }
            state = self.channel.sleep(state);
        }
        std::mem::swap(&mut state.buffer, batch);
        batch.drain(..std::mem::take(&mut state.read));
        state.in_hand = batch.len();
        self.channel.wake_writer(state);
        true
    }

    /// From now on the writer gets this error.
    pub(crate) fn fail(&self, kind: io::ErrorKind) {
        let mut state = self.channel.lock();
        state.in_hand = 0;
        state.reader_gone.get_or_insert(kind);
        self.channel.wake_writer(state);
    }
}

impl PipeWriter {
    /// Blocks until all is accepted; false if the reader is gone.
    pub(crate) fn put(&self, mut bytes: &[u8]) -> bool {
        let mut state = self.channel.lock();
        loop {
            if state.reader_gone.is_some() {
                return false;
            }
            let count = state.accept(bytes, self.channel.capacity);
            bytes = &bytes[count..];
            if count > 0 {
                self.channel.wake_reader(state);
                state = self.channel.lock();
            }
            if bytes.is_empty() {
                return true;
            }
            if state.unread() >= self.channel.capacity && state.reader_gone.is_none() {
                state = self.channel.sleep(state);
            }
        }
    }

    /// The reader gets this error once it has read everything before.
    pub(crate) fn fail(&self, kind: io::ErrorKind) {
        self.end(WriterEnd::Failed(kind));
    }

    /// Resolves when everything was read and a blocking reader has finished with it.
    pub(crate) fn poll_drained(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.channel.lock();
        state.check_reader()?;
        if state.unread() == 0 && state.in_hand == 0 {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(context.waker().clone());
        Poll::Pending
    }

    fn end(&self, end: WriterEnd) {
        let mut state = self.channel.lock();
        if matches!(state.writer_end, WriterEnd::Open) {
            state.writer_end = end;
        }
        self.channel.wake_reader(state);
    }
}

impl AsyncRead for PipeReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        target: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.channel.lock();
        let count = state.unread().min(target.remaining());
        if count == 0 && target.remaining() > 0 {
            return match std::mem::take(&mut state.writer_end) {
                WriterEnd::Open => {
                    state.reader = Some(context.waker().clone());
                    Poll::Pending
                }
                end => {
                    state.writer_end = WriterEnd::Ended;
                    match end {
                        WriterEnd::Failed(kind) => Poll::Ready(Err(kind.into())),
                        WriterEnd::Open | WriterEnd::Ended => Poll::Ready(Ok(())),
                    }
                }
            };
        }
        let start = state.read;
        target.put_slice(&state.buffer[start..start + count]);
        state.read += count;
        if state.unread() == 0 {
            state.buffer.clear();
            state.buffer.shrink_to(KEEP_BUFFER_BYTES);
            state.read = 0;
        }
        self.channel.wake_writer(state);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PipeWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.channel.lock();
        state.check_reader()?;
        if !matches!(state.writer_end, WriterEnd::Open) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = state.accept(bytes, self.channel.capacity);
        if count == 0 && !bytes.is_empty() {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.channel.wake_reader(state);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end(WriterEnd::Ended);
        Poll::Ready(Ok(()))
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.fail(io::ErrorKind::BrokenPipe);
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        self.end(WriterEnd::Ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn bytes_arrive_in_order_through_a_small_pipe() {
        let (mut reader, mut writer) = pipe(7);
        let sent: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        let expected = sent.clone();
        let sending = tokio::spawn(async move { writer.write_all(&sent).await });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        sending.await.unwrap().unwrap();
        assert_eq!(received, expected);
    }

    #[tokio::test]
    async fn a_gone_reader_breaks_the_writer_even_while_it_waits() {
        let (reader, mut writer) = pipe(4);
        let sending = tokio::spawn(async move { writer.write_all(&[0; 100]).await });
        tokio::task::yield_now().await;
        drop(reader);
        assert_eq!(sending.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_blocking_writer_and_an_async_reader_meet() {
        let (mut reader, writer) = pipe(16);
        let thread = std::thread::spawn(move || (0..1000).all(|_| writer.put(&[7; 100])));
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        assert!(thread.join().unwrap());
        assert_eq!(received.len(), 100_000);
    }

    #[tokio::test]
    async fn drained_waits_until_a_blocking_reader_has_finished() {
        let (reader, mut writer) = pipe(16);
        writer.write_all(b"abc").await.unwrap();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (taken, was_taken) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let mut batch = Vec::new();
            assert!(reader.take_all(&mut batch));
            taken.send(batch.clone()).unwrap();
            begun.recv().unwrap();
            assert!(!reader.take_all(&mut batch));
        });
        assert_eq!(was_taken.await.unwrap(), b"abc");
        let drained = std::future::poll_fn(|context| writer.poll_drained(context));
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), drained).await;
        assert!(early.is_err());
        begin.send(()).unwrap();
        std::future::poll_fn(|context| writer.poll_drained(context)).await.unwrap();
        drop(writer);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn a_failed_source_is_told_after_what_came_before() {
        let (mut reader, writer) = pipe(16);
        assert!(writer.put(b"ab"));
        writer.fail(io::ErrorKind::Other);
        let mut two = [0; 2];
        reader.read_exact(&mut two).await.unwrap();
        assert_eq!(reader.read(&mut two).await.unwrap_err().kind(), io::ErrorKind::Other);
        assert_eq!(reader.read(&mut two).await.unwrap(), 0);
    }
}
