//! `attache models`: which models the user can use now, how large they are, what they take and cost; and why
//! the others do not work.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use attache_core::ports::Model;
use attache_core::ports::model::{ModelInfo, Price};
use attache_core::ports::store::ModelRef;
use attache_models::{DiscoverError, ListFailure, ProviderDiagnosis};
use futures_util::future::join_all;

use crate::answer;
use crate::args::{ModelsArgs, ModelsCommand};
use crate::config::{ProviderWire, nearest};
use crate::limits::OVERVIEW_MODELS;
use crate::providers::{self, Examined, LiveProviders, Opener, ProviderState, Standing, why_not};
use crate::setup::Sources;

pub(crate) mod refresh;

const LEGEND: &str = "Columns: context in tokens, dollars per million tokens in and out, extras.";

pub(crate) async fn run(sources: &Sources, args: &ModelsArgs) -> Result<()> {
    match (&args.command, &args.provider) {
        (Some(ModelsCommand::Refresh), _) => refresh::run(sources).await,
        (None, Some(provider)) => one(sources, provider).await,
        (None, None) => overview(sources).await,
    }
}

/// A provider with what we know of it now.
struct LookedAt<'a> {
    standing: &'a Standing<'a>,
    models: Vec<ModelInfo>,
    trouble: Option<Unusable>,
}

/// Why the user cannot use a provider now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unusable {
    reason: String,
    /// What to do about it, if the reason does not say so; else empty.
    fix: String,
}

async fn overview(sources: &Sources) -> Result<()> {
    let live = sources.live()?;
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let running = providers::local(&standings, &sources.opener).await;
    let looked = standings.iter().map(|standing| {
        let found = running.get(&standing.provider.name);
        look(standing, found.map(Vec::as_slice), &live, &sources.opener)
    });
    let looked: Vec<LookedAt<'_>> = join_all(looked).await;
    let mut text = default_line(sources, &live, &looked)?;
    let (mut usable, mut rest) = (String::new(), String::new());
    // If several providers share a reason, print it once, with the first of them.
    let mut told: Vec<(&Unusable, &str)> = Vec::new();
    for LookedAt { standing, models, trouble } in &looked {
        let name = &standing.provider.name;
        match trouble {
            Some(trouble) => match told.iter().find(|(said, _)| *said == trouble) {
                Some((_, first)) => writeln!(rest, "  {name:<10} as {first}")?,
                None => {
                    writeln!(rest, "  {name:<10} {}", trouble.reason)?;
                    if !trouble.fix.is_empty() {
                        writeln!(rest, "  {:<10} → {}", "", trouble.fix)?;
                    }
                    told.push((trouble, name));
                }
            },
            None => {
                writeln!(usable, "\n{name} · {}", how(standing))?;
                list(&mut usable, name, models, OVERVIEW_MODELS)?;
            }
        }
    }
    if !usable.is_empty() {
        write!(text, "{LEGEND}\n{usable}")?;
    }
    if !rest.is_empty() {
        write!(text, "\nNot usable now\n{rest}")?;
    }
    answer::write(&text)?;
    Ok(())
}

