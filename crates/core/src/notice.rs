//! Notices: what people have to know beside what the model says. A notice about an answer is stored with it; no
//! model ever gets one.

use serde_json::{Value, json};

use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::part::Part;

/// A provider declined to answer; with its own words if it gave any.
pub fn declined(words: Option<&str>) -> Chunk {
    kept("warning", "The model declined this prompt", words)
}

/// The title of the notice in an answer that ended with its process.
const CUT_ANSWER: &str = "attache ended in the middle of this answer";

/// For an answer whose process was killed, which may stop anywhere.
pub(crate) fn cut_answer() -> Chunk {
    kept("warning", CUT_ANSWER, None)
}

/// Whether these parts end with that notice.
pub(crate) fn is_cut(parts: &[Part]) -> bool {
    let title = parts.iter().rev().find_map(|part| match part {
        Part::Data { name, data, .. } if *name == DataName::Notice => data.get("title"),
        Part::Data { .. }
        | Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::Tool(_)
        | Part::File { .. }
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. }
        | Part::StepStart => None,
    });
    title.is_some_and(|title| title == CUT_ANSWER)
}

/// A notice stored with the answer that it is recorded in.
pub(crate) fn kept(severity: &str, title: &str, description: Option<&str>) -> Chunk {
    let data = data(severity, title, description);
    Chunk::Data { name: DataName::Notice.into(), id: None, data, transient: None, rest: Rest::none() }
}

/// A transient notice, outside of any answer.
pub(crate) fn passing(severity: &str, title: &str, description: Option<&str>) -> Chunk {
    Chunk::transient_data(DataName::Notice, data(severity, title, description))
}

fn data(severity: &str, title: &str, description: Option<&str>) -> Value {
    let mut data = json!({ "severity": severity, "title": title });
    if let Some(description) = description {
        data["description"] = description.into();
    }
    data
}

/// One line of text: `error: title: description`.
pub fn line(data: &Value) -> String {
    let field = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let said = [field("severity"), field("title"), field("description")];
    said.into_iter().flatten().collect::<Vec<_>>().join(": ")
}
