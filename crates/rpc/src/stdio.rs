//! Standard input and output as async streams; the only place in the workspace that touches stdout.
//!
//! Each stream has a blocking thread of its own. Non-blocking mode was rejected: it belongs to the open file,
//! which terminals and siblings share with us, and regular files have none. Descriptors that somebody else made
//! non-blocking are waited for with poll. Threads do not keep the process alive, so it can exit while one is
//! blocked.

use crate::limits::{READ_CHUNK_BYTES, STDIO_BUFFER_BYTES};
use crate::pipe::{PipeReader, PipeWriter, pipe};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// Call once: two readers of one input would share its lines at random.
pub fn stdio() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    (read_from(rustix::stdio::stdin()), write_to(rustix::stdio::stdout()))
}

fn read_from(source: BorrowedFd<'static>) -> PipeReader {
    let (reader, writer) = pipe(STDIO_BUFFER_BYTES);
    // A thread that could not be started drops its end, which reads as the end of the input.
    spawn("rpc-stdin", move || pump_in(source, &writer));
    reader
}

fn write_to(target: BorrowedFd<'static>) -> StdoutWriter {
    let (reader, writer) = pipe(STDIO_BUFFER_BYTES);
    spawn("rpc-stdout", move || pump_out(target, &reader));
    StdoutWriter { pipe: writer }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        tracing::error!(%error, name, "a thread could not be started");
    }
}

/// Bytes count as flushed when the system has taken them, not when the thread has.
#[derive(Debug)]
struct StdoutWriter {
    pipe: PipeWriter,
}

impl AsyncWrite for StdoutWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe.poll_drained(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.pipe.poll_drained(context) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.pipe).poll_shutdown(context),
            unfinished => unfinished,
        }
    }
}

fn pump_in(source: BorrowedFd<'_>, pipe: &PipeWriter) {
    // Not filled with zeros first: most of it is never touched.
    let mut chunk = Vec::with_capacity(READ_CHUNK_BYTES);
    loop {
        chunk.clear();
        match rustix::io::read(source, spare_capacity(&mut chunk)) {
            Ok(0) => return,
            Ok(_) if pipe.put(&chunk) => {}
            Ok(_) => return,
            Err(errno) => {
                if let Err(error) = wait_if_temporary(source, PollFlags::IN, errno) {
                    return pipe.fail(error.kind());
                }
            }
        }
    }
}

fn pump_out(target: BorrowedFd<'_>, pipe: &PipeReader) {
    let mut batch = Vec::new();
    while pipe.take_all(&mut batch) {
        let mut rest = batch.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(target, rest) {
                Ok(0) => return pipe.fail(io::ErrorKind::WriteZero),
                Ok(count) => rest = &rest[count..],
                Err(errno) => {
                    if let Err(error) = wait_if_temporary(target, PollFlags::OUT, errno) {
                        return pipe.fail(error.kind());
                    }
                }
            }
        }
    }
}

/// Interrupted: try again. Not ready: sleep until it is. Anything else is final.
fn wait_if_temporary(stream: BorrowedFd<'_>, ready: PollFlags, errno: Errno) -> io::Result<()> {
    match errno {
        Errno::INTR => Ok(()),
        Errno::AGAIN => match rustix::event::poll(&mut [PollFd::new(&stream, ready)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        errno => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd, OwnedFd};
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::unix::net::UnixStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn forever(descriptor: impl Into<OwnedFd>) -> BorrowedFd<'static> {
        let leaked: &'static OwnedFd = Box::leak(Box::new(descriptor.into()));
        leaked.as_fd()
    }

    fn sample() -> Vec<u8> {
        (0..3_000_000_u32).map(|number| (number % 253) as u8).collect()
    }

    async fn assert_reads_all(source: BorrowedFd<'static>) {
        let mut received = Vec::new();
        read_from(source).read_to_end(&mut received).await.unwrap();
        assert!(received == sample());
    }

    async fn assert_writes_all(target: BorrowedFd<'static>, reading: std::thread::JoinHandle<Vec<u8>>) {
        let mut output = write_to(target);
        output.write_all(&sample()).await.unwrap();
        output.shutdown().await.unwrap();
        // What is leaked here cannot be closed, so the reader stops by length.
        assert!(reading.join().unwrap() == sample());
    }

    fn read_sample(mut source: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
        std::thread::spawn(move || {
            let mut received = vec![0; sample().len()];
            source.read_exact(&mut received).unwrap();
            received
        })
    }

    fn set_nonblocking(stream: impl AsFd) {
        rustix::fs::fcntl_setfl(stream, rustix::fs::OFlags::NONBLOCK).unwrap();
    }

    #[tokio::test]
    async fn pipes_work_blocking_and_not() {
        for nonblocking in [false, true] {
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            if nonblocking {
                set_nonblocking(&reader);
            }
            let writing = std::thread::spawn(move || File::from(writer).write_all(&sample()).unwrap());
            assert_reads_all(forever(reader)).await;
            writing.join().unwrap();

            let (reader, writer) = rustix::pipe::pipe().unwrap();
            if nonblocking {
                set_nonblocking(&writer);
            }
            assert_writes_all(forever(writer), read_sample(File::from(reader))).await;
        }
    }

    #[tokio::test]
    async fn sockets_work_blocking_and_not() {
        for nonblocking in [false, true] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(nonblocking).unwrap();
            let writing = std::thread::spawn(move || theirs.write_all(&sample()).unwrap());
            assert_reads_all(forever(ours)).await;
            writing.join().unwrap();

            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(nonblocking).unwrap();
            assert_writes_all(forever(ours), read_sample(theirs)).await;
        }
    }

    #[tokio::test]
    async fn regular_files_work() {
        let mut file = tempfile::tempfile().unwrap();
        let mut output = write_to(forever(file.try_clone().unwrap()));
        output.write_all(&sample()).await.unwrap();
        output.flush().await.unwrap();
        file.rewind().unwrap();
        assert_reads_all(forever(file)).await;
    }

    #[tokio::test]
    async fn a_closed_reader_is_a_broken_pipe() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let mut output = write_to(forever(writer));
        output.write_all(b"lost\n").await.unwrap();
        assert_eq!(output.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(output.write_all(b"more\n").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn an_unreadable_input_is_an_error() {
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(read_from(forever(writer)).read_u8().await.is_err());
    }
}
