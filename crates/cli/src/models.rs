//! `attache models`: which models can be used now, how large they are, what they take and cost; and why the others can't.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use attache_core::ports::Model;
use attache_core::ports::model::{ModelInfo, Price};

use crate::answer;
use crate::args::{ModelsArgs, ModelsCommand};
use crate::config::Wire;
use crate::limits::OVERVIEW_MODELS;
use crate::providers::{self, LiveProviders, Opener, Standing, State, is_to_be_asked, why_not};
use crate::setup::Sources;

pub(crate) mod refresh;

const LEGEND: &str = "Columns: context in tokens, dollars per million tokens in and out, extras.";

/// Longer names stand out of their column.
const NAME_COLUMN: usize = 34;

pub(crate) async fn run(sources: &Sources, args: &ModelsArgs) -> Result<()> {
    match (&args.command, &args.provider) {
        (Some(ModelsCommand::Refresh), _) => refresh::run(sources).await,
        (None, Some(provider)) => one(sources, provider).await,
        (None, None) => overview(sources).await,
    }
}

async fn overview(sources: &Sources) -> Result<()> {
    let live = sources.live()?;
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let running = providers::local(&standings, &sources.opener).await;
    let mut text = default_line(sources, &live)?;
    let (mut usable, mut rest) = (String::new(), String::new());
    for standing in &standings {
        let name = &standing.provider.name;
        let models = match running.get(name) {
            Some(found) => sources.opener.listed(standing.provider, found),
            None => of_provider(&live, name),
        };
        match reason(standing, &models, &sources.opener).await {
            Some(reason) => writeln!(rest, "  {name:<10} {reason}")?,
            None => {
                writeln!(usable, "\n{name} · {}", how(standing))?;
                list(&mut usable, name, &models, OVERVIEW_MODELS)?;
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

fn default_line(sources: &Sources, live: &LiveProviders) -> Result<String> {
    let mut text = String::new();
    match (&sources.config.model, live.available().first()) {
        (Some(model), _) => writeln!(text, "Model of new sessions: {} ({})", model.value, model.origin)?,
        (None, Some(first)) => {
            writeln!(text, "Model of new sessions: {} (the first available one)", first.model)?
        }
        (None, None) => {
            writeln!(text, "No model is available yet. One of these is enough:")?;
            for way in providers::THREE_WAYS_LISTED {
                writeln!(text, "  - {way}")?;
            }
        }
    }
    Ok(text)
}

async fn one(sources: &Sources, name: &str) -> Result<()> {
    let live = sources.live()?;
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = providers::standings(&sources.config, &keys);
    let Some(standing) = standings.iter().find(|standing| standing.provider.name == *name) else {
        bail!(providers::unknown(name, &sources.config));
    };
    let mut models = of_provider(&live, name);
    if models.is_empty() {
        let asked = providers::asked(standing, &sources.opener).await;
        models = asked.with_context(|| {
            format!("{name} did not say which models it has; name one yourself: --model {name}/NAME")
        })?;
    }
    if models.is_empty() {
        // One that has no key yet: what it would have.
        models = sources.opener.listed(standing.provider, &[]);
    }
    let mut text = String::new();
    match reason(standing, &of_provider(&live, name), &sources.opener).await {
        Some(reason) => writeln!(text, "{name} · {reason}")?,
        None => writeln!(text, "{name} · {}", how(standing))?,
    }
    list(&mut text, name, &models, usize::MAX)?;
    answer::write(&text)?;
    Ok(())
}

fn of_provider(live: &LiveProviders, name: &str) -> Vec<ModelInfo> {
    live.available().iter().filter(|info| info.model.provider_id == name).cloned().collect()
}

fn how(standing: &Standing<'_>) -> String {
    match &standing.state {
        State::Scripted => "a script".to_owned(),
        State::Ready(Some(key)) => format!("key from {key}"),
        State::Ready(None)
        | State::PerhapsRunning
        | State::NoKey
        | State::NoAddress
        | State::KeyTrouble(_) => place(standing).unwrap_or_else(|| "no key needed".to_owned()),
    }
}

/// Why a provider can't be used now; `models` is what is known to be there.
async fn reason(standing: &Standing<'_>, models: &[ModelInfo], opener: &Opener) -> Option<String> {
    let place = place(standing).unwrap_or_default();
    match why_not(standing) {
        _ if !models.is_empty() => None,
        Some(reason) if matches!(standing.state, State::PerhapsRunning) => Some(format!("{reason} {place}")),
        Some(reason) => Some(reason),
        None if is_to_be_asked(standing) => match providers::asked(standing, opener).await {
            Err(error) if standing.provider.vendor.is_none() => Some(error.to_string()),
            Err(_) => Some(format!("no answer {place}; start it or fix base_url")),
            Ok(_) => Some(format!("has no models {place}")),
        },
        None => None,
    }
}

fn place(standing: &Standing<'_>) -> Option<String> {
    match &standing.provider.wire {
        Wire::Http(wire) => wire.base_url.as_ref().map(|base_url| format!("at {}", base_url.value.as_str())),
        Wire::Script { .. } => None,
    }
}

fn list(text: &mut String, provider: &str, models: &[ModelInfo], most: usize) -> Result<()> {
    if models.is_empty() {
        writeln!(text, "  its models are unknown; any name works: --model {provider}/NAME")?;
    }
    let shown = &models[..models.len().min(most)];
    let longest = shown.iter().map(|info| info.model.model_id.chars().count()).max().unwrap_or(0);
    let width = longest.min(NAME_COLUMN);
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
fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..999_500 => format!("{}k", (count + 500) / 1_000),
        _ => format!("{}M", trimmed(count as f64 / 1_000_000.0, 1)),
    }
}

/// Dollars per million tokens, in and out.
fn price(price: &Price) -> String {
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

/// What it takes beside text, and whether it can be told how much to think.
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
