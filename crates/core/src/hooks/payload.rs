//! Builds the JSON object that a hook reads from standard input, with the names that scripts for Claude Code
//! know. Pure.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Hook, HookEvent, Wording};
use crate::ids::{CallId, SessionId};
use crate::limits::HOOK_INPUT_BYTES;
use crate::ports::tool::{Access, ToolOutcome};
use crate::watchdog::{Approval, PatternBase};

/// The subject of a hook's input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HookMatter<'a> {
    Prompt(&'a str),
    BeforeTool(MatterOfCall<'a>),
    AfterTool(MatterOfCall<'a>, &'a ToolOutcome),
    Permission(MatterOfCall<'a>, &'a str),
    /// How often hooks have already made the turn continue, and the model's last text.
    TurnEnd {
        continued: u32,
        said: &'a str,
    },
    /// What the user wants the summary to keep; `None`: the compaction is automatic.
    Compaction {
        keep: Option<&'a str>,
    },
}

/// A call whose arguments are understood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatterOfCall<'a> {
    pub(crate) call_id: &'a CallId,
    pub(crate) tool: &'a str,
    pub(crate) input: &'a Value,
    pub(crate) accesses: &'a [Access],
}

/// The session and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookSurroundings<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) ground: PatternBase<'a>,
    pub(crate) agent: &'a str,
    pub(crate) approval: Approval,
}

impl<'a> HookMatter<'a> {
    fn call(&self) -> Option<MatterOfCall<'a>> {
        match *self {
            Self::BeforeTool(call) | Self::AfterTool(call, _) | Self::Permission(call, _) => Some(call),
            Self::Prompt(_) | Self::TurnEnd { .. } | Self::Compaction { .. } => None,
        }
    }

    /// Whether a hook for this event matches the subject.
    pub(super) fn concerns(&self, hook: &Hook, around: &HookSurroundings<'_>) -> bool {
        let Some(matcher) = &hook.matcher else { return true };
        match self {
            Self::BeforeTool(call) | Self::AfterTool(call, _) | Self::Permission(call, _) => {
                matcher.matches_call(call.tool, call.accesses, around.ground)
            }
            Self::Compaction { keep } => matcher.matches_name(trigger(*keep)),
            Self::TurnEnd { .. } => matcher.matches_name(around.agent),
            Self::Prompt(_) => true,
        }
    }

    /// The whole input of a hook.
    pub(super) fn told(&self, hook: &Hook, around: &HookSurroundings<'_>) -> String {
        let root = around.ground.root;
        let mut told = json!({
            "session_id": around.session_id,
            "cwd": root,
            "hook_event_name": hook.on.name,
            "permission_mode": permission_mode(around),
        });
        let mut say = |key: &str, value: Value| told[key] = value;
        if let Some(call) = self.call() {
            let (name, input) = match hook.on.wording {
                Wording::Own => (call.tool, call.input.clone()),
                Wording::ClaudeCode => (claude_name(call.tool), claude_input(&call, root)),
            };
            say("tool_name", name.into());
            say("tool_input", cut(input));
            say("tool_use_id", json!(call.call_id));
        }
        match self {
            Self::Prompt(text) => say("prompt", (*text).into()),
            Self::BeforeTool(_) => {}
            Self::AfterTool(call, outcome) => {
                let (output, succeeded) = output(outcome);
                match hook.on.wording {
                    Wording::Own => {
                        say("tool_response", cut(output));
                        say("succeeded", succeeded.into());
                    }
                    Wording::ClaudeCode => {
                        say("tool_response", claude_response(call, cut(output), outcome, root));
                    }
                }
            }
            Self::Permission(call, why) => {
                let tool = match hook.on.wording {
                    Wording::Own => call.tool,
                    Wording::ClaudeCode => claude_name(call.tool),
                };
                say("message", format!("attache needs your permission to use {tool}: {why}").into());
                say("notification_type", "permission_prompt".into());
            }
            Self::TurnEnd { continued, said } => {
                say("stop_hook_active", (*continued > 0).into());
                say("last_assistant_message", cut((*said).into()));
                if hook.on.event == HookEvent::SubagentEnd {
                    say("agent_type", around.agent.into());
                }
            }
            Self::Compaction { keep } => {
                say("trigger", trigger(*keep).into());
                say("custom_instructions", keep.unwrap_or_default().into());
            }
        }
        told.to_string()
    }
}

