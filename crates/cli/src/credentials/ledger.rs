//! The file that keeps keys and notes which of them are in the keyring. Only its owner may read it; each change
//! replaces it completely.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache_models::Secret;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::dirs::create_private_directory;
use crate::limits::{LEDGER_WAIT, MAX_LEDGER_BYTES};

/// Provider → where its key is; MCP server → where its login is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    entries: BTreeMap<String, LedgerEntry>,
    logins: BTreeMap<String, LoginEntry>,
}

/// A login at an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoginEntry {
    pub(crate) issuer: String,
    pub(crate) place: LedgerEntry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LedgerEntry {
    Keyring,
    Here(Secret),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum LedgerError {
    #[error("{0} holds keys and can be read by others (mode {1:04o}); run `chmod 600 {0}`")]
    Exposed(PathBuf, u32),
    #[error("{0} is damaged ({1}); remove it, then run `attache auth login PROVIDER` again")]
    Damaged(PathBuf, String),
    #[error("{0} can't be {1}: {2}")]
    Io(PathBuf, &'static str, String),
    #[error("{0} is being changed by another process; try again")]
    Busy(PathBuf),
}

impl Ledger {
    /// Empty if there is no file.
    pub(crate) fn read(path: &Path) -> Result<Self, LedgerError> {
        let failed = |error: std::io::Error| LedgerError::Io(path.to_owned(), "read", error.to_string());
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(error)),
        };
        // The mode of the opened file, which no other process can swap in between.
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(LedgerError::Exposed(path.to_owned(), mode));
        }
        let mut text = String::new();
        let size = file.take(MAX_LEDGER_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if size as u64 > MAX_LEDGER_BYTES {
            return Err(LedgerError::Damaged(path.to_owned(), "too large".to_owned()));
        }
        Self::parse(&text).map_err(|reason| LedgerError::Damaged(path.to_owned(), reason))
    }

    /// Reads, changes and writes it while no other process does.
    pub(crate) fn change(path: &Path, change: impl FnOnce(&mut Self)) -> Result<(), LedgerError> {
        let failed = |error: std::io::Error| LedgerError::Io(path.to_owned(), "written", error.to_string());
        let directory = path.parent().unwrap_or(Path::new("/"));
        create_private_directory(directory).map_err(failed)?;
        let _held = lock(&path.with_extension("lock"), LEDGER_WAIT)?;
        let mut ledger = Self::read(path)?;
        change(&mut ledger);
        // The new file is private from the start, and replaces the old one completely or not at all.
        let mut file =
            tempfile::Builder::new().prefix(".credentials-").tempfile_in(directory).map_err(failed)?;
        file.write_all(ledger.written().as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }

    pub(crate) fn get(&self, provider: &str) -> Option<&LedgerEntry> {
        self.entries.get(provider)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn insert(&mut self, provider: &str, entry: LedgerEntry) {
        self.entries.insert(provider.to_owned(), entry);
    }

    pub(crate) fn remove(&mut self, provider: &str) {
        self.entries.remove(provider);
    }

    /// The login at the MCP server with this address.
    pub(crate) fn login(&self, server: &str) -> Option<&LoginEntry> {
        self.logins.get(server)
    }

    pub(crate) fn insert_login(&mut self, server: &str, entry: LoginEntry) {
        self.logins.insert(server.to_owned(), entry);
    }

    pub(crate) fn remove_login(&mut self, server: &str) {
        self.logins.remove(server);
    }

    /// Says what is wrong without quoting the text, which contains keys.
    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("invalid JSON in line {}, column {}", error.line(), error.column()))?;
        let keys = value.get("keys").and_then(Value::as_object).ok_or("there is no table `keys`")?;
        let unreadable = |name: &str| format!("the entry of `{}` can't be read", name.escape_debug());
        let mut ledger = Self::default();
        for (provider, kept) in keys {
            let entry = LedgerEntry::read(kept).ok_or_else(|| unreadable(provider))?;
            ledger.entries.insert(provider.clone(), entry);
        }
        for (server, kept) in value.get("logins").and_then(Value::as_object).into_iter().flatten() {
            let issuer = kept.get("issuer").and_then(Value::as_str).map(str::to_owned);
            let entry =
                issuer.and_then(|issuer| Some(LoginEntry { issuer, place: LedgerEntry::read(kept)? }));
            ledger.logins.insert(server.clone(), entry.ok_or_else(|| unreadable(server))?);
        }
        Ok(ledger)
    }

    fn written(&self) -> String {
        let keys = self.entries.iter().map(|(provider, entry)| (provider.clone(), entry.written()));
        let keys: Map<String, Value> = keys.collect();
        let logins = self.logins.iter().map(|(server, LoginEntry { issuer, place })| {
            let mut kept = place.written();
            kept["issuer"] = issuer.as_str().into();
            (server.clone(), kept)
        });
        let logins: Map<String, Value> = logins.collect();
        let all = match logins.is_empty() {
            true => json!({ "keys": keys }),
            false => json!({ "keys": keys, "logins": logins }),
        };
        format!("{all:#}\n")
    }
}

impl LedgerEntry {
    fn read(kept: &Value) -> Option<Self> {
        match (kept.get("key").and_then(Value::as_str), kept.get("in").and_then(Value::as_str)) {
            (Some(key), None) => Secret::new(key).map(Self::Here),
            (None, Some("keyring")) => Some(Self::Keyring),
            _ => None,
        }
    }

    fn written(&self) -> Value {
        match self {
            Self::Keyring => json!({ "in": "keyring" }),
            Self::Here(secret) => json!({ "key": secret.expose() }),
        }
    }
}

/// Holds the lock until it is dropped. The lock has its own file, because each change replaces the ledger.
pub(super) fn lock(path: &Path, patience: Duration) -> Result<File, LedgerError> {
    let failed = |error: std::io::Error| LedgerError::Io(path.to_owned(), "opened", error.to_string());
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(LedgerError::Busy(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
