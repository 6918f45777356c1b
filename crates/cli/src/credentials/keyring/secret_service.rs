//! Speaks to the Secret Service on the session bus.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use attache_models::Secret;
use dbus_secret_service::{EncryptionType, Error, SecretService};

use super::{Bus, Keyring, KeyringError, Patience};
use crate::limits::{KEYRING_ANSWER, UNLOCK_SECONDS};

impl Keyring {
    pub(crate) fn get(self, provider: &str, patience: Patience) -> Result<Secret, KeyringError> {
        let provider = provider.to_owned();
        self.ask(patience, move |service| {
            let found = service.search_items(attributes(&provider))?;
            let item = match (found.unlocked.first(), found.locked.first()) {
                (Some(item), _) => item,
                (None, Some(item)) => {
                    item.unlock()?;
                    item
                }
                (None, None) => return Err(Error::NoResult),
            };
            let text = String::from_utf8(item.get_secret()?).map_err(|_| Error::Parse)?;
            Secret::new(&text).ok_or(Error::NoResult)
        })
    }

    pub(crate) fn set(self, provider: &str, secret: &Secret) -> Result<(), KeyringError> {
        let (provider, secret) = (provider.to_owned(), secret.clone());
        self.ask(Patience::ForUnlocking, move |service| {
            let collection = match service.get_default_collection() {
                Ok(collection) => collection,
                Err(Error::NoResult) => return Ok(Err(KeyringError::NoCollection)),
                Err(error) => return Err(error),
            };
            collection.ensure_unlocked()?;
            let label = format!("attache: key of {provider}");
            let bytes = secret.expose().as_bytes();
            collection.create_item(&label, attributes(&provider), bytes, true, "text/plain")?;
            Ok(Ok(()))
        })?
    }

    /// One that is not there is no error.
    pub(crate) fn remove(self, provider: &str) -> Result<(), KeyringError> {
        let provider = provider.to_owned();
        self.ask(Patience::ForUnlocking, move |service| {
            let found = service.search_items(attributes(&provider))?;
            for item in found.unlocked.iter().chain(&found.locked) {
                item.delete()?;
            }
            Ok(())
        })
    }

    /// On a thread of its own, which is left behind if it never comes back: the library waits without an end.
    fn ask<T: Send + 'static>(
        self,
        patience: Patience,
        ask: impl FnOnce(&SecretService) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, KeyringError> {
        match self.bus {
            Bus::There => {}
            Bus::Absent => return Err(KeyringError::NoBus),
        }
        let (prompt_seconds, wait) = match patience {
            Patience::None => (0, KEYRING_ANSWER),
            Patience::ForUnlocking => (UNLOCK_SECONDS, KEYRING_ANSWER + Duration::from_secs(UNLOCK_SECONDS)),
        };
        let (sender, heard) = sync_channel(2);
        let asking = move || {
            let service =
                SecretService::connect_with_max_prompt_timeout(EncryptionType::Plain, prompt_seconds);
            let asked = match service {
                Ok(service) => {
                    // The caller has given up waiting: the answer is dropped, here and below.
                    drop(sender.send(KeyringReply::Connected));
                    ask(&service)
                }
                Err(error) => Err(error),
            };
            drop(sender.send(KeyringReply::Answer(asked)));
        };
        std::thread::Builder::new()
            .name("attache-keyring".to_owned())
            .spawn(asking)
            .map_err(|error| KeyringError::Failed(error.to_string()))?;
        match hear(&heard, KEYRING_ANSWER)? {
            KeyringReply::Answer(asked) => asked.map_err(told),
            KeyringReply::Connected => match hear(&heard, wait)? {
                KeyringReply::Answer(asked) => asked.map_err(told),
                KeyringReply::Connected => Err(KeyringError::Failed("it answered twice".to_owned())),
            },
        }
    }
}

/// What the thread that speaks to the keyring says.
enum KeyringReply<T> {
    /// There is a keyring: from now on a person may be what takes time.
    Connected,
    Answer(Result<T, Error>),
}

fn hear<T>(heard: &Receiver<KeyringReply<T>>, wait: Duration) -> Result<KeyringReply<T>, KeyringError> {
    heard.recv_timeout(wait).map_err(|error| match error {
        RecvTimeoutError::Timeout => KeyringError::Silent(wait),
        RecvTimeoutError::Disconnected => KeyringError::Failed("it broke off".to_owned()),
    })
}

/// How a key is found again.
fn attributes(provider: &str) -> HashMap<&str, &str> {
    HashMap::from([("application", "attache"), ("provider", provider)])
}

fn told(error: Error) -> KeyringError {
    match error {
        Error::Locked | Error::Prompt => KeyringError::Locked,
        Error::NoResult => KeyringError::NoSuchKey,
        Error::Unavailable => KeyringError::NoService,
        Error::Dbus(error) if is_absence(error.name()) => KeyringError::NoService,
        Error::Dbus(error) if error.name().is_some_and(|name| name.ends_with(".NoReply")) => {
            KeyringError::Silent(KEYRING_ANSWER)
        }
        // The library's own words; no secret is part of them.
        other => KeyringError::Failed(other.to_string()),
    }
}

fn is_absence(name: Option<&str>) -> bool {
    const ABSENT: [&str; 6] = [
        ".ServiceUnknown",
        ".NameHasNoOwner",
        ".FileNotFound",
        ".NoServer",
        ".NotSupported",
        ".Spawn.ServiceNotFound",
    ];
    name.is_some_and(|name| ABSENT.iter().any(|absent| name.ends_with(absent)))
}
