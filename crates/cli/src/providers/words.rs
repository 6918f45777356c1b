//! What to do about a key, in words that name the variable, the command and the page.

use attache_models::{VENDORS, Vendor};

use super::{ProviderState, Standing};
use crate::config::{Config, HttpWire, Provider, ProviderWire};
use crate::credentials::ApiKey;

/// For a user who has no provider yet, in one line.
pub(crate) const THREE_WAYS: &str = "Set an API key variable (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …), or run \
     `attache auth login PROVIDER`, or start a local server (ollama, llama.cpp, LM Studio, vLLM).";

/// The same, as a list for a terminal.
pub(crate) const THREE_WAYS_LISTED: [&str; 3] = [
    "set a variable: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
    "store a key: attache auth login PROVIDER",
    "start a server here: ollama, llama.cpp, LM Studio or vLLM",
];

/// A name that is neither a known nor a configured provider.
pub(crate) fn unknown(name: &str, config: &Config) -> String {
    let near = Vendor::nearest(name).map(|near| format!("; did you mean `{}`?", near.id));
    let vendors = VENDORS.iter().map(|vendor| vendor.id);
    let own = config.providers.iter().filter(|provider| provider.vendor.is_none());
    let known: Vec<&str> = vendors.chain(own.map(|provider| provider.name.as_str())).collect();
    format!(
        "there is no provider `{}`{} (known: {}; any other needs [providers.NAME] with dialect and base_url in {})",
        name.escape_debug(),
        near.unwrap_or_default(),
        known.join(", "),
        config.file.display()
    )
}

/// For a provider without a key: `set X_API_KEY or run …`.
pub(crate) fn how_to_get_a_key(provider: &Provider) -> String {
    let login = format!("`attache auth login {}`", provider.name);
    match key_variable(provider) {
        Some(variable) => format!("set {variable} or run {login}"),
        None => format!("run {login}"),
    }
}

/// For a provider without a common address: `set X_BASE_URL, or write …`.
pub(crate) fn how_to_give_an_address(provider: &Provider, file: &str) -> String {
    let variable = provider.vendor.map(|vendor| vendor.base_url_variable()).unwrap_or_default();
    let name = &provider.name;
    format!(
        "{name} needs your own address: set {variable}, or write into {file}:\n  [providers.{name}]\n  base_url = \"https://…\""
    )
}

fn key_variable(provider: &Provider) -> Option<&str> {
    match &provider.wire {
        ProviderWire::Http(HttpWire { key_variables, .. }) => key_variables.value.first().map(String::as_str),
        ProviderWire::Script { .. } => None,
    }
}

/// A sentence to follow a provider's own words when it refuses the key.
pub(crate) fn key_hint(provider: &Provider, key: Option<&ApiKey>) -> String {
    let name = &provider.name;
    let page = match provider.vendor {
        Some(vendor) => format!(" Get a key at {}.", vendor.key_page),
        None => String::new(),
    };
    match key {
        Some(ApiKey::Environment { variable, .. }) => {
            format!(
                "The key comes from {variable}: set it to a valid one, or unset it and run `attache auth login {name}`.{page}"
            )
        }
        Some(ApiKey::Keyring) => {
            format!("The key comes from the keyring: run `attache auth login {name}` to replace it.{page}")
        }
        Some(ApiKey::File { file, .. }) => {
            format!(
                "The key comes from {}: run `attache auth login {name}` to replace it.{page}",
                file.display()
            )
        }
        None => {
            let way = how_to_get_a_key(provider);
            let mut sentence = way.chars();
            let first = sentence.next().map(|first| first.to_ascii_uppercase());
            format!("{}{}.{page}", first.map(String::from).unwrap_or_default(), sentence.as_str())
        }
    }
}

/// Why the provider is not usable now, and what to do; `None` if it is usable.
pub(crate) fn why_not(standing: &Standing<'_>) -> Option<String> {
    let provider = standing.provider;
    match &standing.state {
        ProviderState::Scripted | ProviderState::Ready(_) => None,
        ProviderState::PerhapsRunning => Some("not running".to_owned()),
        ProviderState::NoKey => {
            let (variable, name) = (key_variable(provider).unwrap_or_default(), &provider.name);
            Some(format!("no key: set {variable}, or `attache auth login {name}`"))
        }
        ProviderState::NoAddress => {
            let variable = provider.vendor.map(|vendor| vendor.base_url_variable()).unwrap_or_default();
            Some(format!("no address: set {variable}, or base_url in [providers.{}]", provider.name))
        }
        ProviderState::KeyTrouble(trouble) => Some(trouble.to_string()),
    }
}
