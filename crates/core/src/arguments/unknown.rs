//! Fields that a tool does not have. A call that only reads goes without them, and any call goes without
//! remarks about itself; every other call is refused, because the field may have carried its point. The model
//! learns what was left out.

use crate::ports::tool::{Effect, ToolSpec};
use serde_json::{Map, Value};

use super::aliases::{self, plain};

/// How alike a name must be to be offered instead.
const SIMILAR: f64 = 0.8;

/// A field that means nothing where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Where: empty, or the object it was given in (`todos[]`).
    place: String,
    name: String,
    /// A hint at what the model may have meant.
    aside: String,
    /// The fields that exist in its place.
    allowed: String,
}

impl Unknown {
    /// Adds the field, unless another item of the same list had it.
    pub fn add(all: &mut Vec<Self>, place: &str, name: &str, known: &Map<String, Value>) {
        let alike = |field: &&String| strsim::jaro_winkler(&plain(field), &plain(name));
        let nearest = known.keys().max_by(|one, other| alike(one).total_cmp(&alike(other)));
        let nearest = nearest.filter(|field| alike(field) >= SIMILAR);
        let aside = match (nearest, aliases::advice(name, known.keys())) {
            (Some(field), _) => format!(" (did you mean `{field}`?)"),
            (None, Some(advice)) => format!(" ({advice})"),
            (None, None) => String::new(),
        };
        let allowed: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
        let (place, name, allowed) = (place.to_owned(), name.to_owned(), allowed.join(", "));
        let unknown = Self { place, name, aside, allowed };
        if !all.contains(&unknown) {
            all.push(unknown);
        }
    }

    fn in_words(&self) -> String {
        let dot = if self.place.is_empty() { "" } else { "." };
        format!("`{}{dot}{}`{}", self.place, self.name, self.aside)
    }
}

/// Whether a call may run without these fields.
pub(crate) fn may_be_left_out(spec: &ToolSpec, unknown: &[Unknown]) -> bool {
    match spec.effect {
        Effect::ReadOnly | Effect::SessionOnly => true,
        Effect::Mutates => unknown.iter().all(|field| aliases::is_remark(&field.name)),
    }
}

/// Why a call that may not run without these fields is refused.
pub fn refusal(unknown: &[Unknown]) -> String {
    let (fields, are) = if unknown.len() == 1 { ("field", "is") } else { ("fields", "are") };
    format!("{fields} {} {are} unknown; allowed are {}", names(unknown), allowed(unknown))
}

/// What the model is told about a call that ran without them.
pub fn note(spec: &ToolSpec, unknown: &[Unknown]) -> String {
    format!("[left out, unknown to {}: {}; allowed are {}]", spec.id, names(unknown), allowed(unknown))
}

fn names(unknown: &[Unknown]) -> String {
    unknown.iter().map(Unknown::in_words).collect::<Vec<_>>().join(", ")
}

/// The fields that exist at each place where an unknown one was given.
fn allowed(unknown: &[Unknown]) -> String {
    let mut places: Vec<String> = Vec::new();
    for field in unknown {
        let allowed = match field.place.as_str() {
            "" => field.allowed.clone(),
            place => format!("{} in `{place}`", field.allowed),
        };
        if !places.contains(&allowed) {
            places.push(allowed);
        }
    }
    places.join("; ")
}
