//! What tools of the agent ask the client for: texts, terminals, answers. Checked against the session's scope;
//! what changes something or asks a person is a call of the answer, judged like any other.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::Delegate;
use attache_core::ports::client::{CallArguments, Choice, Question, Said, Selection};
use attache_core::ports::delegate::Lines;
use attache_core::ports::tool::{Access, Workspace};
use serde_json::Value;

use super::{PythonSettings, terminal};
use crate::agent::{RunAsk, RunAskAbout, RunDecision};
use crate::session_files::{self, FileAccess};

/// What a request needs of its session.
#[derive(Clone, Debug)]
pub(super) struct RequestPlace {
    pub(super) settings: Arc<PythonSettings>,
    pub(super) workspace: Arc<Workspace>,
    pub(super) client: Option<Arc<dyn Delegate>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) kind: RequestKind,
    pub(super) params: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    ReadText,
    WriteText,
    Terminal,
    Ask,
}

impl RequestKind {
    pub(super) fn of(method: &str) -> Option<Self> {
        match method {
            "read_text_file" => Some(Self::ReadText),
            "write_text_file" => Some(Self::WriteText),
            "terminal" => Some(Self::Terminal),
            "ask" => Some(Self::Ask),
            _ => None,
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Self::ReadText => "read_text_file",
            Self::WriteText => "write_text_file",
            Self::Terminal => "terminal",
            Self::Ask => "question",
        }
    }
}

impl Request {
    /// Whether it is done without a word: reading what the session may read, and writing through an editor
    /// that shows it for review.
    pub(super) fn is_silent(&self, place: &RequestPlace) -> bool {
        match self.kind {
            RequestKind::ReadText => true,
            RequestKind::WriteText => {
                place.client.as_ref().is_some_and(|client| client.offers().writes_texts)
            }
            RequestKind::Terminal | RequestKind::Ask => false,
        }
    }

    pub(super) fn call_id(&self) -> CallId {
        CallId::new(format!("request-{}", self.id))
    }

    /// The call that stands for it.
    pub(super) fn call(&self) -> Chunk {
        let marks = ToolMarks { dynamic: Some(true), provider_executed: Some(true), ..ToolMarks::default() };
        Chunk::ToolInputAvailable {
            call_id: self.call_id(),
            tool_name: self.kind.tool().to_owned(),
            input: self.params.clone(),
            marks,
            rest: Rest::none(),
        }
    }

    /// What is asked about it.
    pub(super) fn ask(&self) -> RunAsk {
        let about = match self.kind {
            RequestKind::Ask => RunAskAbout::Questions(vec![question(&self.params)]),
            RequestKind::ReadText | RequestKind::WriteText => {
                RunAskAbout::Permission { description: None, arguments: CallArguments::Fixed }
            }
            RequestKind::Terminal => RunAskAbout::Command { description: None },
        };
        RunAsk {
            call_id: self.call_id(),
            approval_id: None,
            tool: self.kind.tool().to_owned(),
            presentation: None,
            about,
            rest: Rest::none(),
        }
    }

    /// Does it, as it was decided.
    pub(super) async fn done(&self, place: &RequestPlace, decision: RunDecision) -> Result<Value, String> {
        let params = match decision {
            RunDecision::Approve => self.params.clone(),
            RunDecision::Edit(params) => params,
            RunDecision::Reject(reason) => return Err(reason),
            RunDecision::Answer(said) => return Ok(answers(&said)),
            RunDecision::Unanswered => return Err("nobody answered the question".to_owned()),
        };
        match self.kind {
            RequestKind::ReadText => read(place, &params).await,
            RequestKind::WriteText => write(place, &params).await,
            RequestKind::Terminal => terminal::run(place, &params).await,
            RequestKind::Ask => Err("nobody answered the question".to_owned()),
        }
    }
}

/// The chunk that ends the call of a request.
pub(super) fn outcome(call_id: CallId, result: &Result<Value, String>) -> Chunk {
    let marks = ToolMarks { dynamic: Some(true), provider_executed: Some(true), ..ToolMarks::default() };
    match result {
        Ok(output) => Chunk::ToolOutputAvailable {
            call_id,
            output: output.clone(),
            preliminary: None,
            marks,
            rest: Rest::none(),
        },
        Err(error) => {
            Chunk::ToolOutputError { call_id, error_text: error.clone(), marks, rest: Rest::none() }
        }
    }
}

