//! What an ACP agent shows beside a question, told apart: its reason, what the question alone says, and what
//! is of the call.

use agent_client_protocol_schema::v1::{ContentBlock, ToolCallContent};

/// As an attache begins the line with its reason.
const REASON: &str = "Asks because: ";

/// The content of a question.
#[derive(Debug, Default, PartialEq)]
pub(super) struct QuestionContent {
    pub(super) reason: Option<String>,
    /// Without the reason; empty: the question shows what the call does.
    pub(super) shown: Vec<ToolCallContent>,
    /// What stays with the call: words of a question are no content of what runs. `None`: nothing new.
    pub(super) of_call: Option<Vec<ToolCallContent>>,
}

impl QuestionContent {
    pub(super) fn of(content: Option<Vec<ToolCallContent>>) -> Self {
        let mut shown = content.unwrap_or_default();
        let reason = shown.iter().find_map(reason_in);
        shown.retain(|block| reason_in(block).is_none());
        let of_call: Vec<ToolCallContent> =
            shown.iter().filter(|block| words_of(block).is_none()).cloned().collect();
        Self { reason, shown, of_call: (!of_call.is_empty()).then_some(of_call) }
    }
}

fn words_of(block: &ToolCallContent) -> Option<&str> {
    let ToolCallContent::Content(content) = block else { return None };
    match &content.content {
        ContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}

fn reason_in(block: &ToolCallContent) -> Option<String> {
    let reason = words_of(block)?.strip_prefix(REASON)?.trim();
    Some(plain(reason).to_owned())
}

/// Without the marks of code around all of it, which are put around it again where it is shown.
fn plain(line: &str) -> &str {
    let mark = &line[..line.len() - line.trim_start_matches('`').len()];
    let inner = || {
        let inner = line.strip_prefix(mark)?.strip_suffix(mark)?;
        let is_whole = !mark.is_empty() && !inner.is_empty() && !inner.contains(mark);
        is_whole.then(|| inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' ')).unwrap_or(inner))
    };
    inner().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_is_no_content_and_words_are_those_of_the_question() {
        let text = |text: &str| json!({ "type": "content", "content": { "type": "text", "text": text } });
        let diff = json!({ "type": "diff", "path": "/w/a.txt", "oldText": null, "newText": "x" });
        let blocks = json!([diff, text("Really?"), text("Asks because: it changes a file")]);
        let content = QuestionContent::of(Some(serde_json::from_value(blocks).unwrap()));
        assert_eq!(content.reason.as_deref(), Some("it changes a file"));
        assert_eq!(content.shown.len(), 2);
        assert!(matches!(content.of_call.as_deref(), Some([ToolCallContent::Diff(_)])));
        assert_eq!(QuestionContent::of(None), QuestionContent::default());
    }

    #[test]
    fn marks_around_all_of_a_reason_are_taken_off_and_no_others() {
        for (line, inner) in [
            ("it changes a file", "it changes a file"),
            ("`/opt/my_dir is outside`", "/opt/my_dir is outside"),
            ("`` `a` *b* ``", "`a` *b*"),
            ("`a` and `b`", "`a` and `b`"),
            ("", ""),
            ("`", "`"),
        ] {
            assert_eq!(plain(line), inner, "{line:?}");
        }
    }
}
