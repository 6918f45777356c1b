//! Systems whose keyring has another door: keys are kept in the file there.

use attache_models::Secret;

use super::{Keyring, KeyringError, Patience};

impl Keyring {
    pub(crate) fn get(self, _provider: &str, _patience: Patience) -> Result<Secret, KeyringError> {
        Err(KeyringError::NoBus)
    }

    pub(crate) fn set(self, _provider: &str, _secret: &Secret) -> Result<(), KeyringError> {
        Err(KeyringError::NoBus)
    }

    pub(crate) fn remove(self, _provider: &str) -> Result<(), KeyringError> {
        Err(KeyringError::NoBus)
    }
}
