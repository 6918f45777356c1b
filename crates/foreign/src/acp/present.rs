//! A tool call of an ACP agent as it is stored and shown: the inverse of what `attache-acp` writes. Reads no
//! files and runs nothing.

use std::fmt::Write as _;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Meta, ResourceLink, ToolCallContent, ToolCallLocation, ToolKind,
};
use attache_core::ports::tool::{self as core, Location, Shown};
use serde_json::Value;

use crate::limits::{META_DEPTH, TITLE_CHARS, TOOL_NAME_CHARS};

/// What the terminals that an agent has opened hold now.
pub(super) trait TerminalTexts {
    /// A terminal as part of a call; `None` for one that nobody has opened.
    fn shown(&self, terminal_id: &str) -> Option<Shown>;
}

/// On one line, and no longer than a line.
pub(super) fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(super) fn kind(kind: ToolKind) -> core::ToolKind {
    match kind {
        ToolKind::Read => core::ToolKind::Read,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => core::ToolKind::Edit,
        ToolKind::Search => core::ToolKind::Search,
        ToolKind::Execute => core::ToolKind::Execute,
        ToolKind::Think => core::ToolKind::Think,
        ToolKind::Fetch => core::ToolKind::Fetch,
        ToolKind::SwitchMode => core::ToolKind::SwitchMode,
        _ => core::ToolKind::Other,
    }
}

/// What rules and the store call the tool: its name if the agent says one, in the protocol's field or, as
/// agents did before there was one, somewhere below `_meta`; else the kind of the call.
pub(super) fn tool_name(name: Option<&str>, meta: Option<&Meta>, kind: Option<ToolKind>) -> String {
    let told = name.map(str::to_owned);
    let told = told.or_else(|| meta?.values().find_map(|value| name_within(value, META_DEPTH)));
    let told = told.map(|name| plain_name(&name)).filter(|name| !name.is_empty());
    told.unwrap_or_else(|| kind_name(kind.unwrap_or_default()).to_owned())
}

fn name_within(value: &Value, depth: usize) -> Option<String> {
    let fields = value.as_object()?;
    if let Some(Value::String(name)) = fields.get("toolName").or_else(|| fields.get("tool_name")) {
        return Some(name.clone());
    }
    let depth = depth.checked_sub(1)?;
    fields.values().find_map(|value| name_within(value, depth))
}

/// Names stand in rules: one word, without what rules give a meaning.
fn plain_name(name: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || "_-./".contains(c) { c } else { '_' };
    name.trim().chars().take(TOOL_NAME_CHARS).map(kept).collect()
}

fn kind_name(kind: ToolKind) -> &'static str {
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

pub(super) fn locations(places: &[ToolCallLocation]) -> Vec<Location> {
    places.iter().map(|place| Location { path: place.path.clone(), line: place.line }).collect()
}

/// What is shown below the title.
pub(super) fn content(blocks: &[ToolCallContent], terminals: &dyn TerminalTexts) -> Vec<Shown> {
    let shown = |block: &ToolCallContent| match block {
        ToolCallContent::Content(content) => Some(shown_block(&content.content)),
        ToolCallContent::Diff(diff) => Some(Shown::Diff {
            path: diff.path.clone(),
            old_text: diff.old_text.clone(),
            new_text: diff.new_text.clone(),
        }),
        ToolCallContent::Terminal(terminal) => terminals.shown(&terminal.terminal_id.0),
        _ => None,
    };
    blocks.iter().filter_map(shown).collect()
}

fn shown_block(block: &ContentBlock) -> Shown {
    match block {
        ContentBlock::Text(text) => Shown::Text { text: text.text.clone() },
        ContentBlock::Image(image) => {
            Shown::Image { mime: image.mime_type.clone(), data: image.data.clone() }
        }
        ContentBlock::Audio(audio) => {
            Shown::Text { text: described("audio", &audio.mime_type, audio.data.len()) }
        }
        ContentBlock::ResourceLink(link) => shown_link(link),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                Shown::Text { text: format!("{}\n\n{}", inline_code(&text.uri), fenced(&text.text)) }
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let mime = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
                Shown::Text { text: described(&inline_code(&blob.uri), mime, blob.blob.len()) }
            }
            _ => Shown::Text { text: "(a resource of an unknown kind)".to_owned() },
        },
        _ => Shown::Text { text: "(content of an unknown kind)".to_owned() },
    }
}

