//! Reads how a hook ended: its exit code, its standard error, and the fields of the JSON that it may have
//! printed. Pure.

use serde_json::Value;

use super::HookEvent;
use crate::limits::HOOK_WORD_BYTES;
use crate::ports::hooks::HookEnd;

/// The reply of one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HookReply {
    /// The hook objects, for this reason.
    pub(super) block: Option<String>,
    pub(super) decision: Option<HookDecision>,
    /// A text for the model.
    pub(super) context: Option<String>,
    /// The turn has to end, for this reason.
    pub(super) stop: Option<String>,
    /// A text for people.
    pub(super) message: Option<String>,
}

/// What a hook that does not object decides about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookDecision {
    /// No person needs to be asked.
    Allow,
    /// A person has to be asked.
    Ask,
}

/// The exit code that means an objection.
const BLOCKS: i32 = 2;

impl HookReply {
    /// `Err` says how the hook failed.
    pub(super) fn of(event: HookEvent, end: &HookEnd) -> Result<Self, String> {
        match end {
            HookEnd::Exited { code: 0, output, .. } => Self::printed(event, output),
            HookEnd::Exited { code: BLOCKS, errors, output } => {
                let why = [errors, output].into_iter().map(|text| word(text)).find(|text| !text.is_empty());
                let why = why.unwrap_or_else(|| "it gave no reason".to_owned());
                Ok(Self { block: Some(why), ..Self::default() })
            }
            HookEnd::Exited { code, errors, output } => {
                let said = [errors, output].into_iter().map(|text| word(text)).find(|text| !text.is_empty());
                let said = said.map(|said| format!(": {said}")).unwrap_or_default();
                Err(format!("it ended with exit code {code}{said}"))
            }
            HookEnd::TimedOut(time) => {
                Err(format!("it took longer than {} s and was killed", time.as_secs()))
            }
            HookEnd::Failed(why) => Err(why.clone()),
            HookEnd::Cancelled => Ok(Self::default()),
        }
    }

    fn printed(event: HookEvent, output: &str) -> Result<Self, String> {
        if !output.trim_start().starts_with('{') {
            // Text that a hook prints about a prompt is for the model; at other events attache ignores it.
            let context = (event == HookEvent::Prompt).then(|| word(output)).filter(|text| !text.is_empty());
            return Ok(Self { context, ..Self::default() });
        }
        let fields: Value = serde_json::from_str(output.trim())
            .map_err(|error| format!("its output is not valid JSON: {error}"))?;
        Ok(Self::of_fields(&fields))
    }

    fn of_fields(fields: &Value) -> Self {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).map(word).filter(|text| !text.is_empty())
        };
        let own = fields.get("hookSpecificOutput").unwrap_or(&Value::Null);
        let asked = own.get("decision").unwrap_or(&Value::Null);
        let decisions = [
            fields.get("decision").and_then(Value::as_str),
            own.get("permissionDecision").and_then(Value::as_str),
            asked.get("behavior").and_then(Value::as_str),
        ];
        let said = |words: &[&str]| decisions.into_iter().flatten().any(|decision| words.contains(&decision));
        let reason = || {
            text(own, "permissionDecisionReason")
                .or_else(|| text(asked, "message"))
                .or_else(|| text(fields, "reason"))
                .unwrap_or_else(|| "it gave no reason".to_owned())
        };
        // A hook that wants another call instead of this one objects to this one.
        let rewrites = own.get("updatedInput").or_else(|| asked.get("updatedInput")).is_some();
        let block = match (said(&["block", "deny"]), rewrites) {
            (true, _) => Some(reason()),
            (false, true) => Some(
                "it wants the call with other arguments (`updatedInput`), which attache does not support"
                    .into(),
            ),
            (false, false) => None,
        };
        let decision = match (said(&["ask", "defer"]), said(&["allow", "approve"])) {
            (true, _) => Some(HookDecision::Ask),
            (false, true) => Some(HookDecision::Allow),
            (false, false) => None,
        };
        let stops = fields.get("continue").and_then(Value::as_bool) == Some(false);
        let stop = stops
            .then(|| text(fields, "stopReason").or_else(|| text(fields, "reason")).unwrap_or_else(reason));
        Self {
            block,
            decision,
            context: text(own, "additionalContext").or_else(|| text(fields, "additionalContext")),
            stop,
            message: text(fields, "systemMessage"),
        }
    }
}