fn question(params: &Value) -> Question {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let options = params.get("options").and_then(Value::as_array);
    let choices = options.into_iter().flatten().filter_map(|option| {
        Some(Choice { label: text(option, "label")?, description: text(option, "description") })
    });
    let several = params.get("multi_select").and_then(Value::as_bool).unwrap_or_default();
    Question {
        text: text(params, "question").unwrap_or_default(),
        header: text(params, "header"),
        choices: choices.collect(),
        selection: if several { Selection::Several } else { Selection::One },
    }
}

fn answers(said: &[Said]) -> Value {
    let words = said.iter().flat_map(|said| match said {
        Said::Text(text) => vec![text.clone()],
        Said::Chosen(labels) => labels.clone(),
        Said::Nothing => Vec::new(),
    });
    Value::Array(words.map(Value::String).collect())
}

async fn read(place: &RequestPlace, params: &Value) -> Result<Value, String> {
    let path = place.path(params)?;
    let count = |key: &str| {
        let number = params.get(key).and_then(Value::as_u64)?;
        u32::try_from(number).ok()
    };
    let lines = Lines { first: count("line"), count: count("limit") };
    place.check(&path, Access::ReadPath).await?;
    if let Some(client) = place.client.as_ref().filter(|client| client.offers().reads_texts) {
        let text = client.read_text(&path, lines).await.map_err(|error| error.to_string())?;
        return Ok(Value::String(text));
    }
    let (workspace, of) = (place.workspace.clone(), path.clone());
    let text = blocking(move || session_files::read(&workspace, &of)).await;
    let text = text.map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    Ok(Value::String(some_lines(&text, lines)))
}

fn some_lines(text: &str, lines: Lines) -> String {
    let skipped = lines.first.unwrap_or(1).saturating_sub(1) as usize;
    let taken = lines.count.map_or(usize::MAX, |count| count as usize);
    text.split_inclusive('\n').skip(skipped).take(taken).collect()
}

async fn write(place: &RequestPlace, params: &Value) -> Result<Value, String> {
    let path = place.path(params)?;
    let content = params.get("content").and_then(Value::as_str).ok_or("`content` is missing")?;
    place.check(&path, Access::WritePath).await?;
    if let Some(client) = place.client.as_ref().filter(|client| client.offers().writes_texts) {
        client.write_text(&path, content.to_owned()).await.map_err(|error| error.to_string())?;
        return Ok(Value::Null);
    }
    let (workspace, of, content) = (place.workspace.clone(), path.clone(), content.to_owned());
    let written = blocking(move || session_files::write(&workspace, &of, &content)).await;
    written.map_err(|error| format!("{} can't be written: {error}", path.display()))?;
    Ok(Value::Null)
}

impl RequestPlace {
    fn path(&self, params: &Value) -> Result<PathBuf, String> {
        let path = params.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
        Ok(self.below(path.ok_or("`path` is missing")?))
    }

    /// Relative to the root, without `.` and `..`.
    pub(super) fn below(&self, path: &str) -> PathBuf {
        let mut plain = PathBuf::new();
        for component in self.workspace.root.join(path).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => drop(plain.pop()),
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
            }
        }
        plain
    }

    /// As it is named, and where its links lead.
    pub(super) async fn check(&self, path: &Path, access: FileAccess) -> Result<(), String> {
        let (workspace, path) = (self.workspace.clone(), path.to_owned());
        let checked = blocking(move || session_files::check(&workspace, &path, access)).await;
        checked.map_err(|error| error.to_string())
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// What a run tells of a request that it can't do.
pub(super) fn unknown(method: &str) -> String {
    format!("this attache has no `{method}` for agents")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let text = "a\nb\nc\n";
        let some = |first, count| some_lines(text, Lines { first, count });
        assert_eq!(some(None, None), text);
        assert_eq!(some(Some(2), Some(1)), "b\n");
        assert_eq!(some(Some(9), None), "");
    }

    #[test]
    fn a_question_has_its_choices() {
        let asked =
            question(&json!({ "question": "Which?", "options": [{ "label": "a" }], "multi_select": true }));
        assert_eq!(
            (asked.text.as_str(), asked.choices.len(), asked.selection),
            ("Which?", 1, Selection::Several)
        );
    }
}
