//! Reads what models.dev publishes and keeps what an agent can use: our vendors, models that read and write
//! text and call tools.
//!
//! A model described in an unknown way is left out and is never an error: the data belongs to others and grows.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use attache_core::ports::model::{Price, ThoughtLevel};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Catalogue, CatalogueEntry, CatalogueError, names};
use crate::answer_length::longest_answer;
use crate::limits::{CATALOGUE_CONTEXT, CATALOGUE_MODELS, LONGEST_ANSWER};
use crate::vendors::{Effort, VENDORS, Vendor};

#[derive(Deserialize)]
struct PublishedProvider<'a> {
    #[serde(borrow)]
    models: HashMap<&'a str, &'a RawValue>,
}

#[derive(Deserialize)]
struct PublishedModel {
    id: String,
    name: String,
    #[serde(default)]
    tool_call: bool,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    release_date: String,
    modalities: Modalities,
    limit: Limit,
    #[serde(default)]
    reasoning_options: Vec<ReasoningOption>,
    #[serde(default)]
    cost: Option<Cost>,
}

#[derive(Deserialize)]
struct Modalities {
    input: Vec<String>,
    output: Vec<String>,
}

#[derive(Deserialize)]
struct Limit {
    context: u64,
    #[serde(default)]
    input: Option<u64>,
    output: u64,
}

/// The ways to tell a model to think: `toggle`, `effort` with its words, `budget_tokens` with its bounds.
#[derive(Deserialize)]
struct ReasoningOption {
    r#type: String,
    #[serde(default)]
    values: Vec<Option<String>>,
    #[serde(default)]
    min: Option<i64>,
}

#[derive(Deserialize)]
struct Cost {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

pub(super) fn trim(text: &str) -> Result<Catalogue, CatalogueError> {
    let providers: HashMap<&str, &RawValue> =
        serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => CatalogueError::Shape(error.to_string()),
            false => CatalogueError::NoJson(error.to_string()),
        })?;
    let mut shelves = Vec::new();
    for vendor in VENDORS {
        let raw = vendor.shelf.models_dev.and_then(|name| providers.get(name));
        let Some(provider) =
            raw.and_then(|raw| serde_json::from_str::<PublishedProvider<'_>>(raw.get()).ok())
        else {
            continue;
        };
        let shelf = shelf(vendor, &provider);
        if !shelf.is_empty() {
            shelves.push((vendor.id.to_owned(), shelf));
        }
    }
    if shelves.is_empty() {
        return Err(CatalogueError::Empty);
    }
    Ok(Catalogue { shelves })
}

fn shelf(vendor: &Vendor, provider: &PublishedProvider<'_>) -> Vec<CatalogueEntry> {
    let mut models: Vec<PublishedModel> = provider
        .models
        .values()
        .filter_map(|raw| serde_json::from_str::<PublishedModel>(raw.get()).ok())
        .filter(|model| is_usable(vendor, model))
        .collect();
    let ids: HashSet<String> = models.iter().map(|model| model.id.clone()).collect();
    // A model with a date in its id is the same model as the one without, as long as the list has both.
    models.retain(|model| {
        let name = names::without_date(&model.id);
        name == model.id || !ids.contains(name)
    });
    let rank =
        |id: &str| vendor.shelf.preferred.iter().position(|preferred| *preferred == id).unwrap_or(usize::MAX);
    models
        .sort_by_cached_key(|model| (rank(&model.id), Reverse(model.release_date.clone()), model.id.clone()));
    models.truncate(CATALOGUE_MODELS);
    models.into_iter().map(|model| entry(vendor, model)).collect()
}

fn is_usable(vendor: &Vendor, model: &PublishedModel) -> bool {
    let families = vendor.shelf.families;
    let is_known_family = families.is_empty() || families.iter().any(|family| model.id.starts_with(family));
    // Models that also speak or draw belong to other endpoints than the one for conversations.
    let writes_text =
        model.modalities.output.iter().all(|kind| kind == "text") && !model.modalities.output.is_empty();
    let reads_text = model.modalities.input.iter().any(|kind| kind == "text");
    is_known_family
        && writes_text
        && reads_text
        && model.tool_call
        && model.limit.context >= CATALOGUE_CONTEXT
        && model.limit.output > 0
        && model.status.as_deref() != Some("deprecated")
        && !names::has_tag(&model.id)
        && !is_special(&model.id)
}

/// Whether the model serves one purpose that we have no use for.
fn is_special(id: &str) -> bool {
    ["computer-use", "safeguard", "guard", "search-preview", "deep-research", "customtools"]
        .iter()
        .any(|purpose| id.contains(purpose))
}

fn entry(vendor: &Vendor, model: PublishedModel) -> CatalogueEntry {
    let takes = |kind: &str| model.modalities.input.iter().any(|taken| taken == kind);
    CatalogueEntry {
        images: takes("image"),
        audio: takes("audio"),
        pdf: takes("pdf"),
        thought: thought_levels(vendor, &model.reasoning_options),
        price: model.cost.as_ref().map(price),
        // What the conversation may fill: some models reserve a part of their context for the answer.
        context: model.limit.input.unwrap_or(model.limit.context).min(model.limit.context),
        max_output: max_output(&model.limit),
        id: model.id,
        name: model.name,
    }
}

/// The longest answer we ask for. Where the input has its own limit, the answer takes nothing from it.
fn max_output(limit: &Limit) -> u64 {
    match limit.input {
        Some(_) => limit.output.min(LONGEST_ANSWER),
        None => longest_answer(limit.context, limit.output),
    }
}

/// A kind of token without its own price costs what input costs.
fn price(cost: &Cost) -> Price {
    Price {
        input: cost.input,
        output: cost.output,
        cache_read: cost.cache_read.unwrap_or(cost.input),
        cache_write: cost.cache_write.unwrap_or(cost.input),
    }
}

/// The levels that the vendor's wire can really express.
fn thought_levels(vendor: &Vendor, options: &[ReasoningOption]) -> Vec<ThoughtLevel> {
    let kind = |name: &str| options.iter().find(|option| option.r#type == name);
    let words = kind("effort").map(|option| &*option.values).unwrap_or_default();
    let has = |word: &str| words.iter().flatten().any(|known| known == word);
    let budget = kind("budget_tokens");
    let can = |level: ThoughtLevel| match level {
        ThoughtLevel::Off => {
            let opens_at_nothing = budget.is_some_and(|budget| budget.min == Some(0));
            has("none")
                || kind("toggle").is_some()
                || opens_at_nothing
                || (budget.is_some() && vendor.dialect.thinks_on_demand())
        }
        ThoughtLevel::Low | ThoughtLevel::Medium | ThoughtLevel::High => {
            has(level.as_str()) || budget.is_some()
        }
        ThoughtLevel::Max => {
            // A gateway that takes the object translates the word itself.
            let translated =
                vendor.compatibility.effort == Effort::ReasoningObject && (has("xhigh") || has("max"));
            has(vendor.compatibility.top_effort.as_str())
                || translated
                || (budget.is_some() && words.is_empty())
        }
    };
    ThoughtLevel::ALL.into_iter().filter(|level| can(*level)).collect()
}
