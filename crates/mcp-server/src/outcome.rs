//! The result of a tool call as MCP has it. What went wrong with a call is a result too: a model can read it
//! and do better.

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallOutcome {
    text: String,
    /// For readers who get texts only.
    note: Option<String>,
    structured: Option<Value>,
    status: OutcomeStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeStatus {
    Done,
    Failed,
}

impl CallOutcome {
    pub(crate) fn done(text: String, structured: Value) -> Self {
        Self { text, note: None, structured: Some(structured), status: OutcomeStatus::Done }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), note: None, structured: None, status: OutcomeStatus::Failed }
    }

    /// With what is known all the same.
    pub(crate) fn failed_with(text: String, structured: Value) -> Self {
        Self { structured: Some(structured), ..Self::failed(text) }
    }

    /// Behind the text, as a text of its own.
    pub(crate) fn noting(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }

    pub(crate) fn to_json(&self) -> Value {
        let texts = std::iter::once(&self.text).chain(&self.note);
        let content: Vec<Value> = texts.map(|text| json!({ "type": "text", "text": text })).collect();
        let mut result = json!({
            "content": content,
            "isError": self.status == OutcomeStatus::Failed,
        });
        if let Some(structured) = &self.structured {
            result["structuredContent"] = structured.clone();
        }
        result
    }
}
