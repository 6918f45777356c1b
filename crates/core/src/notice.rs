//! Notices: what people have to know beside what the model says. One that belongs to an answer is stored with
//! it; no model is sent any.

use serde_json::{Value, json};

use crate::chunk::{Chunk, Rest};

/// The part is `data-notice {severity, title, description?}`.
pub const PART_NAME: &str = "notice";

/// A provider would not answer, in its own words if it gave any.
pub fn declined(words: Option<&str>) -> Chunk {
    kept("warning", "The model declined this prompt", words)
}

/// A notice that stays with the answer it is recorded in.
pub(crate) fn kept(severity: &str, title: &str, description: Option<&str>) -> Chunk {
    let data = data(severity, title, description);
    Chunk::Data { name: PART_NAME.into(), id: None, data, transient: None, rest: Rest::none() }
}

/// A notice of the moment, outside of any answer.
pub(crate) fn passing(severity: &str, title: &str, description: Option<&str>) -> Chunk {
    Chunk::transient_data(PART_NAME, data(severity, title, description))
}

fn data(severity: &str, title: &str, description: Option<&str>) -> Value {
    let mut data = json!({ "severity": severity, "title": title });
    if let Some(description) = description {
        data["description"] = description.into();
    }
    data
}

/// One line for a text: `error: title: description`.
pub fn line(data: &Value) -> String {
    let field = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let said = [field("severity"), field("title"), field("description")];
    said.into_iter().flatten().collect::<Vec<_>>().join(": ")
}
