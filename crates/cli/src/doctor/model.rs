//! The model: whether one is chosen, whether we know it, whether its provider has a key, whether the server
//! answers and accepts it.

use attache_core::ports::Model;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_models::{DiscoverError, ListFailure, ProviderDiagnosis};
use futures_util::future::join_all;

use super::{Finding, prompt};
use crate::config::{Provider, ProviderWire};
use crate::credentials::ApiKey;
use crate::providers::{self, Examined, LiveProviders, ProviderState, Standing, THREE_WAYS_LISTED, why_not};
use crate::setup::{Sources, foreign_agent_here};

/// Why the configured providers have no model, or how to get one. Includes providers that `session/new` says
/// nothing about: those that only a variable names, and those that were too slow.
async fn none_available(standings: &[Standing<'_>], sources: &Sources, live: &LiveProviders) -> Vec<Finding> {
    let findings = others(standings, sources, None, Finding::fail).await;
    if !findings.is_empty() {
        return findings;
    }
    let problems = live.provider_problems().join("\n");
    let ways = THREE_WAYS_LISTED.join("\n");
    match problems.is_empty() {
        true => vec![Finding::fail("model", "none is available", ways)],
        false => vec![Finding::fail("model", "none is available", problems)],
    }
}

/// What is wrong with each provider of the file, except the one that another check covers.
async fn others(
    standings: &[Standing<'_>],
    sources: &Sources,
    but: Option<&str>,
    finding: fn(&'static str, String, String) -> Finding,
) -> Vec<Finding> {
    let stated = standings
        .iter()
        .filter(|standing| standing.provider.is_stated() && but != Some(standing.provider.name.as_str()));
    let looked = stated.map(|standing| async move {
        let name = &standing.provider.name;
        match providers::examine(standing, &sources.opener).await {
            Examined::Failed(diagnosis, _) => Some((diagnosis.problem, diagnosis.fix)),
            Examined::NoKey(error) => {
                let problem = format!("{name} can't be used: its key is in the keyring, but {error}");
                Some((problem, format!("unlock the keyring, or run `attache auth login {name}`")))
            }
            Examined::Models(_) => None,
            Examined::NotAsked => {
                why_not(standing).map(|reason| (format!("{name} can't be used: {reason}"), String::new()))
            }
        }
    });
    let found = join_all(looked).await.into_iter().flatten();
    found.map(|(problem, fix)| finding("provider", problem, fix)).collect()
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
        if let Some(agent) = foreign_agent_here(sources) {
            let mut findings = vec![Finding::ok(
                "model",
                format!("none, and none is needed: the agent {agent} has its own"),
            )];
            findings.extend(others(&standings, sources, None, Finding::warn).await);
            return findings;
        }
        return none_available(&standings, sources, &live).await;
    };
    let how = if configured.is_some() { "configured" } else { "the first available one" };
    let Some(standing) = standings.iter().find(|standing| standing.provider.name == model.provider_id) else {
        return vec![Finding::fail(
            "model",
            providers::unknown(&model.provider_id, &sources.config),
            "correct the name of its provider",
        )];
    };
    let mut findings = chosen(sources, &live, standing, &model, how).await;
    findings.extend(others(&standings, sources, Some(&model.provider_id), Finding::warn).await);
    findings
}

/// The model of new sessions and its provider.
async fn chosen(
    sources: &Sources,
    live: &LiveProviders,
    standing: &Standing<'_>,
    model: &ModelRef,
    how: &str,
) -> Vec<Finding> {
    let provider = standing.provider;
    let key = match (&standing.state, &provider.wire) {
        (ProviderState::Ready(key), ProviderWire::Http(_)) => key.as_ref(),
        (ProviderState::PerhapsRunning, ProviderWire::Http(_)) => None,
        (ProviderState::Scripted, _) | (_, ProviderWire::Script { .. }) => {
            let described = Finding::ok("model", format!("{model} (a script, {how})"));
            return vec![described, prompt::check(sources, live, standing, model, ListedModels::Given).await];
        }
        (
            ProviderState::NoKey | ProviderState::NoAddress | ProviderState::KeyTrouble(_),
            ProviderWire::Http(_),
        ) => {
            let reason = why_not(standing).unwrap_or_default();
            let page = provider.vendor.map(|vendor| format!("get a key at {}", vendor.key_page));
            return vec![Finding::fail(
                "key",
                format!("{model} can't be used: {reason}"),
                page.unwrap_or_default(),
            )];
        }
    };
    let mut findings = vec![described(sources, live, provider, model, how)];
    let (said, reached) = answered(sources, standing, key, model).await;
    findings.extend(said);
    if let Reached::Yes(list) = reached {
        findings.push(prompt::check(sources, live, standing, model, list).await);
    }
    findings
}

/// Whether sending a prompt makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Yes(ListedModels),
    No,
}

/// Whether the server lists its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListedModels {
    Given,
    Missing,
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

/// What the server answers to a question for its models, which costs nothing.
async fn answered(
    sources: &Sources,
    standing: &Standing<'_>,
    key: Option<&ApiKey>,
    model: &ModelRef,
) -> (Vec<Finding>, Reached) {
    let provider = standing.provider;
    let name = &provider.name;
    let key_found = match key {
        Some(key) => format!("{name}: from {key}"),
        None => format!("{name}: no key needed"),
    };
    match providers::examine(standing, &sources.opener).await {
        Examined::Models(models) => {
            let accepted = if key.is_some() { ", accepted" } else { "" };
            let mut findings = vec![
                Finding::ok("key", format!("{key_found}{accepted}")),
                Finding::ok("endpoint", format!("{} answers", address(provider))),
            ];
            findings.extend(unknown_there(provider, &models, model));
            (findings, Reached::Yes(ListedModels::Given))
        }
        Examined::Failed(
            ProviderDiagnosis { fix, .. },
            ListFailure::Discover(DiscoverError::KeyRefused { .. }),
        ) if key.is_none() => {
            let text = format!("{name}: no key set, and the server wants one");
            (vec![Finding::fail("key", text, fix)], Reached::No)
        }
        Examined::Failed(diagnosis, failure) => failed(name, &key_found, diagnosis, &failure),
        Examined::NoKey(error) => {
            let next = format!("unlock the keyring, or run `attache auth login {name}`");
            let text = format!("the key of {name} is in the keyring, but {error}");
            (vec![Finding::fail("key", text, next)], Reached::No)
        }
        Examined::NotAsked => (Vec::new(), Reached::No),
    }
}

fn failed(
    name: &str,
    key_found: &str,
    diagnosis: ProviderDiagnosis,
    failure: &ListFailure,
) -> (Vec<Finding>, Reached) {
    let ProviderDiagnosis { said, fix, .. } = diagnosis;
    let endpoint = format!("{name}: {said}");
    match failure {
        ListFailure::Discover(DiscoverError::KeyRefused { .. }) => {
            (vec![Finding::fail("key", format!("{key_found}, refused: {said}"), fix)], Reached::No)
        }
        ListFailure::Discover(
            DiscoverError::Unreachable { .. }
            | DiscoverError::TooSlow { .. }
            | DiscoverError::Untrusted { .. },
        ) => (vec![Finding::ok("key", key_found), Finding::fail("endpoint", endpoint, fix)], Reached::No),
        // Some servers list no models and still answer prompts.
        ListFailure::Empty
        | ListFailure::Discover(
            DiscoverError::NoSuchPath { .. } | DiscoverError::Nonsense { .. } | DiscoverError::Refused { .. },
        ) => (
            vec![Finding::ok("key", key_found), Finding::warn("endpoint", endpoint, fix)],
            Reached::Yes(ListedModels::Missing),
        ),
    }
}

fn address(provider: &Provider) -> &str {
    match &provider.wire {
        ProviderWire::Http(wire) => wire.base_url.as_ref().map_or("", |base_url| base_url.value.as_str()),
        ProviderWire::Script { .. } => "",
    }
}

/// If the server lists its models, that list decides.
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
