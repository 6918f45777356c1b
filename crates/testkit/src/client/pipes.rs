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
    /// For good, as an editor that crashed: the agent's next write finds a broken pipe.
    Closed,
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
        match gate.wait_for(|reading| *reading != Reading::Paused).await.map(|reading| *reading) {
            Ok(Reading::Going) => {}
            Ok(Reading::Paused | Reading::Closed) | Err(_) => break,
        }
        line.clear();
        let read = tokio::select! {
            read = reader.read_until(b'\n', &mut line) => read,
            // Whatever was read of a line is lost with it, which is the point.
            _ = gate.wait_for(|reading| *reading == Reading::Closed) => break,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(_) if line.ends_with(b"\n") => client.receive(&line),
            Ok(_) => break,
        }
    }
    drop(reader);
    if line.ends_with(b"\n") {
        // Received already; reading was ended between two lines.
        line.clear();
    }
    client.ended(line);
}
