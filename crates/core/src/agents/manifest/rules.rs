//! The rules of a manifest: in the form of `[[permissions]]` in the configuration, but pinned.

use super::unknown_key;
use crate::agents::pinned;
use crate::front_matter::{FrontMatterError, FrontNode, NodeValue};
use crate::nearest::meant;
use crate::watchdog::{Action, ManifestRule, Rule};

const RULE_KEYS: [&str; 3] = ["permission", "pattern", "action"];

pub(super) fn rules(node: &FrontNode) -> Result<Vec<ManifestRule>, FrontMatterError> {
    match &node.value {
        NodeValue::List(items) => items.iter().map(rule).collect(),
        NodeValue::Plain(text) if text.is_empty() => Ok(Vec::new()),
        NodeValue::Plain(_) | NodeValue::Quoted(_) | NodeValue::Map(_) => Err(FrontMatterError::new(
            node.line,
            "`permissions` must be a list, each item with `permission`, `pattern` and `action`",
        )),
    }
}

fn rule(node: &FrontNode) -> Result<ManifestRule, FrontMatterError> {
    let NodeValue::Map(entries) = &node.value else {
        let problem = "a rule has `permission`, `pattern` and `action`";
        return Err(FrontMatterError::new(node.line, problem));
    };
    if let Some((key, node)) = entries.iter().find(|(key, _)| !RULE_KEYS.contains(&key.as_str())) {
        return Err(unknown_key(key, node, &RULE_KEYS));
    }
    let text = |key: &str| -> Result<Option<(&str, usize)>, FrontMatterError> {
        let Some((_, node)) = entries.iter().find(|(known, _)| known == key) else { return Ok(None) };
        let text =
            node.text().ok_or_else(|| FrontMatterError::new(node.line, format!("`{key}` must be a text")))?;
        Ok(Some((text, node.line)))
    };
    let missing = |key: &str| FrontMatterError::new(node.line, format!("`{key}` is missing"));
    let (permission, at) = text("permission")?.ok_or_else(|| missing("permission"))?;
    if !Rule::is_known_permission(permission) {
        let near = meant(permission, Rule::known_permissions());
        let problem = format!("there is no permission `{permission}`{near}");
        return Err(FrontMatterError::new(at, problem));
    }
    let (action, at) = text("action")?.ok_or_else(|| missing("action"))?;
    let action = Action::parse(action).ok_or_else(|| {
        FrontMatterError::new(at, format!("`action` must be allow, ask or deny, not `{action}`"))
    })?;
    let (pattern, at) = text("pattern")?.unwrap_or(("*", node.line));
    let rule = pinned(permission, pattern, action);
    match rule.rule.check_pattern() {
        Ok(()) => Ok(rule),
        Err(problem) => Err(FrontMatterError::new(at, format!("`pattern` {problem}"))),
    }
}
