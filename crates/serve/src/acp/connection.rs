//! One connection of a client, whatever carries it at the moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedMutexGuard, OwnedRwLockReadGuard, RwLock, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::routes::Routes;
use crate::admission::{Admission, ConnectionPlace, FrameAdmission, RemoteCaller};
use crate::limits::{ACCEPT_TIME, ARRIVAL_TIME, LET_GO_TIME, RESUME_TIME};
use crate::outbox::Outbox;

/// How the messages of a connection travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarrierKind {
    Http,
    WebSocket,
}

#[derive(Debug)]
pub(super) struct AcpConnection {
    pub(super) id: String,
    pub(super) kind: CarrierKind,
    pub(super) outbox: Outbox,
    pub(super) routes: Arc<Routes>,
    /// Fires when its client has ended it, or nobody will come back to it.
    pub(super) over: CancellationToken,
    /// Held by each request that brings a message, and by the one that ends the connection: it waits for those.
    arriving: Arc<RwLock<()>>,
    pub(super) admitted: AdmittedCaller,
    incoming: mpsc::Sender<Bytes>,
    /// Messages of the client that were taken in.
    received: AtomicU64,
    /// When its client was last heard.
    used: Mutex<Instant>,
    /// Held by the WebSocket that carries it.
    carried: Arc<tokio::sync::Mutex<()>>,
    /// Tells the WebSocket that carries it to let go.
    let_go: Mutex<CancellationToken>,
}

/// Whose connection it is.
#[derive(Debug)]
pub(super) struct AdmittedCaller {
    pub(super) caller: RemoteCaller,
    pub(super) admission: Admission,
    /// Of its limits, as long as there is the connection.
    pub(super) _place: ConnectionPlace,
}

/// It is over, or takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageNotTaken {
    Over,
    Busy,
}

/// The right to carry a connection; ends with the next one who takes it.
#[derive(Debug)]
pub(super) struct CarrierGrip {
    pub(super) let_go: CancellationToken,
    _held: OwnedMutexGuard<()>,
}

impl AcpConnection {
    pub(super) fn new(
        id: String,
        kind: CarrierKind,
        outbox: Outbox,
        routes: Arc<Routes>,
        incoming: mpsc::Sender<Bytes>,
        admitted: AdmittedCaller,
    ) -> Self {
        Self {
            id,
            kind,
            outbox,
            routes,
            over: CancellationToken::new(),
            arriving: Arc::default(),
            admitted,
            incoming,
            received: AtomicU64::new(0),
            used: Mutex::new(Instant::now()),
            carried: Arc::default(),
            let_go: Mutex::default(),
        }
    }

    /// A message begins to arrive: until this is dropped, its client does not end the connection before it.
    pub(super) async fn arriving(&self) -> OwnedRwLockReadGuard<()> {
        self.arriving.clone().read_owned().await
    }

    /// The client ends it. What it began to send before, over other sockets, comes first.
    pub(super) async fn leave(&self) {
        let arrived = tokio::time::timeout(ARRIVAL_TIME, self.arriving.write()).await;
        if arrived.is_err() {
            tracing::debug!(connection = self.id, "it ends while messages are on their way");
        }
        self.over.cancel();
    }

    /// Passes a message of the client on. Dropped before it is done, the message was not taken.
    pub(super) async fn take_in(&self, message: Bytes) -> Result<(), MessageNotTaken> {
        self.use_now();
        match tokio::time::timeout(ACCEPT_TIME, self.incoming.reserve()).await {
            Ok(Ok(place)) => {
                place.send(message);
                self.received.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            Ok(Err(_)) => Err(MessageNotTaken::Over),
            Err(_) => Err(MessageNotTaken::Busy),
        }
    }

    /// The same for what came over a WebSocket: what its client may not do is answered here.
    pub(super) async fn take_frame(&self, message: Bytes) -> Result<(), MessageNotTaken> {
        let AdmittedCaller { caller, admission, .. } = &self.admitted;
        admission.spend_bytes(caller, message.len());
        match admission.frame(caller, &message) {
            FrameAdmission::Taken => self.take_in(message).await,
            FrameAdmission::Refused(answer) => {
                self.use_now();
                self.received.fetch_add(1, Ordering::SeqCst);
                if let Some(answer) = answer
                    && !self.outbox.put(None, answer)
                {
                    return Err(MessageNotTaken::Over);
                }
                Ok(())
            }
        }
    }

    /// Whether it was begun with this token.
    pub(super) fn belongs_to(&self, caller: &RemoteCaller) -> bool {
        self.admitted.caller.requester == caller.requester
    }

    /// How many messages of the client were taken in.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// Takes it from whoever carries it; `None` if that one does not let go.
    pub(super) async fn grip(&self) -> Option<CarrierGrip> {
        let let_go = CancellationToken::new();
        let before = std::mem::replace(
            &mut *self.let_go.lock().unwrap_or_else(PoisonError::into_inner),
            let_go.clone(),
        );
        before.cancel();
        let held = tokio::time::timeout(LET_GO_TIME, self.carried.clone().lock_owned()).await.ok()?;
        self.use_now();
        Some(CarrierGrip { let_go, _held: held })
    }

    pub(super) fn use_now(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Until its client has been away for long: nothing came of it, and it reads nothing.
    pub(super) async fn unused(&self) {
        loop {
            let last = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
            let end = last + RESUME_TIME;
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
            if self.outbox.is_read() {
                self.use_now();
            }
        }
    }
}
