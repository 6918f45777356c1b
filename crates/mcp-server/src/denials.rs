//! The calls of a turn that were denied, and why, for the client that asked.

use attache_core::chunk::{Chunk, Rest};
use attache_core::metadata::own;
use attache_core::ports::tool::Presentation;
use attache_core::watchdog::Action;
use serde_json::{Value, json};

use crate::limits::DENIALS;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Denial {
    tool: String,
    title: String,
    why: String,
}

impl Denial {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "tool": self.tool, "title": self.title, "why": self.why })
    }

    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.title, self.why)
    }
}

/// Why a call did not run, if its result says that it was not allowed to.
pub(crate) fn refusal(chunk: &Chunk) -> Option<String> {
    if let Chunk::ToolOutputDenied { rest, .. } = chunk {
        let reason = rest.0.as_ref().and_then(|fields| fields.unknown.get("errorText")?.as_str());
        return Some(reason.unwrap_or("it was rejected").to_owned());
    }
    let Chunk::ToolOutputError { error_text, rest, .. } = chunk else { return None };
    let decision = presentation(rest).decision?;
    (decision.action == Action::Deny).then(|| error_text.clone())
}

pub(crate) fn presentation(rest: &Rest) -> Presentation {
    let shown = rest.tool_metadata().and_then(own);
    shown.and_then(|shown| serde_json::from_value(shown.clone()).ok()).unwrap_or_default()
}

/// In their order, the first ones.
#[derive(Debug, Default)]
pub(crate) struct Denials(Vec<Denial>);

impl Denials {
    pub(crate) fn push(&mut self, tool: &str, title: &str, why: String) {
        if self.0.len() < DENIALS {
            self.0.push(Denial { tool: tool.to_owned(), title: title.to_owned(), why });
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Denial> {
        self.0.iter()
    }
}
