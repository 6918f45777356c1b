//! Asks servers for their models, and says what is wrong with configured ones that list none. At a start, asks
//! only local servers whose models no catalogue knows, and only for a short time.

use std::collections::HashMap;
use std::time::Duration;

use attache_core::ports::model::ModelInfo;
use attache_models::{
    DiscoverError, Endpoint, ListFailure, ProviderDiagnosis, ProviderFailure, diagnose_provider,
    find_correction, models_of,
};
use futures_util::future::join_all;

use super::inquiries::Inquiries;
use super::words::{THREE_WAYS, why_not};
use super::{Opener, ProviderState, Standing};
use crate::config::{HttpWire, ProviderWire, SettingOrigin, Sourced};
use crate::credentials::{ApiKey, Patience};
use crate::limits::{ANSWER, FAR_ANSWER, LOCAL_ANSWER};

/// What the servers answered last time.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerAnswers {
    /// By provider; no list is empty.
    pub(super) models: HashMap<String, Vec<ModelInfo>>,
    /// What is wrong with each configured provider, in sentences; filled only if no provider has a model.
    pub(super) problems: Vec<String>,
    /// Providers whose server did not answer in time.
    pub(super) unheard: Vec<String>,
}

/// How we ask servers.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    opener: &'a Opener,
    wait: Duration,
    /// Keeps waiting for late answers; not needed if a person waits for the answer.
    inquiries: Option<&'a Inquiries>,
}

impl<'a> Asking<'a> {
    pub(super) fn of_a_look(opener: &'a Opener, inquiries: &'a Inquiries) -> Self {
        Self { opener, wait: LOCAL_ANSWER, inquiries: Some(inquiries) }
    }

    fn of_a_person(opener: &'a Opener, wait: Duration) -> Self {
        Self { opener, wait, inquiries: None }
    }

    fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

/// A configured local server whose models no catalogue knows, unless the file states the context of each: only
/// the server knows how it was started.
pub(crate) fn is_to_be_asked(standing: &Standing<'_>) -> bool {
    let provider = standing.provider;
    let ProviderWire::Http(HttpWire { base_url: Some(Sourced { value, origin }), .. }) = &provider.wire
    else {
        return false;
    };
    let is_ready = matches!(standing.state, ProviderState::Ready(_));
    let is_vendors_own = *origin == SettingOrigin::Default
        && provider.vendor.is_some_and(|vendor| vendor.shelf.models_dev.is_some());
    let is_stated =
        !provider.models.is_empty() && provider.models.iter().all(|model| model.context.is_some());
    is_ready && !is_stated && value.is_loopback() && !is_vendors_own
}

/// Asks all providers that need asking. If no provider has a model after that, waits longer for them, also asks
/// the usual ports of this machine and configured servers elsewhere, and says what is wrong with the configured
/// ones. `known` are the providers that have answered before.
pub(super) async fn servers(
    standings: &[Standing<'_>],
    asking: Asking<'_>,
    known: &[String],
) -> ServerAnswers {
    let opener = asking.opener;
    let here: Vec<_> = standings.iter().filter(|standing| is_to_be_asked(standing)).collect();
    let asked = join_all(here.into_iter().map(|standing| ask(standing, asking))).await;
    let (mut models, mut failed) = sorted(asked);
    let unheard = names_of_late(&failed);
    let is_enough = !models.is_empty() || unheard.iter().any(|name| known.contains(name));
    if is_enough || anybody_has_models(standings, opener) {
        return ServerAnswers { models, problems: Vec::new(), unheard };
    }
    let in_need = asking.waiting(FAR_ANSWER);
    let rest = standings
        .iter()
        .filter(|standing| is_asked_in_need(standing) || unheard.contains(&standing.provider.name));
    let asked = join_all(rest.map(|standing| ask_with_any_key(standing, in_need)));
    let (local, asked) = tokio::join!(local_by(standings, asking), asked);
    let (others, others_failed) = sorted(asked);
    models.extend(local);
    models.extend(others);
    failed.retain(|failure| {
        !has_key_in_keyring(failure.standing) && !unheard.contains(&failure.standing.provider.name)
    });
    failed.extend(others_failed);
    let unheard = names_of_late(&failed);
    let problems = if models.is_empty() { problems(standings, failed, opener).await } else { Vec::new() };
    ServerAnswers { models, problems, unheard }
}

/// Servers that listen on the usual ports of this machine.
pub(crate) async fn local(standings: &[Standing<'_>], opener: &Opener) -> HashMap<String, Vec<ModelInfo>> {
    local_by(standings, Asking::of_a_person(opener, LOCAL_ANSWER)).await
}

async fn local_by(standings: &[Standing<'_>], asking: Asking<'_>) -> HashMap<String, Vec<ModelInfo>> {
    let unconfigured =
        standings.iter().filter(|standing| matches!(standing.state, ProviderState::PerhapsRunning));
    let asked = join_all(unconfigured.map(|standing| ask(standing, asking))).await;
    sorted(asked).0
}

fn names_of_late(failed: &[FailedProvider<'_>]) -> Vec<String> {
    let late = failed.iter().filter(|failed| match &failed.reason {
        FailureReason::Server(_, ListFailure::Discover(DiscoverError::TooSlow { .. })) => true,
        FailureReason::Server(_, ListFailure::Discover(_) | ListFailure::Empty)
        | FailureReason::Keyring(_) => false,
    });
    late.map(|failed| failed.standing.provider.name.clone()).collect()
}

/// Whether any provider has models, without asking servers.
fn anybody_has_models(standings: &[Standing<'_>], opener: &Opener) -> bool {
    standings.iter().any(|standing| match standing.state {
        ProviderState::Scripted => true,
        ProviderState::Ready(_) => !opener.listed(standing.provider, &[]).is_empty(),
        ProviderState::PerhapsRunning
        | ProviderState::NoKey
        | ProviderState::NoAddress
        | ProviderState::KeyTrouble(_) => false,
    })
}

/// Usable, but not asked at a start: it is far away, or its key is in the keyring.
fn is_asked_in_need(standing: &Standing<'_>) -> bool {
    let is_ready = matches!(standing.state, ProviderState::Ready(_));
    is_ready && (!is_to_be_asked(standing) || has_key_in_keyring(standing))
}

fn has_key_in_keyring(standing: &Standing<'_>) -> bool {
    matches!(standing.state, ProviderState::Ready(Some(ApiKey::Keyring)))
}

/// What a provider answered to a person who waits for it.
pub(crate) enum Examined {
    /// We did not ask: it has no server, or is not usable for another reason.
    NotAsked,
    /// The models that the server lists.
    Models(Vec<ModelInfo>),
    Failed(ProviderDiagnosis, ListFailure),
    /// Its key is in the keyring, which did not give it.
    NoKey(String),
}

/// Asks one provider for its models, with its key wherever that is, and finds out what is wrong if it lists
/// none.
pub(crate) async fn examine(standing: &Standing<'_>, opener: &Opener) -> Examined {
    match ask_with_any_key(standing, Asking::of_a_person(opener, ANSWER)).await {
        None => Examined::NotAsked,
        Some(Ok((_, said))) => Examined::Models(said),
        Some(Err(FailedProvider { reason: FailureReason::Keyring(error), .. })) => Examined::NoKey(error),
        Some(Err(FailedProvider { reason: FailureReason::Server(endpoint, failure), .. })) => {
            let diagnosis = diagnosis(standing, &endpoint, &failure, opener).await;
            Examined::Failed(diagnosis, failure)
        }
    }
}

/// A usable provider whose address the user set: a server of their own, or a vendor at another address.
pub(crate) fn is_own_server(standing: &Standing<'_>) -> bool {
    let ProviderWire::Http(wire) = &standing.provider.wire else { return false };
    let is_given = wire.base_url.as_ref().is_some_and(|base_url| base_url.origin != SettingOrigin::Default);
    matches!(standing.state, ProviderState::Ready(_)) && is_given
}

/// A configured provider that gave no models.
struct FailedProvider<'a> {
    standing: &'a Standing<'a>,
    reason: FailureReason,
}

enum FailureReason {
    /// With the endpoint that we tried.
    Server(Box<Endpoint>, ListFailure),
    /// We could not get its key.
    Keyring(String),
}

type AskedProvider<'a> = Result<(String, Vec<ModelInfo>), FailedProvider<'a>>;

fn sorted(
    asked: Vec<Option<AskedProvider<'_>>>,
) -> (HashMap<String, Vec<ModelInfo>>, Vec<FailedProvider<'_>>) {
    let (mut models, mut failed) = (HashMap::new(), Vec::new());
    for asked in asked.into_iter().flatten() {
        match asked {
            Ok((name, said)) => drop(models.insert(name, said)),
            Err(failure) => failed.push(failure),
        }
    }
    (models, failed)
}

/// `None` if the provider has no server.
async fn ask<'a>(standing: &'a Standing<'a>, asking: Asking<'_>) -> Option<AskedProvider<'a>> {
    Some(ask_at(standing, endpoint(standing, asking.opener)?, asking).await)
}

async fn ask_with_any_key<'a>(standing: &'a Standing<'a>, asking: Asking<'_>) -> Option<AskedProvider<'a>> {
    let endpoint = endpoint(standing, asking.opener)?;
    if !has_key_in_keyring(standing) {
        return Some(ask_at(standing, endpoint, asking).await);
    }
    let (keyring, name) = (asking.opener.keyring, standing.provider.name.clone());
    let key = tokio::task::spawn_blocking(move || keyring.get(&name, Patience::None)).await;
    let reason = match key {
        Ok(Ok(key)) => return Some(ask_at(standing, Endpoint { key: Some(key), ..endpoint }, asking).await),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Some(Err(FailedProvider { standing, reason: FailureReason::Keyring(reason) }))
}

async fn ask_at<'a>(standing: &'a Standing<'a>, endpoint: Endpoint, asking: Asking<'_>) -> AskedProvider<'a> {
    let (name, http) = (&standing.provider.name, &asking.opener.http);
    let answer = match asking.inquiries {
        Some(inquiries) => inquiries.ask(http, name, &endpoint, asking.wait).await,
        None => models_of(http, name, &endpoint, asking.wait).await,
    };
    match (ListFailure::of(&answer), answer) {
        (None, Ok(models)) => Ok((name.clone(), models)),
        (failure, _) => {
            // It may be down now and up later: meanwhile we accept any model name.
            let failure = failure.unwrap_or(ListFailure::Empty);
            tracing::debug!(provider = name, ?failure, "its models are not known");
            Err(FailedProvider { standing, reason: FailureReason::Server(Box::new(endpoint), failure) })
        }
    }
}

