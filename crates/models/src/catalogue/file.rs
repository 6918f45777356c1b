//! The catalogue's own file: JSON with one model per line. Ignores unknown keys and words, so that an older
//! program can read a newer file.

use std::borrow::Cow;

use attache_core::ports::model::{Price, ThoughtLevel};
use serde::{Deserialize, Serialize};

use super::{Catalogue, CatalogueEntry, CatalogueError};

/// The file itself states its origin, because it may be copied elsewhere without our licence texts.
const ORIGIN: &str = "models.dev (MIT, Copyright (c) 2025 models.dev), cut down by attache";

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    vendors: Vec<ShelfLine<'a>>,
}

#[derive(Deserialize)]
struct ShelfLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    models: Vec<CatalogueLine<'a>>,
}

/// Lists are words in one string and prices a row of four: that halves the reading time of JSON lists and
/// names, and every start of the program reads this.
#[derive(Serialize, Deserialize)]
struct CatalogueLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    context: u64,
    max_output: u64,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    takes: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    thought: Cow<'a, str>,
    /// input, output, cache read, cache write
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<[f64; 4]>,
}

pub(super) fn read(text: &str) -> Result<Catalogue, CatalogueError> {
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => CatalogueError::Shape(error.to_string()),
        false => CatalogueError::NoJson(error.to_string()),
    })?;
    let shelves: Vec<(String, Vec<CatalogueEntry>)> = document
        .vendors
        .into_iter()
        .map(|shelf| (shelf.id.into_owned(), shelf.models.into_iter().map(CatalogueEntry::from).collect()))
        .collect();
    match shelves.iter().all(|(_, shelf)| shelf.is_empty()) {
        true => Err(CatalogueError::Empty),
        false => Ok(Catalogue { shelves }),
    }
}

pub(super) fn written(catalogue: &Catalogue) -> String {
    let mut text = format!("{{\"origin\":{},\n\"vendors\":[", in_json(ORIGIN));
    for (nth, (id, shelf)) in catalogue.shelves.iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\n{{\"id\":{},\"models\":[", in_json(id)));
        for (nth, entry) in shelf.iter().enumerate() {
            text.push_str(if nth == 0 { "\n" } else { ",\n" });
            text.push_str(&in_json(&CatalogueLine::from(entry)));
        }
        text.push_str("]}");
    }
    text.push_str("]}\n");
    text
}

/// Strings, numbers and lists of them, which always serialize.
fn in_json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl From<CatalogueLine<'_>> for CatalogueEntry {
    fn from(line: CatalogueLine<'_>) -> Self {
        let takes = |kind: &str| line.takes.split(' ').any(|taken| taken == kind);
        Self {
            images: takes("images"),
            audio: takes("audio"),
            pdf: takes("pdf"),
            thought: line.thought.split(' ').filter_map(ThoughtLevel::parse).collect(),
            price: line.price.map(|[input, output, cache_read, cache_write]| Price {
                input,
                output,
                cache_read,
                cache_write,
            }),
            id: line.id.into_owned(),
            name: line.name.into_owned(),
            context: line.context,
            max_output: line.max_output,
        }
    }
}

impl<'a> From<&'a CatalogueEntry> for CatalogueLine<'a> {
    fn from(entry: &'a CatalogueEntry) -> Self {
        let takes = [("images", entry.images), ("audio", entry.audio), ("pdf", entry.pdf)];
        let takes: Vec<&str> = takes.into_iter().filter(|(_, taken)| *taken).map(|(kind, _)| kind).collect();
        let thought: Vec<&str> = entry.thought.iter().map(|level| level.as_str()).collect();
        Self {
            id: entry.id.as_str().into(),
            name: entry.name.as_str().into(),
            context: entry.context,
            max_output: entry.max_output,
            takes: takes.join(" ").into(),
            thought: thought.join(" ").into(),
            price: entry.price.map(|price| [price.input, price.output, price.cache_read, price.cache_write]),
        }
    }
}
