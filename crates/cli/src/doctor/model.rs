//! The model: is one chosen, is it known, has its provider a key, does the server answer and take it.

use attache_core::ports::Model;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_models::{BaseUrl, DiscoverError, Endpoint, KeyNeed, Secret, models_of};

use super::{Finding, prompt};
use crate::config::{HttpWire, Provider, Wire};
use crate::credentials::{Key, Patience};
use crate::limits::ANSWER;
use crate::providers::{self, LiveProviders, Standing, State, THREE_WAYS_LISTED, key_hint, why_not};
use crate::setup::Sources;

/// Why the configured servers have no model, or the ways to get one.
async fn none_available(standings: &[Standing<'_>], sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_own =
        |standing: &&Standing<'_>| standing.provider.vendor.is_none() && providers::is_to_be_asked(standing);
    for standing in standings.iter().filter(is_own) {
        if let Err(error) = providers::asked(standing, &sources.opener).await {
            let said = format!("{} can't be used: {error}", standing.provider.name);
            let fix =
                format!("start the server, or correct [providers.{}] and its key", standing.provider.name);
            findings.push(Finding::fail("model", said, fix));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::fail("model", "none is available", THREE_WAYS_LISTED.join("\n")));
    }
    findings
}

pub(super) async fn check(sources: &Sources) -> Vec<Finding> {
    let live = match sources.live() {
        Ok(live) => live,
        Err(errors) => return vec![Finding::fail("model", errors.to_string(), "correct the script")],
    };
    live.look_again().await;
    let usual = live.available().first().map(|info| info.model.clone());
    let configured = sources.config.model.as_ref().map(|model| model.value.clone());
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let Some(model) = configured.clone().or(usual) else {
        return none_available(&standings, sources).await;
    };
    let how = if configured.is_some() { "configured" } else { "the first available one" };
    let Some(standing) = standings.iter().find(|standing| standing.provider.name == model.provider_id) else {
        return vec![Finding::fail(
            "model",
            providers::unknown(&model.provider_id, &sources.config),
            "correct the name of its provider",
        )];
    };
    let provider = standing.provider;
    let (wire, key) = match (&standing.state, &provider.wire) {
        (State::Ready(key), Wire::Http(wire)) => (wire, key.as_ref()),
        (State::PerhapsRunning, Wire::Http(wire)) => (wire, None),
        (State::Scripted, _) | (_, Wire::Script { .. }) => {
            let described = Finding::ok("model", format!("{model} (a script, {how})"));
            return vec![described, prompt::check(sources, &live, &model).await];
        }
        (State::NoKey | State::NoAddress | State::KeyTrouble(_), Wire::Http(_)) => {
            let reason = why_not(standing).unwrap_or_default();
            let page = provider.vendor.map(|vendor| format!("get a key at {}", vendor.key_page));
            return vec![Finding::fail(
                "key",
                format!("{model} can't be used: {reason}"),
                page.unwrap_or_default(),
            )];
        }
    };
    let mut findings = vec![described(sources, &live, provider, &model, how)];
    match secret(sources, provider, key) {
        Ok(secret) => {
            let (said, reached) = answered(sources, provider, wire, key, secret, &model).await;
            findings.extend(said);
            if reached == Reached::Yes {
                findings.push(prompt::check(sources, &live, &model).await);
            }
        }
        Err(finding) => findings.push(finding),
    }
    findings
}

/// Whether it makes sense to send a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Yes,
    No,
}

fn described(
    sources: &Sources,
    live: &LiveProviders,
    provider: &Provider,
    model: &ModelRef,
    how: &str,
) -> Finding {
    let listed = live.available().iter().any(|info| info.model.names_same_model(model));
    let in_catalogue =
        provider.vendor.is_some_and(|vendor| sources.opener.catalogue.get().find(vendor, model).is_some());
    let stated = provider.models.iter().any(|stated| stated.name == model.model_id);
    let info = live.describe(model).unwrap_or_else(|| ModelInfo::undescribed(model.clone()));
    let context = info.context;
    match listed || in_catalogue || stated {
        true => Finding::ok("model", format!("{model} ({how}; context {context} tokens)")),
        false => Finding::warn(
            "model",
            format!("{model} ({how}) is not in the catalogue; attache assumes a context of {context} tokens"),
            format!(
                "`attache models refresh` may know it; else state its size under [providers.{}.models.\"{}\"] in {}",
                provider.name,
                model.model_id,
                sources.config.file.display()
            ),
        ),
    }
}

/// The key itself, also from the keyring.
fn secret(sources: &Sources, provider: &Provider, key: Option<&Key>) -> Result<Option<Secret>, Finding> {
    match key {
        None => Ok(None),
        Some(Key::Environment { secret, .. } | Key::File { secret, .. }) => Ok(Some(secret.clone())),
        Some(Key::Keyring) => {
            let asked = sources.credentials.keyring.get(&provider.name, Patience::None);
            asked.map(Some).map_err(|error| {
                let next = format!("unlock the keyring, or run `attache auth login {}`", provider.name);
                Finding::fail(
                    "key",
                    format!("the key of {} is in the keyring, but {error}", provider.name),
                    next,
                )
            })
        }
    }
}

