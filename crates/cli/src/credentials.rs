//! Where keys are: in the environment, in the OS keyring, in a file that only its owner can read; the first of
//! these wins. Never shows a key.
//!
//! The file also notes which keys are in the keyring, so that no keyring has to be asked to know who has a
//! key: it is asked only for a key that is about to be used.

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

/// All that is known of keys at one moment.
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
    /// Known to be there; the keyring gives it out when it is needed.
    Keyring,
    File {
        file: PathBuf,
        secret: Secret,
    },
}

/// Where a login put its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Keyring,
    /// With the reason why the keyring was not used.
    File {
        file: PathBuf,
        because: Option<KeyringError>,
    },
}

/// Where a login may put its key.
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

    /// A key that is kept nowhere but in this variable.
    pub(crate) fn variable(&self, name: &str) -> Option<Secret> {
        self.environment.text(name).and_then(Secret::new)
    }

    /// Looks into the file; asks no keyring.
    pub(crate) fn read(&self) -> Keys {
        let ledger = Ledger::read(&self.file);
        Keys { environment: self.environment.clone(), ledger, file: self.file.clone() }
    }

    /// Keeps a key of this provider, in place of one that is kept already.
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

    /// Forgets the provider's key wherever we keep it. `None` when none was kept.
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
    /// Forgets all kept keys, as far as that can be done; the first error is told.
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
    /// `variables` are those that may hold it. An error only where the key could be in a file that must not be
    /// used.
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

    /// Why the file can't be used, if it can't.
    pub(crate) fn trouble(&self) -> Option<&LedgerError> {
        self.ledger.as_ref().err()
    }

    /// Providers with a kept key, also such that are configured no more.
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