fn trigger(keep: Option<&str>) -> &'static str {
    if keep.is_some() { "manual" } else { "auto" }
}

/// The approval level in the words of Claude Code.
fn permission_mode(around: &HookSurroundings<'_>) -> &'static str {
    match (around.agent, around.approval) {
        ("plan", _) => "plan",
        (_, Approval::Ask) => "default",
        (_, Approval::Edits) => "acceptEdits",
        (_, Approval::All) => "bypassPermissions",
    }
}

/// Claude Code's name for a tool that does the same; a tool without one keeps its name.
pub(super) fn claude_name(tool: &str) -> &str {
    match tool {
        "bash" => "Bash",
        "read" => "Read",
        "write" => "Write",
        "edit" => "Edit",
        "glob" => "Glob",
        "grep" => "Grep",
        "task" => "Task",
        "todo" => "TodoWrite",
        "web_fetch" => "WebFetch",
        "web_search" => "WebSearch",
        "skill" => "Skill",
        "question" => "AskUserQuestion",
        "plan_exit" => "ExitPlanMode",
        other => other,
    }
}

/// The same arguments, plus copies under the names that Claude Code uses.
fn claude_input(call: &MatterOfCall<'_>, root: &Path) -> Value {
    let mut input = call.input.clone();
    let Value::Object(fields) = &mut input else { return input };
    if let Some(path) = file_path(call, root) {
        fields.insert("file_path".into(), path);
    }
    if call.tool == "bash" {
        for (ours, theirs) in [("timeout_ms", "timeout"), ("background", "run_in_background")] {
            if let Some(value) = fields.get(ours).cloned() {
                fields.insert(theirs.into(), value);
            }
        }
    }
    input
}

/// The file that a call is about, according to its understood arguments.
fn file_path(call: &MatterOfCall<'_>, root: &Path) -> Option<Value> {
    if !["read", "write", "edit", "view_image"].contains(&call.tool) {
        return None;
    }
    let understood = call.accesses.iter().find_map(|access| match access {
        Access::ReadPath(path) | Access::WritePath(path) => Some(path.clone()),
        Access::Command(_) | Access::Network { .. } => None,
    });
    let said = || Some(root.join(call.input.get("path")?.as_str()?));
    understood.or_else(said).map(|path| json!(path))
}

fn claude_response(call: &MatterOfCall<'_>, output: Value, outcome: &ToolOutcome, root: &Path) -> Value {
    let succeeded = !matches!(outcome, ToolOutcome::Error { .. });
    let mut response = Map::from_iter([("success".to_owned(), succeeded.into())]);
    if let Some(path) = file_path(call, root) {
        response.insert("filePath".into(), path);
    }
    if call.tool == "bash" {
        response.insert("stdout".into(), output.clone());
        response.insert("stderr".into(), "".into());
    }
    response.insert(if succeeded { "output" } else { "error" }.into(), output);
    Value::Object(response)
}

/// What the model gets from the call, and whether the call succeeded.
fn output(outcome: &ToolOutcome) -> (Value, bool) {
    match outcome {
        ToolOutcome::Output { data, .. } => (data.clone(), true),
        ToolOutcome::Picture { found, .. } => (json!({ "path": found.path, "mime": found.mime }), true),
        ToolOutcome::Error { text, .. } => (text.clone().into(), false),
    }
}

/// Cuts each text of a value to a size.
fn cut(value: Value) -> Value {
    match value {
        Value::String(mut text) if text.len() > HOOK_INPUT_BYTES => {
            text.truncate(text.floor_char_boundary(HOOK_INPUT_BYTES));
            text.push_str("\n[cut by attache]");
            Value::String(text)
        }
        Value::Array(items) => items.into_iter().map(cut).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, cut(value))).collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