async fn answered(
    sources: &Sources,
    provider: &Provider,
    wire: &HttpWire,
    key: Option<&Key>,
    secret: Option<Secret>,
    model: &ModelRef,
) -> (Vec<Finding>, Reached) {
    let Some(endpoint) = sources.opener.endpoint(provider, wire, key) else {
        return (Vec::new(), Reached::No);
    };
    let endpoint = Endpoint { key: secret, ..endpoint };
    let (name, url) = (&provider.name, endpoint.base_url.as_str());
    let key_found = match key {
        Some(key) => format!("{name}: from {key}"),
        None => format!("{name} needs none"),
    };
    let said = models_of(&sources.opener.http, name, &endpoint, ANSWER).await;
    match said {
        Ok(models) => {
            let mut findings = vec![
                Finding::ok("key", format!("{key_found}, accepted")),
                Finding::ok("endpoint", format!("{url} answers")),
            ];
            findings.extend(unknown_there(provider, &models, model));
            (findings, Reached::Yes)
        }
        Err(error @ DiscoverError::KeyRefused { .. }) => {
            let refused = format!("{key_found}, refused: {error}");
            (vec![Finding::fail("key", refused, key_hint(provider, key))], Reached::No)
        }
        Err(error @ (DiscoverError::Unreachable { .. } | DiscoverError::TooSlow { .. })) => {
            let endpoint = Finding::fail("endpoint", error.to_string(), unreachable(provider, wire));
            (vec![Finding::ok("key", key_found), endpoint], Reached::No)
        }
        Err(error @ DiscoverError::Untrusted { .. }) => {
            let next = "the error says what is wrong with the certificate; SSL_CERT_FILE names a file of trusted authorities";
            let endpoint = Finding::fail("endpoint", error.to_string(), next);
            (vec![Finding::ok("key", key_found), endpoint], Reached::No)
        }
        Err(
            error @ (DiscoverError::NoSuchPath { .. }
            | DiscoverError::Nonsense { .. }
            | DiscoverError::Refused { .. }),
        ) => {
            let next = match likely_address(sources, name, &endpoint).await {
                Some(likely) => format!("{likely} answers: set base_url of [providers.{name}] to it"),
                None => wrong_path(provider, wire),
            };
            let endpoint = Finding::warn("endpoint", error.to_string(), next);
            // Some servers have no list of models and answer prompts all the same.
            (vec![Finding::ok("key", key_found), endpoint], Reached::Yes)
        }
    }
}

/// The same server under an address as its vendor would write it, if one of those answers.
async fn likely_address(sources: &Sources, name: &str, endpoint: &Endpoint) -> Option<String> {
    for address in addresses_near(endpoint.base_url.as_str()) {
        let Ok(base_url) = BaseUrl::parse(&address) else { continue };
        let candidate = Endpoint { base_url, ..endpoint.clone() };
        if models_of(&sources.opener.http, name, &candidate, ANSWER).await.is_ok() {
            return Some(address);
        }
    }
    None
}

/// What is often written instead: a version too many or too few, or the path of one request.
fn addresses_near(base_url: &str) -> Vec<String> {
    const REQUESTS: [&str; 4] = ["/chat/completions", "/responses", "/messages", "/models"];
    let bare = base_url.trim_end_matches('/');
    let without_request = REQUESTS.iter().find_map(|request| bare.strip_suffix(request)).unwrap_or(bare);
    let without_version = without_request.strip_suffix("/v1").unwrap_or(without_request);
    let with_version = format!("{without_version}/v1");
    let with_api = format!("{without_version}/api/v1");
    let mut near = vec![with_version, without_version.to_owned(), with_api];
    near.retain(|address| address != bare);
    near
}

/// The server's own list decides, where it gives one.
fn unknown_there(provider: &Provider, models: &[ModelInfo], model: &ModelRef) -> Option<Finding> {
    if models.is_empty() || models.iter().any(|info| info.model.model_id == model.model_id) {
        return None;
    }
    let near = models
        .iter()
        .map(|info| info.model.model_id.as_str())
        .max_by(|one, other| likeness(one, model).total_cmp(&likeness(other, model)))?;
    Some(Finding::warn(
        "model",
        format!("{} does not list `{}`", provider.name, model.model_id),
        format!("nearest there: {near}; all of them: attache models {}", provider.name),
    ))
}

fn likeness(id: &str, model: &ModelRef) -> f64 {
    strsim::jaro_winkler(id, &model.model_id)
}

fn unreachable(provider: &Provider, wire: &HttpWire) -> String {
    let is_here = wire.base_url.as_ref().is_some_and(|base_url| base_url.value.is_loopback());
    match (is_here, provider.vendor) {
        (true, Some(vendor)) if vendor.key == KeyNeed::Optional => {
            format!("start the server ({}: {}), or correct its address", vendor.name, vendor.key_page)
        }
        (true, Some(vendor)) => {
            format!("start the server, or correct its address (base_url or {})", vendor.base_url_variable())
        }
        (true, None) => format!("start the server, or correct base_url of [providers.{}]", provider.name),
        (false, _) => "check the network, the proxy (HTTPS_PROXY) and the address".to_owned(),
    }
}

fn wrong_path(provider: &Provider, wire: &HttpWire) -> String {
    let usual = match wire.dialect.value.base_path() {
        "" => "it usually has no version at its end".to_owned(),
        path => format!("it usually ends with {path}"),
    };
    format!("if prompts fail too, correct base_url of [providers.{}]: {usual}", provider.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_tried_as_vendors_write_them() {
        assert_eq!(addresses_near("http://h:1"), ["http://h:1/v1", "http://h:1/api/v1"]);
        assert_eq!(addresses_near("http://h:1/v1/"), ["http://h:1", "http://h:1/api/v1"]);
        assert_eq!(
            addresses_near("http://h:1/v1/chat/completions"),
            ["http://h:1/v1", "http://h:1", "http://h:1/api/v1"]
        );
    }
}
