//! What we know of the vendors' models without asking them: sizes, modalities, thought levels, prices. Knows no
//! configuration.

use std::sync::OnceLock;

use attache_core::ports::model::{ModelInfo, Price, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use thiserror::Error;

use crate::vendors::Vendor;

mod fetch;
mod file;
mod models_dev;
mod names;

pub use fetch::fetch;

/// Made by `cargo xtask catalogue`.
const EMBEDDED: &str = include_str!("../data/catalogue.json");

/// Models by vendor, each vendor's default first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    shelves: Vec<(String, Vec<CatalogueEntry>)>,
}

/// A model in a catalogue. The lookup adds the provider.
#[derive(Clone, Debug, PartialEq)]
struct CatalogueEntry {
    id: String,
    name: String,
    context: u64,
    max_output: u64,
    images: bool,
    audio: bool,
    pdf: bool,
    thought: Vec<ThoughtLevel>,
    price: Option<Price>,
}

/// Why data on models can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum CatalogueError {
    #[error("is not JSON: {0}")]
    NoJson(String),
    #[error("is not a catalogue: {0}")]
    Shape(String),
    #[error("contains no model of any vendor attache knows")]
    Empty,
}

impl Catalogue {
    /// The catalogue that comes with the program; parsed on first use.
    pub fn embedded() -> &'static Self {
        static READ: OnceLock<Catalogue> = OnceLock::new();
        // A test parses it. If it did not parse, models would only lack descriptions.
        READ.get_or_init(|| Self::parse(EMBEDDED).unwrap_or_default())
    }

    /// A catalogue that `to_json` wrote.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        file::read(text)
    }

    /// The same from the data models.dev publishes (`api.json`), reduced to what we use.
    pub fn from_models_dev(text: &str) -> Result<Self, CatalogueError> {
        models_dev::trim(text)
    }

    /// One line per model, always in the same order, as `parse` reads it.
    pub fn to_json(&self) -> String {
        file::written(self)
    }

    /// The vendor's models as models of a configured provider, the default first. Empty for a vendor that we
    /// have to ask.
    pub fn models(&self, vendor: &Vendor, provider_id: &str) -> Vec<ModelInfo> {
        let described = |entry: &CatalogueEntry| entry.info(ModelRef::new(provider_id, &entry.id));
        self.shelf(vendor).iter().map(described).collect()
    }

    /// One model of the vendor, also under its other names: with a date, a tag, a maker's prefix.
    pub fn find(&self, vendor: &Vendor, model: &ModelRef) -> Option<ModelInfo> {
        let shelf = self.shelf(vendor);
        if let Some(entry) = shelf.iter().find(|entry| entry.id == model.model_id) {
            return Some(entry.info(model.clone()));
        }
        let wanted = names::plain(&model.model_id);
        let entry = shelf.iter().find(|entry| names::plain(&entry.id) == wanted)?;
        let info = entry.info(model.clone());
        // A tag (`:free`, `:nitro`) means another offer with another price.
        let price = info.price.filter(|_| !names::has_tag(&model.model_id));
        Some(ModelInfo { price, ..info })
    }

    /// What we can say about any model: as the vendor's own; else as one that a gateway passes on under the
    /// maker's name (then without a price); else the defaults that every server takes.
    pub fn describe(&self, vendor: Option<&Vendor>, model: ModelRef) -> ModelInfo {
        let found = match vendor {
            Some(vendor) => self.find(vendor, &model),
            None => None,
        };
        // The owner of a local server chose the context of each model, so do not guess it.
        let is_asked = vendor.is_some_and(|vendor| vendor.shelf.models_dev.is_none());
        let passed_on = || if is_asked { None } else { self.passed_on(&model) };
        found.or_else(passed_on).unwrap_or_else(|| ModelInfo::undescribed(plainly(model)))
    }

    fn passed_on(&self, model: &ModelRef) -> Option<ModelInfo> {
        let wanted = names::plain(&model.model_id);
        let mut entries = self.shelves.iter().flat_map(|(_, shelf)| shelf);
        let entry = entries.find(|entry| names::plain(&entry.id) == wanted)?;
        Some(ModelInfo { price: None, ..entry.info(model.clone()) })
    }

    /// If a refreshed catalogue is older than the vendor, the embedded catalogue has the vendor's models.
    fn shelf(&self, vendor: &Vendor) -> &[CatalogueEntry] {
        let own = self.shelves.iter().find(|(id, _)| id == vendor.id);
        match own {
            Some((_, shelf)) => shelf,
            None => Self::embedded()
                .shelves
                .iter()
                .find(|(id, _)| id == vendor.id)
                .map_or(&[], |(_, shelf)| shelf),
        }
    }
}

impl CatalogueEntry {
    fn info(&self, model: ModelRef) -> ModelInfo {
        ModelInfo {
            model: plainly(model),
            name: self.name.clone(),
            context: self.context,
            max_output: self.max_output,
            images: self.images,
            audio: self.audio,
            pdf: self.pdf,
            thought_levels: self.thought.clone(),
            price: self.price,
        }
    }
}

fn plainly(model: ModelRef) -> ModelRef {
    ModelRef { variant: None, ..model }
}

#[cfg(test)]
mod tests;
