//! Logins at MCP servers, kept with the keys: in the keyring, or in the file that only its owner can read. Does
//! not know what a login contains.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use attache_core::ports::mcp::HiddenText;
use attache_mcp::oauth::LoginStore;
use attache_models::Secret;

use super::ledger::lock;
use super::{Credentials, ForgetError, KeyPlace, Ledger, LedgerEntry, LedgerError, LoginEntry, Patience};
use crate::dirs::create_private_directory;
use crate::limits::LOGIN_WAIT;

#[derive(Clone, Debug)]
pub(crate) struct ServerLogins {
    credentials: Credentials,
    patience: Patience,
    /// Where to store a new login; a renewed one stays where it is.
    place: KeyPlace,
}

impl ServerLogins {
    /// `patience` says whether a person is there whom we may ask to unlock the keyring.
    pub(crate) fn new(credentials: &Credentials, patience: Patience, place: KeyPlace) -> Self {
        Self { credentials: credentials.clone(), patience, place }
    }

    /// Where the login at this server is, if there is one.
    pub(crate) fn place_of(&self, server: &str) -> Result<Option<LedgerEntry>, LedgerError> {
        Ok(Ledger::read(&self.credentials.file)?.login(server).map(|entry| entry.place.clone()))
    }

    fn remove(&self, server: &str) -> Result<(), ForgetError> {
        let ledger = Ledger::read(&self.credentials.file)?;
        let Some(entry) = ledger.login(server) else { return Ok(()) };
        if entry.place == LedgerEntry::Keyring {
            self.credentials.keyring.remove(&name(server, &entry.issuer))?;
        }
        Ok(Ledger::change(&self.credentials.file, |ledger| ledger.remove_login(server))?)
    }
}

/// The name of a login in the keyring. It contains a blank, so it differs from every provider's name.
fn name(server: &str, issuer: &str) -> String {
    format!("mcp {server} {issuer}")
}

impl LoginStore for ServerLogins {
    fn read(&self, server: &str) -> Result<Option<HiddenText>, String> {
        let ledger = Ledger::read(&self.credentials.file).map_err(|error| error.to_string())?;
        let Some(LoginEntry { issuer, place }) = ledger.login(server) else { return Ok(None) };
        let secret = match place {
            LedgerEntry::Here(secret) => secret.clone(),
            LedgerEntry::Keyring => {
                let asked = self.credentials.keyring.get(&name(server, issuer), self.patience);
                asked.map_err(|error| error.to_string())?
            }
        };
        Ok(Some(HiddenText::new(secret.expose())))
    }

    fn keep(&self, server: &str, issuer: &str, login: &HiddenText) -> Result<(), String> {
        let file = &self.credentials.file;
        let secret = Secret::new(login.expose()).ok_or("there is nothing to keep")?;
        let before = Ledger::read(file).map_err(|error| error.to_string())?;
        let before = before.login(server).cloned();
        let may_ask_keyring = match before.as_ref().map(|entry| &entry.place) {
            Some(LedgerEntry::Here(_)) => self.patience == Patience::ForUnlocking,
            Some(LedgerEntry::Keyring) | None => true,
        };
        let is_in_keyring = self.place == KeyPlace::KeyringElseFile
            && may_ask_keyring
            && self.credentials.keyring.set(&name(server, issuer), &secret).is_ok();
        if let Some(LoginEntry { issuer: other, place: LedgerEntry::Keyring }) = &before
            && (other != issuer || !is_in_keyring)
            && let Err(error) = self.credentials.keyring.remove(&name(server, other))
        {
            tracing::warn!(%error, "a login that is no longer used is still in the keyring");
        }
        let place = if is_in_keyring { LedgerEntry::Keyring } else { LedgerEntry::Here(secret) };
        let entry = LoginEntry { issuer: issuer.to_owned(), place };
        let changed = Ledger::change(file, |ledger| ledger.insert_login(server, entry));
        changed.map_err(|error| error.to_string())
    }

    fn forget(&self, server: &str) -> Result<(), String> {
        self.remove(server).map_err(|error| error.to_string())
    }

    /// Changes whenever the file changes: each change makes a new file.
    fn stamp(&self) -> u64 {
        let Ok(found) = std::fs::metadata(&self.credentials.file) else { return 0 };
        let words =
            [found.ino(), found.mtime().unsigned_abs(), found.mtime_nsec().unsigned_abs(), found.len()];
        words.into_iter().fold(1, |stamp: u64, word| stamp.wrapping_mul(0x100_0000_01b3).wrapping_add(word))
    }

    fn hold(&self, server: &str) -> Result<Box<dyn Send + Sync>, String> {
        let file: PathBuf = self.credentials.file.with_file_name(format!("login-{}.lock", digest(server)));
        let directory = file.parent().map(PathBuf::from).unwrap_or_default();
        create_private_directory(&directory).map_err(|error| error.to_string())?;
        let held: File = lock(&file, LOGIN_WAIT).map_err(|error| error.to_string())?;
        Ok(Box::new(held))
    }
}

/// A file name for a server. Two servers with the same name only wait for each other.
fn digest(server: &str) -> String {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", server.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}
