//! What a run gathers from updates: the words, the tokens, the cost, and what was denied. Writes nothing.

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, MessageId, Notice, NoticeSeverity, PromptResponse, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionCategory, SessionId, SessionUpdate, StopReason, UsageUpdate,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::denials::DeniedCall;
use super::questions::OWN_KEY;
use crate::limits::KEPT_NOTICES;

/// Something that people have to know beside the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RunNotice {
    severity: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct SpentTokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) session_id: Option<SessionId>,
    pub(super) stop_reason: Option<StopReason>,
    /// Who answers, as the agent names it; `None` where it does not say.
    pub(super) model: Option<String>,
    pub(super) denied: Vec<DeniedCall>,
    notices: Vec<RunNotice>,
    pub(super) value: Option<Value>,
    words: SaidWords,
    /// Tokens of the steps, as attache reports them.
    steps: SpentTokens,
    /// Of whole turns, as other agents tell them.
    turns: SpentTokens,
    cost: RunCost,
    /// Pictures and sounds, which a text can't hold.
    pub(super) unshown: usize,
}

/// What the agent said, in paragraphs: one per message.
#[derive(Debug, Default)]
struct SaidWords {
    all: String,
    /// Where the last message begins.
    last: usize,
    message: Option<MessageId>,
    /// Something came in between: what follows is another message.
    interrupted: bool,
}

/// Cost of the session in dollars: before this run, and now.
#[derive(Clone, Copy, Debug, Default)]
struct RunCost {
    before: Option<f64>,
    now: Option<f64>,
}

impl Collected {
    /// Gives what a chunk adds to the text.
    pub(super) fn said(&mut self, chunk: &ContentChunk) -> String {
        let text = match &chunk.content {
            ContentBlock::Text(text) => text.text.as_str(),
            ContentBlock::ResourceLink(link) => link.uri.as_str(),
            _ => {
                self.unshown += 1;
                return String::new();
            }
        };
        self.words.add(text, chunk.message_id.as_ref())
    }

    /// An update of this run that is not the agent's words.
    pub(super) fn note(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::UsageUpdate(usage) => {
                self.steps.add_step(usage);
                self.cost.tell(usage);
            }
            SessionUpdate::ToolCall(_) => self.words.interrupted = true,
            _ => {}
        }
    }

    /// Keeps a notice for the object; gives it as a line for people.
    pub(super) fn noticed(&mut self, notice: &Notice) -> String {
        let severity = match notice.severity {
            NoticeSeverity::Error => "error",
            NoticeSeverity::Warning => "warning",
            _ => "info",
        };
        let (title, description) = (notice.title.clone(), notice.description.clone());
        let more = description.as_deref().map(|more| format!(": {more}")).unwrap_or_default();
        let line = format!("{title}{more}");
        if self.notices.len() < KEPT_NOTICES {
            self.notices.push(RunNotice { severity, title, description });
        }
        line
    }

    /// Reads the current model from the configuration options.
    pub(super) fn learn_model(&mut self, options: &[SessionConfigOption]) {
        let of_models =
            |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
        if let Some(option) = options.iter().find(of_models)
            && let SessionConfigKind::Select(select) = &option.kind
        {
            self.model = Some(select.current_value.0.to_string());
        }
    }

    /// An update of what was before this run.
    pub(super) fn recall(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update {
            self.cost.before = dollars(usage).or(self.cost.before);
        }
    }

    pub(super) fn ended(&mut self, response: &PromptResponse) {
        self.stop_reason = Some(response.stop_reason);
        if let Some(usage) = &response.usage {
            self.turns.input += usage.input_tokens;
            self.turns.output += usage.output_tokens;
            self.turns.reasoning += usage.thought_tokens.unwrap_or_default();
            self.turns.cache_read += usage.cached_read_tokens.unwrap_or_default();
            self.turns.cache_write += usage.cached_write_tokens.unwrap_or_default();
        }
    }

    /// Before the prompt is put again: only the last answer counts.
    pub(super) fn forget_words(&mut self) {
        self.words = SaidWords::default();
    }

    /// The agent's last message of this turn.
    pub(super) fn last_message(&self) -> &str {
        &self.words.all[self.words.last..]
    }

    /// Cost of this run in dollars; `None` if the agent reported none.
    pub(super) fn cost(&self) -> Option<f64> {
        // Not below nothing, whatever an agent counts.
        self.cost.now.map(|now| (now - self.cost.before.unwrap_or_default()).max(0.0))
    }

    /// The object that ends a run.
    pub(super) fn object(&self, error: Option<&str>) -> Value {
        let steps_told = self.steps != SpentTokens::default();
        let usage = if steps_told { self.steps } else { self.turns };
        let mut object = json!({
            "sessionId": self.session_id,
            "stopReason": self.stop_reason,
            "model": self.model,
            "text": self.words.all,
            "usage": usage,
        });
        if let Some(cost) = self.cost() {
            // Sums of floats end in noise that is no money.
            object["costUsd"] = json!((cost * 1e9).round() / 1e9);
        }
        object["denied"] = json!(self.denied);
        object["notices"] = json!(self.notices);
        if let Some(value) = &self.value {
            object["value"] = value.clone();
        }
        if let Some(error) = error {
            object["error"] = json!(error);
        }
        object
    }
}

