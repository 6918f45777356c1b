//! Asks servers on this machine which models they have. Only those whose models nobody else knows, and never for long.

use std::collections::HashMap;

use attache_core::ports::model::ModelInfo;
use attache_models::{DiscoverError, models_of};
use futures_util::future::join_all;

use super::{Opener, Standing, State};
use crate::config::{HttpWire, Origin, Sourced, Wire};
use crate::credentials::Key;
use crate::limits::{ANSWER, LOCAL_ANSWER};

/// What servers said, by provider.
pub(super) type Heard = HashMap<String, Vec<ModelInfo>>;

/// A configured server on this machine whose models no catalogue knows, unless the file states the window of each: only the
/// server knows how it was started.
pub(crate) fn is_to_be_asked(standing: &Standing<'_>) -> bool {
    let provider = standing.provider;
    let Wire::Http(HttpWire { base_url: Some(Sourced { value, origin }), .. }) = &provider.wire else {
        return false;
    };
    let is_ready = matches!(standing.state, State::Ready(_));
    let is_vendors_own =
        *origin == Origin::Default && provider.vendor.is_some_and(|vendor| vendor.shelf.models_dev.is_some());
    let is_stated =
        !provider.models.is_empty() && provider.models.iter().all(|model| model.context.is_some());
    is_ready && !is_stated && value.is_loopback() && !is_vendors_own
}

/// Asks all that are to be asked; if nobody else has a model, also whoever listens on the usual ports.
pub(super) async fn servers(standings: &[Standing<'_>], opener: &Opener) -> Heard {
    let heard = ask(standings.iter().filter(|standing| is_to_be_asked(standing)).collect(), opener).await;
    if !heard.is_empty() || anybody_has_models(standings, opener) {
        return heard;
    }
    local(standings, opener).await
}

/// Whoever listens on the usual ports of this machine.
pub(crate) async fn local(standings: &[Standing<'_>], opener: &Opener) -> HashMap<String, Vec<ModelInfo>> {
    ask(standings.iter().filter(|standing| perhaps_running(standing)).collect(), opener).await
}

fn perhaps_running(standing: &Standing<'_>) -> bool {
    matches!(standing.state, State::PerhapsRunning)
}

/// Without asking.
fn anybody_has_models(standings: &[Standing<'_>], opener: &Opener) -> bool {
    standings.iter().any(|standing| match standing.state {
        State::Scripted => true,
        State::Ready(_) => !opener.listed(standing.provider, &[]).is_empty(),
        State::PerhapsRunning | State::NoKey | State::NoAddress | State::KeyTrouble(_) => false,
    })
}

/// One provider whose models no catalogue knows, wherever it is. Nothing for those a catalogue knows.
pub(crate) async fn asked(standing: &Standing<'_>, opener: &Opener) -> Result<Vec<ModelInfo>, DiscoverError> {
    let provider = standing.provider;
    let is_usable = matches!(standing.state, State::Ready(_) | State::PerhapsRunning);
    let Wire::Http(wire) = &provider.wire else { return Ok(Vec::new()) };
    match opener.endpoint(provider, wire, key(&standing.state)) {
        Some(endpoint) if is_usable => {
            let said = models_of(&opener.http, &provider.name, &endpoint, ANSWER).await?;
            Ok(opener.listed(provider, &said))
        }
        Some(_) | None => Ok(Vec::new()),
    }
}

async fn ask(standings: Vec<&Standing<'_>>, opener: &Opener) -> Heard {
    let mut asked = Vec::new();
    for standing in standings {
        asked.push(ask_one(standing, opener));
    }
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask_one(standing: &Standing<'_>, opener: &Opener) -> Option<(String, Vec<ModelInfo>)> {
    let provider = standing.provider;
    let Wire::Http(wire) = &provider.wire else { return None };
    let endpoint = opener.endpoint(provider, wire, key(&standing.state))?;
    match models_of(&opener.http, &provider.name, &endpoint, LOCAL_ANSWER).await {
        Ok(models) if !models.is_empty() => Some((provider.name.clone(), models)),
        Ok(_) => None,
        // It may be down now and up later: any model name is taken as it is meanwhile.
        Err(error) => {
            tracing::debug!(provider = provider.name, %error, "its models are not known");
            None
        }
    }
}

fn key(state: &State) -> Option<&Key> {
    match state {
        State::Ready(key) => key.as_ref(),
        State::Scripted | State::PerhapsRunning | State::NoKey | State::NoAddress | State::KeyTrouble(_) => {
            None
        }
    }
}
