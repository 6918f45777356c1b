//! Where keys are: in the environment, in the OS keyring, in a file that only its owner can read; the first of
//! these wins. Never shows a key.
//!
//! The file also notes which keys are in the keyring. So we know who has a key without asking the keyring, and
//! ask it only for a key that we are about to use.

use std::fmt;
use std::path::{Path, PathBuf};

use attache_models::Secret;

use crate::config::ProcessEnvironment;
use crate::dirs::Dirs;

mod keyring;
mod ledger;
mod server_logins;

pub(crate) use keyring::{Keyring, KeyringError, Patience};
pub(crate) use ledger::{Ledger, LedgerEntry, LedgerError, LoginEntry};
pub(crate) use server_logins::ServerLogins;

/// The places where keys are kept. Opens none of them.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    environment: ProcessEnvironment,
    pub(crate) keyring: Keyring,
    file: PathBuf,
}

/// What we know of all keys at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    environment: ProcessEnvironment,
    ledger: Result<Ledger, LedgerError>,
    file: PathBuf,
}

/// A provider's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiKey {
    Environment {
        variable: String,
        secret: Secret,
    },
    /// Known to be in the keyring, which we ask for it when we need it.
    Keyring,
    File {
        file: PathBuf,
        secret: Secret,
    },
}

/// Where a login stored its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Keyring,
    /// With the reason why we did not use the keyring.
    File {
        file: PathBuf,
        because: Option<KeyringError>,
    },
}

/// Where a login may store its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    KeyringElseFile,
    File,
}

impl Credentials {
    pub(crate) fn new(environment: &ProcessEnvironment, dirs: &Dirs) -> Self {
        Self {
            environment: environment.clone(),
            keyring: Keyring::of(environment),
            file: dirs.credentials_file.clone(),
        }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// A key that only this variable holds.
    pub(crate) fn variable(&self, name: &str) -> Option<Secret> {
        self.environment.text(name).and_then(Secret::new)
    }

    /// Reads the file; does not ask the keyring.
    pub(crate) fn read(&self) -> Keys {
        let ledger = Ledger::read(&self.file);
        Keys { environment: self.environment.clone(), ledger, file: self.file.clone() }
    }

    /// Stores a key of this provider; replaces a stored one.
    pub(crate) fn store(
        &self,
        provider: &str,
        secret: &Secret,
        place: KeyPlace,
    ) -> Result<Stored, LedgerError> {
        let because = match place {
            KeyPlace::File => None,
            KeyPlace::KeyringElseFile => match self.keyring.set(provider, secret) {
                Ok(()) => {
                    Ledger::change(&self.file, |ledger| ledger.insert(provider, LedgerEntry::Keyring))?;
                    return Ok(Stored::Keyring);
                }
                Err(error) => Some(error),
            },
        };
        Ledger::change(&self.file, |ledger| ledger.insert(provider, LedgerEntry::Here(secret.clone())))?;
        Ok(Stored::File { file: self.file.clone(), because })
    }

    /// Forgets the provider's key wherever we stored it. `None` if there was none.
    pub(crate) fn forget(&self, provider: &str) -> Result<Option<LedgerEntry>, ForgetError> {
        let kept = Ledger::read(&self.file)?.get(provider).cloned();
        if let Some(LedgerEntry::Keyring) = kept {
            self.keyring.remove(provider)?;
        }
        if kept.is_some() {
            Ledger::change(&self.file, |ledger| ledger.remove(provider))?;
        }
        Ok(kept)
    }
}

impl Credentials {
    /// Forgets all stored keys, as far as possible; returns the first error.
    pub(crate) fn forget_all(&self) -> Result<(), ForgetError> {
        let kept: Vec<String> = Ledger::read(&self.file)?.names().map(str::to_owned).collect();
        let results: Vec<_> = kept.iter().map(|provider| self.forget(provider)).collect();
        results.into_iter().try_for_each(|result| result.map(drop))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForgetError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

impl Keys {
    /// `variables` may hold the key. An error only if the key could be in a file that we must not use.
    pub(crate) fn of(&self, provider: &str, variables: &[String]) -> Result<Option<ApiKey>, LedgerError> {
        for variable in variables {
            if let Some(secret) = self.environment.text(variable).and_then(Secret::new) {
                return Ok(Some(ApiKey::Environment { variable: variable.clone(), secret }));
            }
        }
        let ledger = self.ledger.as_ref().map_err(Clone::clone)?;
        Ok(ledger.get(provider).map(|entry| match entry {
            LedgerEntry::Keyring => ApiKey::Keyring,
            LedgerEntry::Here(secret) => ApiKey::File { file: self.file.clone(), secret: secret.clone() },
        }))
    }

    /// Why we cannot use the file, if so.
    pub(crate) fn trouble(&self) -> Option<&LedgerError> {
        self.ledger.as_ref().err()
    }

    /// Providers with a stored key, also those that are no longer configured.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &str> {
        self.ledger.iter().flat_map(Ledger::names)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment { variable, .. } => write!(f, "{variable}"),
            Self::Keyring => f.write_str("the keyring"),
            Self::File { file, .. } => write!(f, "{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests;
