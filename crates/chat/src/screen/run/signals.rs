//! The signals that a chat watches for. Does nothing about them.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    pub(super) terminate: Signal,
    pub(super) hang_up: Signal,
    pub(super) interrupt: Signal,
    pub(super) resumed: Signal,
}

impl Signals {
    pub(super) fn watch() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            resumed: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }
}
