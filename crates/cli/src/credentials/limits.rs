//! The bounds of keeping keys, each with its reason.

use std::time::Duration;

/// A keyring that takes longer without a person being asked is not there.
pub(super) const KEYRING_ANSWER: Duration = Duration::from_secs(2);

/// How long a person may take to unlock the keyring when they themselves wanted something of it.
pub(super) const UNLOCK_SECONDS: u64 = 60;

/// A handful of keys of at most a few kilobytes each; anything larger is the wrong file.
pub(super) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// How long a login waits for another one that writes at the same time.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(5);