fn shown_link(link: &ResourceLink) -> Shown {
    let path = link.uri.strip_prefix("file://").filter(|path| path.starts_with('/') && !path.contains('%'));
    match (path, &link.mime_type, link.size.and_then(|size| u64::try_from(size).ok())) {
        (Some(path), Some(mime), Some(size)) => {
            Shown::Link { path: PathBuf::from(path), mime: mime.clone(), size }
        }
        _ => Shown::Text { text: format!("[{}]({})", link.title.as_ref().unwrap_or(&link.name), link.uri) },
    }
}

fn described(what: &str, mime: &str, base64_bytes: usize) -> String {
    format!("({what}, {mime}, {} bytes)", base64_bytes / 4 * 3)
}

fn inline_code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

/// The words of a call, for its result: what people are shown without the marks of Markdown around it.
pub(super) fn words(blocks: &[ToolCallContent]) -> String {
    let mut words = String::new();
    for block in blocks {
        let ToolCallContent::Content(content) = block else { continue };
        let text = match &content.content {
            ContentBlock::Text(text) => unfenced(&text.text),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => &text.text,
                _ => continue,
            },
            _ => continue,
        };
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(text);
    }
    words
}

/// Agents put errors and output into one fence around all of it.
fn unfenced(text: &str) -> &str {
    let whole = text.trim();
    let inner = || {
        let marks = whole.len() - whole.trim_start_matches('`').len();
        let fence = &whole[..marks];
        let (_, rest) = whole.split_once('\n')?;
        let inner = rest.strip_suffix(fence)?;
        (marks >= 3 && !inner.contains(fence)).then(|| inner.strip_suffix('\n').unwrap_or(inner))
    };
    inner().unwrap_or(text)
}

/// As a block of code that its text can't leave.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut block = String::with_capacity(text.len() + 2 * fence.len() + 2);
    let written = write!(block, "{fence}\n{}\n{fence}", text.trim_end_matches('\n'));
    debug_assert!(written.is_ok(), "writing to a string");
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_called_by_its_name_wherever_the_agent_says_it() {
        let meta = |value: Value| value.as_object().cloned().unwrap();
        let goose =
            meta(json!({ "goose": { "toolCall": { "toolName": "shell", "extensionName": "developer" } } }));
        let claude = meta(json!({ "claudeCode": { "toolName": "Bash" } }));
        assert_eq!(tool_name(None, Some(&goose), Some(ToolKind::Other)), "shell");
        assert_eq!(tool_name(None, Some(&claude), None), "Bash");
        assert_eq!(tool_name(Some("bash"), Some(&goose), None), "bash");
        assert_eq!(tool_name(None, None, Some(ToolKind::Execute)), "execute");
        assert_eq!(tool_name(None, None, None), "other");
        assert_eq!(tool_name(Some("mcp:x y*"), None, None), "mcp_x_y_");
        assert_eq!(tool_name(Some("  "), None, Some(ToolKind::Delete)), "delete");
    }

    #[test]
    fn a_fence_around_all_of_a_text_is_taken_off_and_no_other() {
        for (text, inner) in [
            ("```\nno such file\n```", "no such file"),
            ("````sh\na\n```\nb\n````", "a\n```\nb"),
            ("```\na\n```\nb\n```\nc\n```", "```\na\n```\nb\n```\nc\n```"),
            ("plain", "plain"),
            ("", ""),
            ("```", "```"),
        ] {
            assert_eq!(unfenced(text), inner, "{text:?}");
        }
    }

    #[test]
    fn no_text_leaves_its_fence() {
        for text in ["a", "```", "x ```` y", ""] {
            let block = fenced(text);
            assert_eq!(unfenced(&block), text.trim_end_matches('\n'), "{block:?}");
        }
    }
}