impl SaidWords {
    fn add(&mut self, text: &str, message: Option<&MessageId>) -> String {
        if text.is_empty() {
            return String::new();
        }
        let is_another = self.interrupted || (message.is_some() && message != self.message.as_ref());
        self.interrupted = false;
        self.message = message.cloned();
        let mut added = String::new();
        if is_another && !self.all.is_empty() {
            let newlines = self.all.len() - self.all.trim_end_matches('\n').len();
            added.push_str(&"\n\n"[newlines.min(2)..]);
        }
        if is_another {
            self.last = self.all.len() + added.len();
        }
        added.push_str(text);
        self.all.push_str(&added);
        added
    }
}

impl SpentTokens {
    fn add_step(&mut self, usage: &UsageUpdate) {
        let step = usage.meta.as_ref().and_then(|meta| meta.get(OWN_KEY)?.get("stepTokens"));
        let count = |name: &str| step.and_then(|step| step.get(name)?.as_u64()).unwrap_or_default();
        self.input += count("input");
        self.output += count("output");
        self.reasoning += count("reasoning");
        self.cache_read += count("cacheRead");
        self.cache_write += count("cacheWrite");
    }
}

impl RunCost {
    fn tell(&mut self, usage: &UsageUpdate) {
        self.now = dollars(usage).or(self.now);
    }
}

fn dollars(usage: &UsageUpdate) -> Option<f64> {
    let cost = usage.cost.as_ref()?;
    (cost.currency == "USD" && cost.amount.is_finite()).then_some(cost.amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::{Cost as WireCost, Meta, ToolCall};

    fn chunk(text: &str, id: Option<&str>) -> ContentChunk {
        ContentChunk::new(text.to_owned().into()).message_id(id.map(|id| MessageId::new(id.to_owned())))
    }

    #[test]
    fn messages_are_paragraphs_and_the_last_is_known() {
        let mut collected = Collected::default();
        let mut streamed = String::new();
        for (text, id) in
            [("Let me ", "m.1"), ("look.", "m.1"), ("Found", "m.2"), (" it.\n", "m.2"), ("Done.", "m.3")]
        {
            streamed += &collected.said(&chunk(text, Some(id)));
        }
        assert_eq!(collected.words.all, "Let me look.\n\nFound it.\n\nDone.");
        assert_eq!(streamed, collected.words.all);
        assert_eq!(collected.last_message(), "Done.");
    }

    #[test]
    fn without_ids_a_call_parts_messages() {
        let mut collected = Collected::default();
        collected.said(&chunk("one ", None));
        collected.said(&chunk("two", None));
        collected.note(&SessionUpdate::ToolCall(ToolCall::new("c", "Read")));
        collected.said(&chunk("three", None));
        assert_eq!((collected.words.all.as_str(), collected.last_message()), ("one two\n\nthree", "three"));
    }

    #[test]
    fn tokens_add_up_and_the_cost_is_that_of_this_run() {
        let usage = |cost: f64| {
            let ours = json!({ "stepTokens": { "input": 10, "output": 2, "cacheRead": 5 } });
            let meta = Meta::from_iter([("attache".to_owned(), ours)]);
            SessionUpdate::UsageUpdate(UsageUpdate::new(1, 2).cost(WireCost::new(cost, "USD")).meta(meta))
        };
        let mut collected = Collected::default();
        collected.recall(&usage(0.1));
        collected.note(&usage(0.15));
        collected.note(&usage(0.3));
        let object = collected.object(None);
        assert_eq!(
            object["usage"],
            json!({ "input": 20, "output": 4, "reasoning": 0, "cache_read": 10, "cache_write": 0 })
        );
        assert_eq!(object["costUsd"], json!(0.2));
        assert!(object.get("error").is_none() && object.get("value").is_none());
    }
}
