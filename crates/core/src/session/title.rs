//! The title of a session: first the first line of its prompt, then a better one from a small model beside the
//! session. There is one try; no turn waits for it, and a failure is only logged.

use std::future::pending;
use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Session;
use super::choose::aside;
use crate::agents::TITLE_AGENT;
use crate::chunk::{Chunk, FinishReason};
use crate::data_name::DataName;
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::legible::{is_invisible, is_odd_blank};
use crate::limits::{TITLE_ANSWER_BYTES, TITLE_CHARACTERS, TITLE_EXCERPT_BYTES, TITLE_TIME};
use crate::part::{Part, Passage, Role};
use crate::ports::backend::TurnLeftovers;
use crate::ports::model::{ModelError, ModelInfo, ModelRequest, StepEvent, ThoughtLevel, Usage};
use crate::ports::store::Change;
use crate::ports::telemetry::SpanContext;
use crate::ports::{BoxStream, Model};
use crate::prompt::text_of;
use crate::slash_commands;
use crate::turn::TurnEnd;
use crate::turn::usage::TurnUsage;

/// Whether a session still wants a title from a model. In memory only: a loaded session keeps its title.
#[derive(Debug, Default)]
pub(crate) enum Titling {
    #[default]
    NotDue,
    /// The title is the first line; the first finished turn will bring a better one.
    Due,
    UnderWay(Making),
}

/// The running call of the small model. Dropping it ends the call.
#[derive(Debug)]
pub(crate) struct Making {
    task: JoinHandle<Result<MadeTitle, TitleError>>,
    _cancelled_with_us: DropGuard,
}

impl Drop for Making {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The result of the call.
#[derive(Debug, PartialEq)]
pub(crate) struct MadeTitle {
    /// `None` if no part of the answer could be a title.
    title: Option<String>,
    used: TurnUsage,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TitleError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the answer was cut off")]
    Cut,
    #[error("it took longer than {} s", TITLE_TIME.as_secs())]
    TooLate,
}

/// The beginning of the conversation, as the small model gets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TitleExcerpt(String);

impl Titling {
    /// Waits for the call to return; indefinitely if none runs.
    pub(crate) async fn made(&mut self) -> Result<Result<MadeTitle, TitleError>, JoinError> {
        match self {
            Self::UnderWay(making) => (&mut making.task).await,
            Self::NotDue | Self::Due => pending().await,
        }
    }
}

impl Session {
    /// The title for a session without one, when a prompt gets its seq: the prompt's first line.
    pub(super) fn first_title(&mut self, parts: &[Part]) -> Option<String> {
        if self.row.metadata.says_title() {
            return None;
        }
        self.titling = Titling::Due;
        first_line(parts)
    }

    /// The text to make a title from, if this is the turn for it. Called before the end of the turn is stored.
    pub(super) fn title_excerpt(&mut self, end: &TurnEnd, leftovers: &TurnLeftovers) -> Option<TitleExcerpt> {
        let finished = match end {
            TurnEnd::Finished(reason) => match reason {
                FinishReason::Stop | FinishReason::Length | FinishReason::ToolCalls | FinishReason::Other => {
                    true
                }
                FinishReason::ContentFilter | FinishReason::Error => false,
            },
            TurnEnd::StepLimit | TurnEnd::Aborted | TurnEnd::Failed { .. } => false,
        };
        match (&self.titling, finished) {
            (Titling::Due, true) => TitleExcerpt::of(leftovers.conversation.as_ref()?),
            (Titling::Due | Titling::NotDue | Titling::UnderWay(_), _) => None,
        }
    }

    /// Asks the small model in a task of its own. Called after the turn was answered.
    pub(super) fn begin_title(&mut self, excerpt: Option<TitleExcerpt>, parent_span: Option<SpanContext>) {
        let (Some(excerpt), Titling::Due) = (excerpt, &self.titling) else { return };
        self.titling = Titling::NotDue;
        let ports = &self.hub.ports;
        let beside = || ports.model.small(&self.current_model()?.model);
        let Some(agent) = self.agents().get(TITLE_AGENT) else { return };
        // A model in the agent's manifest has precedence, as for every agent.
        let small = || ports.settings.small_model.clone().or_else(beside);
        let Some(small) = agent.model.clone().or_else(small) else { return };
        let Some(info) = ports.model.describe(&small) else {
            return tracing::warn!(model = %small, "the model for titles can't be used");
        };
        let text = Part::Text { text: excerpt.0, state: None, provider_metadata: None };
        let asked = Passage::new(MessageId::new(""), Role::User, vec![text]);
        let request = ModelRequest {
            session_id: self.id.clone(),
            // A title needs no thinking, unless the manifest says so; only for models with levels.
            thought: agent
                .thought
                .or(Some(ThoughtLevel::Off))
                .filter(|one| info.thought_levels.contains(one)),
            info: Arc::new(info),
            system: agent.system_prompt.clone(),
            passages: vec![Arc::new(asked)].into(),
            runtime_context: Arc::new([]),
            tools: Arc::new([]),
            blobs: ports.blobs.clone(),
            parent_span,
        };
        let cancel = CancellationToken::new();
        let task = tokio::spawn(make(ports.model.clone(), request, cancel.clone()));
        self.titling = Titling::UnderWay(Making { task, _cancelled_with_us: cancel.drop_guard() });
    }

