//! Moves bytes between the client and its pipes, one task each way, so that neither waits for the other.

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, watch};

use super::TestClient;

#[derive(Debug)]
pub(super) enum Outgoing {
    Bytes(Vec<u8>),
    /// Closes the agent's input after all that was sent.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Going,
    Paused,
}

pub(super) async fn write_all<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
) {
    while let Some(Outgoing::Bytes(bytes)) = queue.recv().await {
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        // The agent went away; whoever waits for an answer learns it from the reader.
        if written.await.is_err() {
            return;
        }
    }
    drop(writer.shutdown().await);
}

pub(super) async fn read_all<R: AsyncRead + Unpin>(
    reader: R,
    client: TestClient,
    mut gate: watch::Receiver<Reading>,
) {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    let mut line = Vec::new();
    loop {
        if gate.wait_for(|reading| *reading == Reading::Going).await.is_err() {
            break;
        }
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => client.receive(&line),
        }
    }
    client.ended();
}