/// The model of new sessions. Marks one that cannot be used; the text below says why.
fn default_line(sources: &Sources, live: &LiveProviders, looked: &[LookedAt<'_>]) -> Result<String> {
    let mut text = String::new();
    let is_in_trouble = |provider: &str| {
        looked.iter().any(|looked| looked.standing.provider.name == provider && looked.trouble.is_some())
    };
    let mut line = |model: &ModelRef, origin: &str| {
        let trouble = match is_in_trouble(&model.provider_id) {
            true => format!(", but {} can't be used now: see below", model.provider_id),
            false => not_listed(model, looked).unwrap_or_default(),
        };
        writeln!(text, "Model of new sessions: {model} ({origin}){trouble}")
    };
    match (&sources.config.model, live.available().first()) {
        (Some(model), _) => line(&model.value, &model.origin.to_string())?,
        (None, Some(first)) => line(&first.model, "the first available one")?,
        (None, None) => {
            let is_configured =
                |looked: &&LookedAt<'_>| looked.trouble.is_some() && looked.standing.provider.is_stated();
            let configured: Vec<&str> = looked
                .iter()
                .filter(is_configured)
                .map(|looked| looked.standing.provider.name.as_str())
                .collect();
            match configured.is_empty() {
                true => {
                    writeln!(text, "No model is available yet. One of these is enough:")?;
                    for way in providers::THREE_WAYS_LISTED {
                        writeln!(text, "  - {way}")?;
                    }
                }
                false => writeln!(
                    text,
                    "No model is available: {} can't be used, see below.",
                    configured.join(", ")
                )?,
            }
        }
    }
    Ok(text)
}

/// If the provider lists its models, a name that is not among them is most likely a typing error.
fn not_listed(model: &ModelRef, looked: &[LookedAt<'_>]) -> Option<String> {
    let provider = looked.iter().find(|looked| looked.standing.provider.name == model.provider_id)?;
    let ids: Vec<&str> = provider.models.iter().map(|info| info.model.model_id.as_str()).collect();
    if ids.is_empty() || ids.contains(&model.model_id.as_str()) {
        return None;
    }
    let near = nearest(&model.model_id, &ids).map(|near| format!("; did you mean {near}?"));
    Some(format!(", but {} does not list it{}", model.provider_id, near.unwrap_or_default()))
}

async fn one(sources: &Sources, name: &str) -> Result<()> {
    let live = sources.live()?;
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let Some(standing) = standings.iter().find(|standing| standing.provider.name == *name) else {
        bail!(providers::unknown(name, &sources.config));
    };
    let running = providers::local(std::slice::from_ref(standing), &sources.opener).await;
    let found = running.get(name).map(Vec::as_slice);
    let LookedAt { mut models, trouble, .. } = look(standing, found, &live, &sources.opener).await;
    if models.is_empty() {
        // A provider without a key: show the models it would have.
        models = sources.opener.listed(standing.provider, &[]);
    }
    if models.is_empty()
        && providers::is_own_server(standing)
        && let Some(Unusable { reason, fix }) = trouble
    {
        bail!("{name} can't be used: {reason}\n  → {fix}");
    }
    let mut text = String::new();
    match trouble {
        Some(Unusable { reason, fix }) => {
            writeln!(text, "{name} · {reason}")?;
            if !fix.is_empty() {
                writeln!(text, "  → {fix}")?;
            }
        }
        None => writeln!(text, "{name} · {}", how(standing))?,
    }
    if !models.is_empty() {
        writeln!(text, "{LEGEND}")?;
    }
    list(&mut text, name, &models, usize::MAX)?;
    answer::write(&text)?;
    Ok(())
}

/// Asks a local server; `running` is what the server on its usual port has already answered.
async fn look<'a>(
    standing: &'a Standing<'a>,
    running: Option<&[ModelInfo]>,
    live: &LiveProviders,
    opener: &Opener,
) -> LookedAt<'a> {
    let mut models = match running {
        Some(found) => opener.listed(standing.provider, found),
        None => of_provider(live, &standing.provider.name),
    };
    let mut trouble = None;
    if running.is_none() && providers::is_own_server(standing) {
        match providers::examine(standing, opener).await {
            Examined::Models(found) => models = opener.listed(standing.provider, &found),
            Examined::Failed(_, failure) if !models.is_empty() && may_answer(&failure) => {}
            Examined::Failed(diagnosis, failure) => {
                trouble = Some(told(standing, diagnosis, &failure));
            }
            Examined::NoKey(error) => {
                let reason = format!("its key is in the keyring, but {error}");
                let name = &standing.provider.name;
                let fix = format!("unlock the keyring, or run `attache auth login {name}`");
                trouble = Some(Unusable { reason, fix });
            }
            Examined::NotAsked => {}
        }
    } else if models.is_empty() {
        trouble = why_not(standing).map(|reason| {
            let place = match standing.state {
                ProviderState::PerhapsRunning => place(standing).map(|place| format!(" {place}")),
                ProviderState::Scripted
                | ProviderState::Ready(_)
                | ProviderState::NoKey
                | ProviderState::NoAddress
                | ProviderState::KeyTrouble(_) => None,
            };
            Unusable { reason: format!("{reason}{}", place.unwrap_or_default()), fix: String::new() }
        });
    }
    LookedAt { standing, models, trouble }
}

