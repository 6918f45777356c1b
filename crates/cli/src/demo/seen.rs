//! What the demo's editor received: printed as it arrives, and remembered for the checks.

use serde_json::Value;

use super::agent::AgentEvent;
use super::field;
use super::stage::DemoStage;
use crate::paint::Colour;

/// We print a streamed answer up to here and only count the rest.
const SHOWN_CHARACTERS: usize = 180;

#[derive(Debug, Default)]
pub(super) struct SeenUpdates {
    silent: bool,
    text: String,
    prompts: Vec<String>,
    plan: Vec<String>,
    permissions: usize,
    diffs: Vec<(String, Option<String>, String)>,
    outputs: String,
    shown: usize,
    speaking: Speaking,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Speaking {
    #[default]
    Nobody,
    Thought,
    Answer,
}

impl SeenUpdates {
    /// Remembers without printing: a replay fills the editor's panel only.
    pub(super) fn silent() -> Self {
        Self { silent: true, ..Self::default() }
    }

    pub(super) fn show(&mut self, stage: &mut DemoStage, event: AgentEvent) {
        match event {
            AgentEvent::Update(params) => self.update(stage, &params["update"]),
            AgentEvent::Permission(params) => {
                self.permissions += 1;
                self.aside(stage);
                let title = field(&params, "/toolCall/title").unwrap_or("?");
                // The last content of a question is the reason for it.
                let content = params.pointer("/toolCall/content").and_then(Value::as_array);
                let why = content.and_then(|content| field(content.last()?, "/content/text"));
                let asked = format!("{title}\n{}  → you click “allow once”", why.unwrap_or_default());
                stage.labelled(Colour::Yellow, "allow?", &asked);
            }
        }
    }

    fn update(&mut self, stage: &mut DemoStage, update: &Value) {
        match field(update, "/sessionUpdate").unwrap_or_default() {
            "user_message_chunk" => {
                self.prompts.push(field(update, "/content/text").unwrap_or_default().to_owned());
            }
            "agent_message_chunk" => {
                let text = field(update, "/content/text").unwrap_or_default();
                self.text.push_str(text);
                self.stream(stage, Speaking::Answer, text);
            }
            "agent_thought_chunk" => {
                self.stream(stage, Speaking::Thought, field(update, "/content/text").unwrap_or_default());
            }
            "plan" => self.plan(stage, update),
            "tool_call" | "tool_call_update" => self.tool(stage, update),
            "usage_update" => {
                let used = update["used"].as_u64().unwrap_or_default();
                let size = update["size"].as_u64().unwrap_or_default();
                if !self.silent && used > 1000 {
                    self.aside(stage);
                    stage.fact(&format!("context: {used} of {size} tokens"));
                }
            }
            _ => {}
        }
    }

    fn stream(&mut self, stage: &mut DemoStage, who: Speaking, text: &str) {
        if self.silent {
            return;
        }
        if self.speaking != who {
            self.aside(stage);
            self.speaking = who;
        }
        self.shown += text.len();
        if self.shown > SHOWN_CHARACTERS {
            if self.shown - text.len() <= SHOWN_CHARACTERS {
                stage.streaming(Colour::Cyan, "attache", "…");
            }
            return;
        }
        match who {
            Speaking::Thought => stage.streaming(Colour::Grey, "thinks", text),
            Speaking::Answer | Speaking::Nobody => stage.streaming(Colour::Cyan, "attache", text),
        }
    }

    fn plan(&mut self, stage: &mut DemoStage, update: &Value) {
        let entries = update["entries"].as_array().cloned().unwrap_or_default();
        let status = |entry: &Value| field(entry, "/status").unwrap_or_default().to_owned();
        self.plan = entries.iter().map(status).collect();
        if self.silent {
            return;
        }
        self.aside(stage);
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| {
                let mark = match field(entry, "/status").unwrap_or_default() {
                    "completed" => "[x]",
                    "in_progress" => "[>]",
                    _ => "[ ]",
                };
                format!("{mark} {}", field(entry, "/content").unwrap_or_default())
            })
            .collect();
        stage.labelled(Colour::Magenta, "plan", &lines.join("\n"));
    }

    fn tool(&mut self, stage: &mut DemoStage, update: &Value) {
        let status = field(update, "/status").unwrap_or_default();
        let settled = status == "completed" || status == "failed";
        for block in update["content"].as_array().into_iter().flatten() {
            match field(block, "/type") {
                Some("diff") if settled => self.diff(block),
                Some("content") if settled => {
                    let text = field(block, "/content/text").unwrap_or_default();
                    self.outputs.push_str(text);
                }
                _ => {}
            }
        }
        if self.silent || !settled {
            return;
        }
        self.aside(stage);
        let title = field(update, "/title").unwrap_or("tool");
        let colour = if status == "completed" { Colour::Green } else { Colour::Red };
        stage.labelled(colour, "tool", &format!("{title}  {status}"));
        if field(update, "/kind") == Some("execute") {
            let printed = field(update, "/content/0/content/text").unwrap_or_default();
            let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with("```")).collect();
            stage.labelled(Colour::Grey, "", lines.join("\n").trim());
        }
        if let Some((_, old, new)) = self.diffs.last().filter(|_| update["content"][0]["type"] == "diff") {
            stage.diff(old.as_deref().unwrap_or_default(), new);
        }
    }

    fn diff(&mut self, block: &Value) {
        let path = field(block, "/path").unwrap_or_default().to_owned();
        let old = field(block, "/oldText").map(str::to_owned);
        self.diffs.push((path, old, field(block, "/newText").unwrap_or_default().to_owned()));
    }

    fn aside(&mut self, stage: &mut DemoStage) {
        stage.end_line();
        self.speaking = Speaking::Nobody;
        self.shown = 0;
    }

    pub(super) fn finish(&mut self, stage: &mut DemoStage) {
        self.aside(stage);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn prompts(&self) -> Vec<&str> {
        self.prompts.iter().map(String::as_str).collect()
    }

    pub(super) fn permissions(&self) -> usize {
        self.permissions
    }

    pub(super) fn plan_is_done(&self) -> bool {
        !self.plan.is_empty() && self.plan.iter().all(|status| status == "completed")
    }

    pub(super) fn has_diff(&self, old: &str, new: &str) -> bool {
        let fits = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains(old));
        self.diffs.iter().any(|(_, before, after)| fits(before) && after.contains(new))
    }

    pub(super) fn has_new_file(&self, name: &str) -> bool {
        self.diffs.iter().any(|(path, before, _)| path.ends_with(name) && before.is_none())
    }

    pub(super) fn output_contains(&self, text: &str) -> bool {
        self.outputs.contains(text)
    }
}