    /// The call returned: stores and announces the title, and adds the cost to the session's.
    pub(super) async fn take_title(&mut self, made: Result<Result<MadeTitle, TitleError>, JoinError>) {
        self.titling = Titling::NotDue;
        let made = match made {
            Ok(Ok(made)) => made,
            Ok(Err(error)) => return tracing::debug!(%error, "no title was made"),
            Err(error) => return tracing::warn!(%error, "making a title crashed"),
        };
        if let Err(error) = self.store_title(made).await {
            tracing::debug!(%error, "a title was lost");
        }
        self.go_on().await;
    }

    async fn store_title(&mut self, made: MadeTitle) -> Result<(), HubError> {
        self.take_lease().await?;
        let mut patch = self.empty_patch();
        patch.add_usage = Some(made.used.totals());
        let mut said = Vec::new();
        if let Some(title) = &made.title {
            patch.metadata.set_title(title);
            said.push(title_chunk(title));
        }
        self.journal.record_with(&aside(), said, vec![Change::PatchSession(patch)])?;
        self.measures.add_cost(made.used.cost_usd);
        self.journal.settle().await?;
        if let Some(title) = made.title {
            self.row.metadata.set_title(&title);
        }
        Ok(())
    }
}

async fn make(
    model: Arc<dyn Model>,
    request: ModelRequest,
    cancel: CancellationToken,
) -> Result<MadeTitle, TitleError> {
    let info = request.info.clone();
    let answered = tokio::time::timeout(TITLE_TIME, hear(model.stream(request, cancel)));
    let (answer, tokens) = answered.await.map_err(|_| TitleError::TooLate)??;
    Ok(MadeTitle { title: clean(&answer), used: used(&info, tokens) })
}

/// Reads the answer, up to the size that a title can be in, and its usage.
async fn hear(
    mut events: BoxStream<'static, Result<StepEvent, ModelError>>,
) -> Result<(String, Usage), TitleError> {
    let mut answer = String::new();
    while let Some(event) = events.next().await {
        match event? {
            StepEvent::Chunk(Chunk::TextDelta { delta, .. }) => {
                let room = TITLE_ANSWER_BYTES.saturating_sub(answer.len());
                answer.push_str(&delta[..delta.floor_char_boundary(room)]);
            }
            // Thoughts and everything else are not part of the title.
            StepEvent::Chunk(_) => {}
            StepEvent::End { usage, .. } => return Ok((answer, usage)),
        }
    }
    Err(TitleError::Cut)
}

fn used(info: &ModelInfo, tokens: Usage) -> TurnUsage {
    let counted = tokens != Usage::default();
    let price = info.price.filter(|_| counted);
    TurnUsage { tokens, cost_usd: price.map(|price| price.of(&tokens)) }
}

impl TitleExcerpt {
    /// The last prompt and its answer, both cut.
    fn of(passages: &[Arc<Passage>]) -> Option<Self> {
        let asked = passages.iter().rposition(|passage| passage.role == Role::User)?;
        let prompt = beginning(std::slice::from_ref(&passages[asked]));
        let answer = beginning(&passages[asked + 1..]);
        if prompt.is_empty() && answer.is_empty() {
            return None;
        }
        Some(Self(format!(
            "<user>\n{prompt}\n</user>\n<agent>\n{answer}\n</agent>\n\nThe title of this conversation:"
        )))
    }
}

/// The first words of some passages; does not look beyond the limit.
fn beginning(passages: &[Arc<Passage>]) -> String {
    let mut words = String::new();
    for part in passages.iter().flat_map(|passage| &passage.parts) {
        let text = match part {
            Part::Text { text, .. } => text.as_str(),
            // What the user typed is shorter than its expansion, and says as much.
            other => match slash_commands::typed_text(other) {
                Some(text) => text,
                None => continue,
            },
        };
        let room = TITLE_EXCERPT_BYTES.saturating_sub(words.len());
        words.push_str(&text[..text.floor_char_boundary(room)]);
        if room <= text.len() {
            words.push('…');
            break;
        }
        words.push('\n');
    }
    words.trim().to_owned()
}

/// The chunk that tells all clients a title.
pub(crate) fn title_chunk(title: &str) -> Chunk {
    Chunk::transient_data(DataName::Title, json!({ "title": title }))
}

/// The first line of a prompt: the title until there is a better one.
fn first_line(parts: &[Part]) -> Option<String> {
    let typed = parts.first().and_then(slash_commands::typed_text).map(str::to_owned);
    let text = typed.unwrap_or_else(|| text_of(parts));
    short_title(&text)
}

/// The first line of a text as a title.
pub(crate) fn short_title(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(shortened)
}

/// The model's answer as one line without decoration: models add quotes, headings, labels and thoughts.
fn clean(answer: &str) -> Option<String> {
    let spoken = match answer.rsplit_once("</think>") {
        Some((_, spoken)) => spoken,
        None if answer.contains("<think>") => return None,
        None => answer,
    };
    let lines = spoken.lines().map(|line| bare(&legible(line)));
    let title = lines.into_iter().find(|line| !line.is_empty())?;
    Some(shortened(&title))
}

/// Removes characters that are invisible or change the direction, and repeated blanks.
fn legible(line: &str) -> String {
    let is_blank = |character: char| character.is_control() || is_odd_blank(character);
    let spaced = line.chars().map(|character| if is_blank(character) { ' ' } else { character });
    let line: String = spaced.filter(|character| !is_invisible(*character)).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bare(line: &str) -> String {
    const LABEL: &str = "title:";
    let ornament = |character: char| "\"'`*_#“”„«»‘’".contains(character) || character.is_whitespace();
    let mut line = line.trim_matches(ornament);
    let label = line.get(..LABEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(LABEL));
    if label {
        line = line[LABEL.len()..].trim_matches(ornament);
    }
    line.to_owned()
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(TITLE_CHARACTERS) {
        None => line.to_owned(),
        Some(_) => line.chars().take(TITLE_CHARACTERS - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn titles_lose_what_models_wrap_them_in() {
        for (answer, title) in [
            ("Fix the parser", Some("Fix the parser")),
            ("\n\n  \"Fix the parser\"\nBecause …", Some("Fix the parser")),
            ("**Title:** Fix\tthe   parser", Some("Fix the parser")),
            ("# Title: «Fix the parser»", Some("Fix the parser")),
            ("<think>\nHm. A title.\n</think>\n\nFix the parser", Some("Fix the parser")),
            ("Rename \"a\" to b", Some("Rename \"a\" to b")),
            ("a\u{202e}b\u{7}c", Some("ab c")),
            ("Title:\nFix the parser", Some("Fix the parser")),
            ("<think>\nHm. A", None),
            ("\"\"\n```\n", None),
            ("", None),
        ] {
            assert_eq!(clean(answer).as_deref(), title, "{answer:?}");
        }
        assert_eq!(clean(&"é".repeat(81)), Some(format!("{}…", "é".repeat(79))));
        assert_eq!(clean(&"é".repeat(80)), Some("é".repeat(80)));
    }

    fn passage(role: Role, texts: &[&str]) -> Arc<Passage> {
        let text = |text: &&str| Part::Text { text: (*text).into(), state: None, provider_metadata: None };
        Arc::new(Passage::new(MessageId::new("m"), role, texts.iter().map(text).collect()))
    }

    #[test]
    fn an_excerpt_is_the_last_prompt_and_its_answer_and_never_long() {
        let long = "ü".repeat(TITLE_EXCERPT_BYTES);
        let passages = [
            passage(Role::User, &["old"]),
            passage(Role::Assistant, &["old answer"]),
            passage(Role::User, &["new", "words"]),
            passage(Role::Assistant, &["I look."]),
            passage(Role::Assistant, &[&long, &long]),
        ];
        let TitleExcerpt(text) = TitleExcerpt::of(&passages).unwrap();
        assert!(text.starts_with("<user>\nnew\nwords\n</user>\n<agent>\nI look.\nüü"), "{text}");
        assert!(!text.contains("old") && text.len() < 2 * TITLE_EXCERPT_BYTES + 200, "{}", text.len());
        assert_eq!(TitleExcerpt::of(&[passage(Role::User, &[])]), None);
    }

    proptest! {
        #[test]
        fn a_title_is_one_short_line(answer in "(\\PC|\\s|[\"'#*\u{202e}]){0,300}") {
            if let Some(title) = clean(&answer) {
                prop_assert!(!title.is_empty() && title.chars().count() <= TITLE_CHARACTERS);
                prop_assert!(!title.chars().any(char::is_control), "{title:?}");
                prop_assert_eq!(title.lines().count(), 1);
            }
        }
    }
}
