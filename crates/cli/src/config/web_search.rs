//! `[web_search]`: which service searches the web for the model, at which address, and which variable holds the
//! key. Knows no key.

use attache_models::BaseUrl;
use attache_tools::SearchProvider;

use super::{ConfigError, SettingOrigin, Sourced};

/// What the file and the variables state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WebSearchSettings {
    pub(super) provider: Option<Sourced<SearchProvider>>,
    pub(super) base_url: Option<Sourced<BaseUrl>>,
    pub(super) api_key_env: Option<Sourced<String>>,
}

/// The settings in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchService {
    pub(crate) provider: Sourced<SearchProvider>,
    pub(crate) base_url: Sourced<BaseUrl>,
    /// `None` if the service takes no key.
    pub(crate) key_variable: Option<Sourced<String>>,
}

impl WebSearchSettings {
    /// What is stated, completed with defaults. `None` if the model cannot search.
    pub(crate) fn service(&self) -> Option<SearchService> {
        let provider = self.provider.clone()?;
        let usual_address = || {
            let value = BaseUrl::parse(provider.value.usual_address()?).ok()?;
            Some(Sourced { value, origin: SettingOrigin::Default })
        };
        let base_url = self.base_url.clone().or_else(usual_address)?;
        let key_variable = provider.value.usual_key_variable().map(|name| {
            let usual = || Sourced { value: name.to_owned(), origin: SettingOrigin::Default };
            self.api_key_env.clone().unwrap_or_else(usual)
        });
        Some(SearchService { provider, base_url, key_variable })
    }

    /// Reports settings that contradict each other.
    pub(super) fn check(&self, errors: &mut Vec<ConfigError>) {
        // A key that we refused earlier was still stated.
        let is_refused = |key: &str| {
            let named = format!("`web_search.{key}`");
            errors.iter().any(|error| error.message.contains(&named))
        };
        let (provider_refused, address_refused) = (is_refused("provider"), is_refused("base_url"));
        let mut refuse = |origin: &SettingOrigin, message: String| {
            errors.push(ConfigError { origin: origin.clone(), message });
        };
        let Some(provider) = &self.provider else {
            let origins = [
                self.base_url.as_ref().map(|base_url| &base_url.origin),
                self.api_key_env.as_ref().map(|variable| &variable.origin),
            ];
            if let Some(origin) = origins.into_iter().flatten().next().filter(|_| !provider_refused) {
                refuse(origin, format!("`web_search` needs provider = {}", names()));
            }
            return;
        };
        let name = provider.value.as_str();
        if self.service().is_none() && !address_refused {
            let message =
                "`web_search` needs base_url = \"http://…\", the address of your own server".to_owned();
            refuse(&provider.origin, message);
        }
        if let (Some(variable), None) = (&self.api_key_env, provider.value.usual_key_variable()) {
            refuse(&variable.origin, format!("`web_search.api_key_env` has no use: {name} takes no key"));
        }
    }
}

/// "a", "b" or "c"
fn names() -> String {
    let quoted = SearchProvider::ALL.map(|provider| format!("\"{}\"", provider.as_str()));
    match quoted.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