/// Whether a server that gave no list may still answer prompts: some have no list.
fn may_answer(failure: &ListFailure) -> bool {
    match failure {
        ListFailure::Empty => true,
        ListFailure::Discover(
            DiscoverError::NoSuchPath { .. } | DiscoverError::Nonsense { .. } | DiscoverError::Refused { .. },
        ) => true,
        ListFailure::Discover(
            DiscoverError::KeyRefused { .. }
            | DiscoverError::Unreachable { .. }
            | DiscoverError::Untrusted { .. }
            | DiscoverError::TooSlow { .. },
        ) => false,
    }
}

/// Mentions a local server that does not run in one line: there are several, and most users have none.
fn told(standing: &Standing<'_>, diagnosis: ProviderDiagnosis, failure: &ListFailure) -> Unusable {
    match (failure, standing.provider.is_stated()) {
        (ListFailure::Discover(DiscoverError::Unreachable { .. }), false) => {
            let place = place(standing).unwrap_or_default();
            Unusable { reason: format!("no answer {place}; start it or fix base_url"), fix: String::new() }
        }
        (ListFailure::Discover(_) | ListFailure::Empty, _) => {
            Unusable { reason: diagnosis.said, fix: diagnosis.fix }
        }
    }
}

fn of_provider(live: &LiveProviders, name: &str) -> Vec<ModelInfo> {
    live.available().iter().filter(|info| info.model.provider_id == name).cloned().collect()
}

fn how(standing: &Standing<'_>) -> String {
    match &standing.state {
        ProviderState::Scripted => "a script".to_owned(),
        ProviderState::Ready(Some(key)) => format!("key from {key}"),
        ProviderState::Ready(None)
        | ProviderState::PerhapsRunning
        | ProviderState::NoKey
        | ProviderState::NoAddress
        | ProviderState::KeyTrouble(_) => place(standing).unwrap_or_else(|| "no key needed".to_owned()),
    }
}

fn place(standing: &Standing<'_>) -> Option<String> {
    match &standing.provider.wire {
        ProviderWire::Http(wire) => {
            wire.base_url.as_ref().map(|base_url| format!("at {}", base_url.value.as_str()))
        }
        ProviderWire::Script { .. } => None,
    }
}

fn list(text: &mut String, provider: &str, models: &[ModelInfo], most: usize) -> Result<()> {
    if models.is_empty() {
        writeln!(text, "  its models are unknown; any name works: --model {provider}/NAME")?;
    }
    let shown = &models[..models.len().min(most)];
    let width = shown.iter().map(|info| info.model.model_id.chars().count()).max().unwrap_or(0);
    for info in shown {
        let line = format!(
            "  {:<width$}  {:>5}  {:>13}  {}",
            info.model.model_id,
            tokens(info.context),
            info.price.as_ref().map(price).unwrap_or_default(),
            takes(info)
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    let more = models.len() - shown.len();
    if more > 0 {
        writeln!(text, "  and {more} more: attache models {provider}")?;
    }
    Ok(())
}

/// `200k`, `1M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..999_500 => format!("{}k", (count + 500) / 1_000),
        _ => format!("{}M", trimmed(count as f64 / 1_000_000.0, 1)),
    }
}

/// Dollars per million tokens, in and out.
pub(crate) fn price(price: &Price) -> String {
    match (price.input, price.output) {
        (0.0, 0.0) => "free".to_owned(),
        (input, output) => format!("${} ${}", trimmed(input, 3), trimmed(output, 3)),
    }
}

fn trimmed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// What it takes beside text, and whether it has thought levels.
fn takes(info: &ModelInfo) -> String {
    let marks = [
        (info.images, "images"),
        (info.audio, "audio"),
        (info.pdf, "pdf"),
        (!info.thought_levels.is_empty(), "thinks"),
    ];
    marks.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_prices_are_short() {
        let sizes = [
            (512, "512"),
            (8_192, "8k"),
            (131_072, "131k"),
            (999_999, "1M"),
            (1_048_576, "1M"),
            (2_500_000, "2.5M"),
        ];
        for (count, shown) in sizes {
            assert_eq!(tokens(count), shown);
        }
        let price = |input, output| price(&Price { input, output, cache_read: 0.0, cache_write: 0.0 });
        assert_eq!(price(3.0, 15.0), "$3 $15");
        assert_eq!(price(0.075, 0.3), "$0.075 $0.3");
        assert_eq!(price(0.0, 0.0), "free");
    }
}
