//! A model's server: answers every request with the same body, as fast as the socket takes it. Reads nothing of
//! what it is asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use attache_models::Dialect;

/// What one chunk of the body carries: about what a TLS record of a real server does.
const CHUNK_BYTES: usize = 16 * 1024;

/// Serves until the process ends.
#[derive(Debug)]
pub(crate) struct ModelServer {
    address: SocketAddr,
}

impl ModelServer {
    pub(crate) fn start(body: Vec<u8>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let answer: Arc<[u8]> = answer(&body).into();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = answer.clone();
                // A client that leaves ends its own thread only.
                thread::spawn(move || drop(serve(stream, &answer)));
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

fn answer(body: &[u8]) -> Vec<u8> {
    let mut answer =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(CHUNK_BYTES) {
        answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        answer.extend_from_slice(chunk);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

fn serve(stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
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
        stream.write_all(answer)?;
    }
}