/// What is wrong with each configured provider, in sentences.
async fn problems(
    standings: &[Standing<'_>],
    failed: Vec<FailedProvider<'_>>,
    opener: &Opener,
) -> Vec<String> {
    let unusable = standings.iter().filter(|standing| standing.is_worth_telling());
    let unusable: Vec<_> = unusable
        .filter_map(|standing| Some((standing.provider, why_not(standing)?)))
        .map(|(provider, why)| (provider, format!("{} can't be used: {why}.", provider.name)))
        .collect();
    let failed = join_all(failed.iter().map(|failed| async move {
        let provider = failed.standing.provider;
        let problem = match &failed.reason {
            FailureReason::Server(endpoint, failure) => {
                diagnosis(failed.standing, endpoint, failure, opener).await.to_string()
            }
            FailureReason::Keyring(error) => {
                format!("{} can't be used: its key is in the keyring, but {error}.", provider.name)
            }
        };
        (provider, problem)
    }))
    .await;
    let all = || failed.iter().chain(&unusable);
    let in_file = all().filter(|(provider, _)| provider.is_stated());
    let mut problems: Vec<String> = in_file.map(|(_, problem)| problem.clone()).collect();
    if problems.is_empty() {
        // Only variables name these providers, perhaps for the sake of another program.
        problems.extend(all().map(|(_, problem)| problem.clone()));
        problems.extend((!problems.is_empty()).then(|| THREE_WAYS.to_owned()));
    }
    problems
}

/// What is wrong with a provider that listed no models, and what to do.
async fn diagnosis(
    standing: &Standing<'_>,
    endpoint: &Endpoint,
    cause: &ListFailure,
    opener: &Opener,
) -> ProviderDiagnosis {
    let (provider_id, vendor) = (standing.provider.name.as_str(), standing.provider.vendor);
    let found = find_correction(&opener.http, provider_id, endpoint, cause, FAR_ANSWER).await;
    diagnose_provider(&ProviderFailure { provider_id, vendor, endpoint, cause, correction: found.as_ref() })
}

/// How to ask a usable provider, without fetching a key from the keyring.
fn endpoint(standing: &Standing<'_>, opener: &Opener) -> Option<Endpoint> {
    let key = match &standing.state {
        ProviderState::Ready(key) => key.as_ref(),
        ProviderState::PerhapsRunning => None,
        ProviderState::Scripted
        | ProviderState::NoKey
        | ProviderState::NoAddress
        | ProviderState::KeyTrouble(_) => return None,
    };
    match &standing.provider.wire {
        ProviderWire::Http(wire) => opener.endpoint(standing.provider, wire, key),
        ProviderWire::Script { .. } => None,
    }
}
