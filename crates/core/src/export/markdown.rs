//! Markdown, to read: who said what, and calls with their results in fences that their content can't break.

use std::io::{self, Write};

use serde_json::Value;

use super::shown_parts::{changed, title};
use crate::calendar::{self, TimeZone};
use crate::data_name::DataName;
use crate::hooks;
use crate::notice;
use crate::part::{Part, Role, ToolPart};
use crate::ports::store::{MessageRow, SessionRow};
use crate::ports::tool::{Presentation, Shown};

pub(super) fn begin(out: &mut dyn Write, row: &SessionRow) -> io::Result<()> {
    let title = row.metadata.title().unwrap_or("Untitled session");
    let model = row.model.as_ref().map(ToString::to_string);
    writeln!(out, "# {}\n", title.replace(['\n', '\r'], " "))?;
    writeln!(out, "- session: `{}`", row.id)?;
    writeln!(out, "- workspace: `{}`", row.workspace_root.display())?;
    writeln!(out, "- model: `{}`", model.as_deref().unwrap_or("none"))?;
    writeln!(out, "- made: {}\n", calendar::date(&calendar::local(row.created_at, TimeZone::UTC)))
}

pub(super) fn message(out: &mut dyn Write, message: &MessageRow) -> io::Result<()> {
    let speaker = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "System",
    };
    writeln!(out, "## {speaker}\n")
}

pub(super) fn part(out: &mut dyn Write, part: &Part) -> io::Result<()> {
    match part {
        Part::StepStart => Ok(()),
        Part::Text { text, .. } => writeln!(out, "{text}\n"),
        Part::Reasoning { text, .. } => {
            let quoted: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
            writeln!(out, "{}\n", quoted.join("\n"))
        }
        Part::Tool(tool) => call(out, tool),
        Part::SourceUrl { url, title, .. } => writeln!(out, "[{}]({url})\n", title.as_deref().unwrap_or(url)),
        Part::SourceDocument { title, media_type, .. } => writeln!(out, "Source: {title} ({media_type})\n"),
        Part::File { media_type, filename, .. } => {
            writeln!(out, "Attachment: {} ({media_type})\n", filename.as_deref().unwrap_or("file"))
        }
        Part::Data { name, data, .. } => data_part(out, name, data),
    }
}

fn call(out: &mut dyn Write, tool: &ToolPart) -> io::Result<()> {
    let shown = Presentation::of(tool);
    writeln!(out, "### {} · {}\n", title(tool, &shown), tool.state_in_words())?;
    for block in &shown.content {
        match block {
            Shown::Text { text } => writeln!(out, "{text}\n")?,
            Shown::Diff { path, old_text, new_text } => {
                let lines = changed(old_text.as_deref().unwrap_or_default(), new_text);
                fenced(out, "diff", &format!("{}\n{}", path.display(), lines.join("\n")))?;
            }
            Shown::Terminal { printed: Some(printed), .. } => writeln!(out, "{printed}\n")?,
            Shown::Terminal { terminal_id, printed: None } => writeln!(out, "Terminal `{terminal_id}`\n")?,
            Shown::Image { mime, .. } => writeln!(out, "Image ({mime})\n")?,
            Shown::Link { path, mime, size } => {
                writeln!(out, "Image {} ({mime}, {size} bytes)\n", path.display())?;
            }
        }
    }
    match (&tool.error_text, &tool.approval) {
        (Some(error), _) => fenced(out, "", error),
        (None, Some(approval)) if approval.approved == Some(false) => {
            writeln!(out, "Denied: {}\n", approval.reason.as_deref().unwrap_or("by the user"))
        }
        (None, _) => Ok(()),
    }
}

fn data_part(out: &mut dyn Write, name: &str, data: &Value) -> io::Result<()> {
    match DataName::of(name) {
        Some(DataName::Plan) => {
            for entry in data.get("entries").and_then(Value::as_array).into_iter().flatten() {
                let done = entry.get("status").and_then(Value::as_str) == Some("completed");
                let content = entry.get("content").and_then(Value::as_str).unwrap_or_default();
                writeln!(out, "- [{}] {content}", if done { "x" } else { " " })?;
            }
            writeln!(out)
        }
        Some(DataName::Context) => {
            let uri = data.get("uri").and_then(Value::as_str).unwrap_or_default();
            writeln!(out, "Context: `{uri}`\n")?;
            fenced(out, "", data.get("text").and_then(Value::as_str).unwrap_or_default())
        }
        Some(DataName::Command) => {
            writeln!(out, "{}\n", data.get("text").and_then(Value::as_str).unwrap_or_default())
        }
        Some(DataName::FileRef) => {
            let uri = data.get("uri").and_then(Value::as_str).unwrap_or_default();
            let title = data.get("name").and_then(Value::as_str).unwrap_or(uri);
            writeln!(out, "[{title}]({uri})\n")
        }
        Some(DataName::Hook) => writeln!(out, "> **{}**\n", hooks::line(data).replace(['\n', '\r'], " ")),
        Some(DataName::Notice) => writeln!(out, "> **{}**\n", notice::line(data).replace(['\n', '\r'], " ")),
        // Numbers for programs; the JSON forms have them.
        Some(
            DataName::Approval
            | DataName::AskedCall
            | DataName::Compaction
            | DataName::Environment
            | DataName::Mode
            | DataName::Snapshot
            | DataName::Status
            | DataName::Title
            | DataName::Usage,
        )
        | None => Ok(()),
    }
}

/// A fence longer than any run of backticks inside.
fn fenced(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
