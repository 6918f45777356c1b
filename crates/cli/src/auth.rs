//! `attache auth`: asks for a provider's key, checks and stores it; says where keys come from; forgets them.
//! Never shows one.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use attache_models::{KeyNeed, Secret, Vendor};

use crate::answer;
use crate::args::{AuthCommand, LoginArgs};
use crate::config::{Config, HttpWire, Provider, ProviderWire};
use crate::credentials::{ApiKey, Credentials, KeyPlace, Keys, LedgerEntry, Patience, Stored};
use crate::providers::{
    Opener, ProviderState, Standing, how_to_get_a_key, how_to_give_an_address, standings, unknown, why_not,
};
use crate::setup::Sources;

mod check;
mod choose;
mod read_key;

/// What the commands use.
#[derive(Debug)]
pub(crate) struct AuthCommands<'a> {
    config: &'a Config,
    credentials: &'a Credentials,
    opener: &'a Opener,
}

impl<'a> AuthCommands<'a> {
    pub(crate) fn new(sources: &'a Sources) -> Self {
        Self { config: &sources.config, credentials: &sources.credentials, opener: &sources.opener }
    }

    pub(crate) async fn run(&self, command: &AuthCommand) -> Result<()> {
        match command {
            AuthCommand::Login(login) => {
                let provider = self.chosen(login.provider.as_deref()).await?;
                self.login(&provider, login).await
            }
            AuthCommand::Status => self.status(),
            AuthCommand::Logout { provider } => self.logout(provider),
        }
    }

    /// Asks for the provider as well. Editors run this in a terminal.
    pub(crate) async fn login_to_any(&self, provider: Option<&str>) -> Result<()> {
        let provider = self.chosen(provider).await?;
        self.login(&provider, &LoginArgs::default()).await
    }

    /// Asks for a provider and its key; returns the provider.
    pub(crate) async fn login_to_chosen(&self) -> Result<String> {
        let provider = self.chosen(None).await?;
        self.login(&provider, &LoginArgs::default()).await?;
        Ok(provider)
    }

    async fn chosen(&self, provider: Option<&str>) -> Result<String> {
        match provider {
            Some(provider) => Ok(provider.to_owned()),
            None => choose::provider(self.config).await,
        }
    }

    async fn login(&self, name: &str, login: &LoginArgs) -> Result<()> {
        let (provider, wire) = self.find(name)?;
        let name = &provider.name;
        if let Some(vendor) = provider.vendor {
            answer::note(&before_a_key(vendor));
        }
        let secret = read_key::read(name).await?;
        if !login.no_check {
            check::accepted(self.opener, provider, wire, &secret).await?;
        }
        let place = if login.file { KeyPlace::File } else { KeyPlace::KeyringElseFile };
        match self.credentials.store(name, &secret, place)? {
            Stored::Keyring => answer::write(&format!("Stored the key of {name} in the keyring.\n"))?,
            Stored::File { file, because } => {
                if let Some(reason) = because {
                    answer::note(&format!("The keyring is not used: {reason}."));
                }
                answer::write(&format!(
                    "Stored the key of {name} in {}, which only you can read.\n",
                    file.display()
                ))?;
            }
        }
        if wire.base_url.is_none() {
            let file = self.config.file.display();
            answer::note(&format!("Still to do: {}", how_to_give_an_address(provider, &file.to_string())));
        }
        if let Some(variable) = self.winning_variable(provider, wire)? {
            answer::note(&format!("{variable} is set and takes precedence; unset it to use the stored key."));
        }
        Ok(())
    }

    fn logout(&self, name: &str) -> Result<()> {
        let keys = self.credentials.read();
        let is_kept = keys.kept().any(|kept| kept == name);
        if !is_kept {
            // A typing error must not look like success.
            self.find(name)?;
        }
        match self.credentials.forget(name)? {
            Some(LedgerEntry::Keyring) => {
                answer::write(&format!("Deleted the key of {name} from the keyring.\n"))?
            }
            Some(LedgerEntry::Here(_)) => {
                let file = self.credentials.file().display();
                answer::write(&format!("Deleted the key of {name} from {file}.\n"))?;
            }
            None => answer::write(&format!("No key of {name} is stored.\n"))?,
        }
        if let Some(Provider { wire: ProviderWire::Http(wire), .. }) = self.config.provider(name)
            && let Some(provider) = self.config.provider(name)
            && let Some(variable) = self.winning_variable(provider, wire)?
        {
            answer::note(&format!("{variable} is still set, so {name} still works."));
        }
        Ok(())
    }

