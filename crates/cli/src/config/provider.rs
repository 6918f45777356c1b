//! Providers as the file and the environment state them: dialect, address, source of the key, models. Knows no
//! key.

use std::path::PathBuf;

use attache_core::ports::model::{ModelInfo, Price, ThoughtLevel};
use attache_models::{BaseUrl, Dialect, VENDORS, Vendor, answer_share};

use super::error::shown;
use super::{Config, ConfigError, ProcessEnvironment, SettingOrigin, Sourced};

#[derive(Clone, Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    /// Where its table is; `Default` for a vendor that the file does not mention.
    pub(crate) origin: SettingOrigin,
    /// What we know of it without any configuration.
    pub(crate) vendor: Option<&'static Vendor>,
    pub(crate) wire: ProviderWire,
    pub(crate) models: Vec<ProviderModel>,
}

impl Provider {
    /// The vendor's small model, at the vendor's own address only: another server may not have it.
    pub(crate) fn small_model(&self) -> Option<&'static str> {
        let small = self.vendor?.small_model?;
        match &self.wire {
            ProviderWire::Http(HttpWire { base_url: Some(address), .. })
                if address.origin == SettingOrigin::Default =>
            {
                Some(small)
            }
            ProviderWire::Http(_) | ProviderWire::Script { .. } => None,
        }
    }
}

/// How to reach it.
#[derive(Clone, Debug)]
pub(crate) enum ProviderWire {
    /// The scripted model answers from this transcript; the path is absolute. `dialect` is the place that says
    /// so.
    Script {
        dialect: SettingOrigin,
        script: Sourced<PathBuf>,
    },
    Http(HttpWire),
}

#[derive(Clone, Debug)]
pub(crate) struct HttpWire {
    pub(crate) dialect: Sourced<Dialect>,
    /// `None` if the vendor has no common address (azure) and the user configured none.
    pub(crate) base_url: Option<Sourced<BaseUrl>>,
    /// Variables that may hold the key; the first one set wins.
    pub(crate) key_variables: Sourced<Vec<String>>,
}

/// What the file states about one model; the catalogue or the provider states the rest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderModel {
    pub(crate) name: String,
    pub(crate) context: Option<Sourced<u64>>,
    pub(crate) max_output: Option<Sourced<u64>>,
    pub(crate) images: Option<Sourced<bool>>,
    pub(crate) audio: Option<Sourced<bool>>,
    pub(crate) pdf: Option<Sourced<bool>>,
    pub(crate) reasoning: Option<Sourced<bool>>,
    pub(crate) price: Option<Sourced<StatedPrice>>,
}

/// Dollars per million tokens. A cache price left out equals the input price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StatedPrice {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: Option<f64>,
    pub(crate) cache_write: Option<f64>,
}

impl Provider {
    /// A vendor that only its name configures.
    fn of_vendor(vendor: &'static Vendor) -> Self {
        let default = |value| Sourced { value, origin: SettingOrigin::Default };
        let variables = vendor.key_variables.iter().map(|name| (*name).to_owned()).collect();
        Self {
            name: vendor.id.to_owned(),
            origin: SettingOrigin::Default,
            vendor: Some(vendor),
            wire: ProviderWire::Http(HttpWire {
                dialect: Sourced { value: vendor.dialect, origin: SettingOrigin::Default },
                base_url: vendor_address(vendor),
                key_variables: default(variables),
            }),
            models: Vec::new(),
        }
    }

    /// Whether the file or a variable mentions it.
    pub(crate) fn is_stated(&self) -> bool {
        self.origin != SettingOrigin::Default
    }
}

/// The vendor's own address, if it has one for all users.
pub(super) fn vendor_address(vendor: &Vendor) -> Option<Sourced<BaseUrl>> {
    let value = BaseUrl::parse(vendor.base_url).ok()?;
    Some(Sourced { value, origin: SettingOrigin::Default })
}

/// The variable that holds the key of a provider that is no known vendor: its name in capitals.
pub(super) fn own_key_variable(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("{}_API_KEY", letters.collect::<String>())
}

/// The message for a value that should name the variable of a key.
pub(super) const NO_VARIABLE_NAME: &str = "must be the name of an environment variable that holds the key (letters, digits and _), not the key itself";

pub(super) fn is_variable_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl Config {
    /// Adds the vendors that the file does not name, and the addresses that the environment sets for vendors.
    pub(super) fn complete_providers(
        &mut self,
        named: &[String],
        environment: &ProcessEnvironment,
        errors: &mut Vec<ConfigError>,
    ) {
        let unnamed = VENDORS.iter().filter(|vendor| !named.iter().any(|name| name == vendor.id));
        self.providers.extend(unnamed.map(Provider::of_vendor));
        for provider in &mut self.providers {
            let (Some(vendor), ProviderWire::Http(wire)) = (provider.vendor, &mut provider.wire) else {
                continue;
            };
            let variable = vendor.base_url_variable();
            if let Some(text) = environment.text(&variable) {
                let origin = SettingOrigin::Environment(variable);
                match BaseUrl::parse(text) {
                    Ok(value) => wire.base_url = Some(Sourced { value, origin }),
                    Err(bad) => errors.push(ConfigError { origin, message: bad_address(text, &bad) }),
                }
            } else if wire.base_url.is_none() && provider.origin != SettingOrigin::Default {
                let message = format!(
                    "`providers.{}` needs base_url: {} has no common address; write yours here or into {variable}",
                    provider.name, vendor.name
                );
                errors.push(ConfigError { origin: provider.origin.clone(), message });
            }
        }
    }

    pub(crate) fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }
}

/// Does not repeat an address that contains a password.
pub(super) fn bad_address(text: &str, bad: &attache_models::BadUrl) -> String {
    match bad {
        attache_models::BadUrl::Credentials => format!("the address {bad}"),
        attache_models::BadUrl::NoUrl(_) | attache_models::BadUrl::Scheme(_) => {
            format!("\"{}\" {bad}", shown(text))
        }
    }
}

impl ProviderModel {
    /// The known model with what the file states.
    pub(crate) fn over(&self, known: ModelInfo) -> ModelInfo {
        fn or<T: Copy>(stated: &Option<Sourced<T>>, known: T) -> T {
            stated.as_ref().map_or(known, |stated| stated.value)
        }
        let levels = match self.reasoning.as_ref().map(|reasoning| reasoning.value) {
            None => known.thought_levels,
            Some(false) => Vec::new(),
            Some(true) if !known.thought_levels.is_empty() => known.thought_levels,
            Some(true) => USUAL_LEVELS.to_vec(),
        };
        let context = or(&self.context, known.context);
        // A context stated here replaces the one that the known answer size belongs to.
        let longest = match self.context {
            Some(_) => answer_share(context),
            None => answer_share(context).max(known.max_output),
        };
        ModelInfo {
            context,
            max_output: or(&self.max_output, known.max_output).min(longest),
            images: or(&self.images, known.images),
            audio: or(&self.audio, known.audio),
            pdf: or(&self.pdf, known.pdf),
            thought_levels: levels,
            price: self.price.as_ref().map(|price| price.value.price()).or(known.price),
            ..known
        }
    }
}

/// The levels that almost every server with thought levels understands.
const USUAL_LEVELS: [ThoughtLevel; 3] = [ThoughtLevel::Low, ThoughtLevel::Medium, ThoughtLevel::High];

impl StatedPrice {
    fn price(&self) -> Price {
        Price {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write: self.cache_write.unwrap_or(self.input),
        }
    }
}
