//! A model's server: answers every request with the same body, as fast as the socket takes it or at a pace.
//! Of what it is asked it reads only whether tools are offered: without any the question is for a title.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use attache_models::Dialect;
use memchr::memmem;

/// What one chunk of the body carries: about what a TLS record of a real server does.
const CHUNK_BYTES: usize = 16 * 1024;

/// Serves until the process ends.
#[derive(Debug)]
pub(crate) struct ModelServer {
    address: SocketAddr,
}

impl ModelServer {
    pub(crate) fn start(body: Vec<u8>) -> Result<Self> {
        Self::serving(Arc::new(Answers { long: answer(&body), title: None, pause: None }))
    }

    /// As a model that takes its time: one event after each pause, and a short answer where no tool is offered.
    pub(crate) fn at_a_pace(body: &[u8], title: &[u8], pause: Duration) -> Result<Self> {
        let (long, title) = (events_apart(body), Some(answer(title)));
        Self::serving(Arc::new(Answers { long, title, pause: Some(pause) }))
    }

    fn serving(answers: Arc<Answers>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = answers.clone();
                // A client that leaves ends its own thread only.
                thread::spawn(move || drop(serve(stream, &answers)));
            }
        });
        Ok(Self { address })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// The configuration that makes this server the default model.
    pub(crate) fn provider(&self, dialect: Dialect) -> String {
        let base = dialect.base_path();
        format!(
            "model = \"wire/model-1\"\n\n[providers.wire]\ndialect = \"{}\"\nbase_url = \"http://{}{base}\"\n\n\
             [providers.wire.models.\"model-1\"]\ncontext = 200000\n",
            dialect.as_str(),
            self.address
        )
    }
}

/// What is sent, as it goes over the socket.
#[derive(Debug)]
struct Answers {
    long: Vec<u8>,
    title: Option<Vec<u8>>,
    /// Between two chunks of the long one.
    pause: Option<Duration>,
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Each event is a chunk of its own.
fn events_apart(body: &[u8]) -> Vec<u8> {
    let mut answer = HEAD.to_vec();
    let mut rest = body;
    while let Some(end) = memmem::find(rest, b"\n\n") {
        let (event, behind) = rest.split_at(end + 2);
        answer.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
        answer.extend_from_slice(event);
        answer.extend_from_slice(b"\r\n");
        rest = behind;
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

fn answer(body: &[u8]) -> Vec<u8> {
    let mut answer = HEAD.to_vec();
    for chunk in body.chunks(CHUNK_BYTES) {
        answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        answer.extend_from_slice(chunk);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

/// Piece by piece, each with an event.
fn write_slowly(stream: &mut TcpStream, answer: &[u8], pause: Duration) -> std::io::Result<()> {
    let mut rest = answer;
    while let Some(end) = memmem::find(rest, b"\n\n\r\n") {
        let (event, behind) = rest.split_at(end + 4);
        stream.write_all(event)?;
        thread::sleep(pause);
        rest = behind;
    }
    stream.write_all(rest)
}

fn serve(stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut stream, mut line, mut body) = (stream, String::new(), Vec::new());
    loop {
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let header = line.trim().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            if header.is_empty() {
                break;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        let has_tools = memmem::find(&body, b"\"tools\":[{").is_some();
        match (&answers.title, answers.pause) {
            (Some(title), _) if !has_tools => stream.write_all(title)?,
            (_, Some(pause)) => write_slowly(&mut stream, &answers.long, pause)?,
            (_, None) => stream.write_all(&answers.long)?,
        }
    }
}
