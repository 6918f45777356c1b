//! Answers questions of a run without a person: always no.

use agent_client_protocol_schema::v1::{
    ContentBlock, Meta, PermissionOptionKind, RequestPermissionRequest, ToolCallContent, ToolKind,
};
use serde::de::DeserializeOwned;

use super::denials::{AskedFor, DeniedCall};
use crate::limits::WHY_CHARS;
use attache_acp_client::PermissionQuestion;

/// Rejects this one call; where no option does, the question is cancelled.
pub(super) fn deny(question: PermissionQuestion) -> DeniedCall {
    let denied = denied_call(&question.request);
    let rejects =
        question.request.options.iter().find(|option| option.kind == PermissionOptionKind::RejectOnce);
    match rejects.map(|option| option.option_id.clone()) {
        Some(option) => question.choose(&option),
        None => question.cancel(),
    }
    denied
}

fn denied_call(request: &RequestPermissionRequest) -> DeniedCall {
    let fields = &request.tool_call.fields;
    let tool = fields.name.clone().unwrap_or_else(|| kind(fields.kind.unwrap_or_default()).to_owned());
    let title = fields.title.clone().unwrap_or_else(|| tool.clone());
    let asked: AskedFor = own_marks(request.tool_call.meta.as_ref());
    let why = why(fields.content.as_deref().unwrap_or_default());
    DeniedCall { tool, title, why, cause: asked.cause(), rules: asked.rules }
}

/// The key in `_meta` under which attache's agent says what ACP has no field for.
pub(super) const OWN_KEY: &str = "attache";

/// Reads `_meta.attache`; other agents have none.
pub(super) fn own_marks<T: DeserializeOwned + Default>(meta: Option<&Meta>) -> T {
    let ours = meta.and_then(|meta| meta.get(OWN_KEY));
    ours.and_then(|ours| T::deserialize(ours).ok()).unwrap_or_default()
}

/// attache's reason, in the last text of the question; other agents give none.
fn why(content: &[ToolCallContent]) -> String {
    const REASON: &str = "Asks because: ";
    let reason = content.iter().rev().find_map(|content| match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => text.text.strip_prefix(REASON),
            _ => None,
        },
        _ => None,
    });
    match reason {
        Some(reason) => reason.chars().take(WHY_CHARS).collect(),
        None => "it needs a permission, and nobody is there to give it".to_owned(),
    }
}

pub(super) fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "other",
    }
}
