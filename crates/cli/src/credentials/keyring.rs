//! The keyring of the desktop (the Secret Service on the session bus). Never waits long: finds out within two
//! seconds that a machine has none, or one that does not answer.
//!
//! The keys cross the session bus, a socket of the same user, in plain text: a process that could listen there
//! could also ask the keyring.

#[cfg(not(all(target_os = "linux", not(attache_portable))))]
mod absent;
#[cfg(all(target_os = "linux", not(attache_portable)))]
mod secret_service;

use std::time::Duration;

use thiserror::Error;

use crate::config::ProcessEnvironment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keyring {
    bus: Bus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bus {
    There,
    Absent,
}

/// Whether we may ask a person to unlock the keyring, which takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The user is waiting in an editor and would not see a question.
    None,
    /// The user typed a command and sees the question.
    ForUnlocking,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[cfg_attr(
    not(all(target_os = "linux", not(attache_portable))),
    allow(dead_code, reason = "none answers there")
)]
pub(crate) enum KeyringError {
    #[error("there is no keyring on this machine (no session bus)")]
    NoBus,
    #[error("no keyring answers on the session bus")]
    NoService,
    #[error("the keyring did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the keyring is locked; unlock it and try again")]
    Locked,
    #[error("the keyring holds no such key")]
    NoSuchKey,
    #[error("the keyring is not set up and can't store keys yet")]
    NoCollection,
    #[error("the keyring failed: {0}")]
    Failed(String),
}

impl Keyring {
    /// Without an address the library would look in the same places. We look ourselves, so that we need not
    /// load it for nothing.
    pub(crate) fn of(environment: &ProcessEnvironment) -> Self {
        let named = environment.text("DBUS_SESSION_BUS_ADDRESS").is_some();
        let usual =
            environment.path("XDG_RUNTIME_DIR").is_some_and(|directory| directory.join("bus").exists());
        Self { bus: if named || usual { Bus::There } else { Bus::Absent } }
    }
}