/// Cuts a text to the size that is passed on.
fn word(text: &str) -> String {
    let text = text.trim();
    match text.len() > HOOK_WORD_BYTES {
        false => text.to_owned(),
        true => format!("{} [cut]", &text[..text.floor_char_boundary(HOOK_WORD_BYTES)]),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn exited(code: i32, output: &str, errors: &str) -> HookEnd {
        HookEnd::Exited { code, output: output.into(), errors: errors.into() }
    }

    fn reply(event: HookEvent, output: &str) -> HookReply {
        HookReply::of(event, &exited(0, output, "")).unwrap()
    }

    #[test]
    fn exit_codes_pass_block_or_fail() {
        let of = |end: HookEnd| HookReply::of(HookEvent::BeforeTool, &end);
        assert_eq!(of(exited(0, "noise", "more")), Ok(HookReply::default()));
        assert_eq!(of(exited(2, "", " no \n")).unwrap().block.as_deref(), Some("no"));
        assert_eq!(of(exited(2, "why", "")).unwrap().block.as_deref(), Some("why"));
        assert_eq!(of(exited(2, "", "")).unwrap().block.as_deref(), Some("it gave no reason"));
        assert_eq!(of(exited(1, "", "oh")), Err("it ended with exit code 1: oh".to_owned()));
        assert!(of(HookEnd::TimedOut(Duration::from_secs(3))).unwrap_err().contains("3 s"));
        assert_eq!(of(HookEnd::Cancelled), Ok(HookReply::default()));
    }

    #[test]
    fn the_fields_of_claude_code_are_understood() {
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",
                       "permissionDecisionReason":"not here"}}"#;
        assert_eq!(reply(HookEvent::BeforeTool, deny).block.as_deref(), Some("not here"));
        let ask = r#"{"hookSpecificOutput":{"permissionDecision":"ask"}}"#;
        assert_eq!(reply(HookEvent::BeforeTool, ask).decision, Some(HookDecision::Ask));
        let allow = r#"{"decision":"approve"}"#;
        assert_eq!(reply(HookEvent::BeforeTool, allow).decision, Some(HookDecision::Allow));
        let behavior = r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"m"}}}"#;
        assert_eq!(reply(HookEvent::Permission, behavior).block.as_deref(), Some("m"));
        let block = r#"{"decision":"block","reason":"again","systemMessage":"seen"}"#;
        let said = reply(HookEvent::TurnEnd, block);
        assert_eq!((said.block.as_deref(), said.message.as_deref()), (Some("again"), Some("seen")));
        let stop = r#"{"continue":false,"stopReason":"enough"}"#;
        assert_eq!(reply(HookEvent::AfterTool, stop).stop.as_deref(), Some("enough"));
        let context = r#"{"hookSpecificOutput":{"additionalContext":"c"}}"#;
        assert_eq!(reply(HookEvent::AfterTool, context).context.as_deref(), Some("c"));
        let other =
            r#"{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}"#;
        assert!(reply(HookEvent::BeforeTool, other).block.unwrap().contains("updatedInput"));
    }

    #[test]
    fn plain_words_are_context_of_a_prompt_only() {
        assert_eq!(reply(HookEvent::Prompt, " be brief\n").context.as_deref(), Some("be brief"));
        assert_eq!(reply(HookEvent::TurnEnd, "be brief"), HookReply::default());
        assert!(HookReply::of(HookEvent::Prompt, &exited(0, "{broken", "")).is_err());
    }
}
