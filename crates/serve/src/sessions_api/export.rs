//! An export as it is written: the one answer that has a whole session, and never holds it.

use std::io::{self, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use attache_core::export::Format;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderValue, Uri};
use bytes::Bytes;
use tokio::sync::mpsc;

use super::parameters::{Parameters, invalid};
use super::{ApiError, ApiReply, SessionsApi, answer};
use crate::limits::{EXPORT_PIECES, PIECE_BYTES};

pub(super) async fn export(State(api): State<SessionsApi>, Path(id): Path<String>, uri: Uri) -> ApiReply {
    let mut parameters = Parameters::of(&uri)?;
    let format = parameters.text("format").unwrap_or_else(|| "md".to_owned());
    parameters.end()?;
    let format =
        Format::parse(&format).ok_or_else(|| invalid("format", "must be jsonl, json, md, csv or html"))?;
    let id = api.record(&id).await?.row.id;
    let name = format!("attachment; filename=\"{}.{}\"", id.directory_name(), format.as_str());
    let (pieces, mut written) = mpsc::channel::<Result<Bytes, io::Error>>(EXPORT_PIECES);
    let hub = api.agent.hub.clone();
    let Ok(place) = api.exports.clone().try_acquire_owned() else {
        return Err(ApiError::Busy("too many exports are read at the moment; try it again"));
    };
    // A thread of its own: what writes can't wait for a slow reader otherwise.
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let mut out = PieceWriter { piece: Vec::with_capacity(PIECE_BYTES), pieces: pieces.clone() };
        let exported = finish(hub.export_to(&id, format, &mut out));
        if let Err(error) = exported {
            tracing::info!(%error, "an export was not finished");
            // Cuts the answer, so that nobody takes it for whole. Who is gone need not be told.
            drop(pieces.blocking_send(Err(io::Error::other("the export failed"))));
        }
    });
    let stream = futures_util::stream::poll_fn(move |context| written.poll_recv(context));
    let mut response = answer(Body::from_stream(stream), kind(format));
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

fn kind(format: Format) -> &'static str {
    match format {
        Format::Jsonl => "application/jsonl",
        Format::Json => "application/json",
        Format::Markdown => "text/markdown; charset=utf-8",
        Format::Csv => "text/csv; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
    }
}

/// Gives away what is written in pieces; waits while nobody takes them.
struct PieceWriter {
    piece: Vec<u8>,
    pieces: mpsc::Sender<Result<Bytes, io::Error>>,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.pieces.blocking_send(Ok(piece.into())).map_err(gone)
    }
}

/// Waits for it in this thread. Not the runtime's own way of waiting, inside of which nothing may block.
fn finish<T>(future: impl Future<Output = T>) -> T {
    struct WakingThread(Thread);
    impl Wake for WakingThread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(WakingThread(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