    fn status(&self) -> Result<()> {
        let keys = self.credentials.read();
        let mut text = String::new();
        let standings = standings(self.config, &keys);
        let width = standings.iter().map(|standing| standing.provider.name.len()).max().unwrap_or(0);
        for standing in &standings {
            writeln!(text, "{:width$}  {}", standing.provider.name, self.told(standing))?;
        }
        for orphan in keys.kept().filter(|name| self.config.provider(name).is_none()) {
            writeln!(
                text,
                "{orphan:width$}  a key is stored, but nothing is configured; `attache auth logout {orphan}` forgets it"
            )?;
        }
        answer::write(&text)?;
        if let Some(trouble) = keys.trouble() {
            bail!("{trouble}");
        }
        Ok(())
    }

    /// Where the key of a provider comes from.
    fn told(&self, standing: &Standing<'_>) -> String {
        let provider = standing.provider;
        match &standing.state {
            ProviderState::Scripted => "a script; needs no key".to_owned(),
            ProviderState::Ready(Some(ApiKey::Keyring)) => {
                match self.credentials.keyring.get(&provider.name, Patience::None) {
                    Ok(secret) => format!("key from the keyring{}", tail(&secret)),
                    Err(error) => format!("key from the keyring, but {error}"),
                }
            }
            ProviderState::Ready(Some(
                key @ (ApiKey::Environment { secret, .. } | ApiKey::File { secret, .. }),
            )) => {
                format!("key from {key}{}", tail(secret))
            }
            ProviderState::Ready(None) | ProviderState::PerhapsRunning => "needs no key".to_owned(),
            ProviderState::NoKey => format!("no key: {}", how_to_get_a_key(provider)),
            ProviderState::NoAddress => why_not(standing).unwrap_or_default(),
            ProviderState::KeyTrouble(_) => "unknown: the file of keys can't be used".to_owned(),
        }
    }

    /// The provider of that name, if it can use a key.
    fn find(&self, name: &str) -> Result<(&Provider, &HttpWire)> {
        let Some(provider) = self.config.provider(name) else {
            bail!(unknown(name, self.config));
        };
        match &provider.wire {
            ProviderWire::Http(wire) => Ok((provider, wire)),
            ProviderWire::Script { .. } => bail!("`{name}` answers from a script and needs no key"),
        }
    }

    /// A variable that is set and therefore wins over a stored key.
    fn winning_variable(&self, provider: &Provider, wire: &HttpWire) -> Result<Option<String>> {
        let keys: Keys = self.credentials.read();
        let key = keys.of(&provider.name, &wire.key_variables.value).context("the stored keys")?;
        Ok(match key {
            Some(ApiKey::Environment { variable, .. }) => Some(variable),
            Some(ApiKey::Keyring | ApiKey::File { .. }) | None => None,
        })
    }
}

/// Where the user gets a key, or that the provider needs none.
fn before_a_key(vendor: &Vendor) -> String {
    let Vendor { name, key_page, .. } = vendor;
    match vendor.key {
        KeyNeed::Required => format!("Get a key for {name} at {key_page}"),
        KeyNeed::Optional => format!(
            "{name} is a server of your own and needs no key: start it ({key_page}), then `attache models` shows its models.\n\
             Enter a key only if you set one up in your server."
        ),
    }
}

/// The last four characters of a long key: enough to tell two keys apart, and of no use to others.
fn tail(secret: &Secret) -> String {
    let characters: Vec<char> = secret.expose().chars().collect();
    match characters.len() {
        0..TELLING_LENGTH => String::new(),
        length => format!(" (…{})", characters[length - 4..].iter().collect::<String>()),
    }
}

/// For a shorter key four characters would reveal too much.
const TELLING_LENGTH: usize = 20;
