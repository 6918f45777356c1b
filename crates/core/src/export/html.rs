//! HTML: one page that is safe to give to anyone. A browser runs and fetches nothing for it. It escapes all
//! foreign content: text stays text, and only an address of the web becomes a link.

use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::shown_parts::{changed, title};
use crate::calendar::{self, TimeZone};
use crate::data_name::DataName;
use crate::hooks;
use crate::legible::visible_block;
use crate::notice;
use crate::part::{Part, Role, ToolPart, ToolState};
use crate::ports::store::{MessageRow, SessionRow};
use crate::ports::tool::{Presentation, Shown};

/// Readable on a phone, at night and on paper.
const STYLE: &str = include_str!("html/style.css");

/// Allows only this one style and the pictures in the page itself: a browser refuses everything else, even if
/// the escaping has a gap.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
});

pub(super) fn begin(out: &mut dyn Write, row: &SessionRow) -> io::Result<()> {
    let title = escaped(row.metadata.title().unwrap_or("Untitled session"));
    let model = row.model.as_ref().map(ToString::to_string).unwrap_or_else(|| "none".into());
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>\n",
        *POLICY
    )?;
    let facts = [
        ("Session", row.id.to_string()),
        ("Workspace", row.workspace_root.to_string_lossy().into_owned()),
        ("Model", model),
        ("Made", calendar::date(&calendar::local(row.created_at, TimeZone::UTC))),
    ];
    for (name, value) in facts {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value))?;
    }
    writeln!(out, "</dl>\n</header>\n<main>")
}

pub(super) fn message(out: &mut dyn Write, message: &MessageRow) -> io::Result<()> {
    let (class, speaker) = match message.role {
        Role::User => ("user", "User"),
        Role::Assistant => ("assistant", "Assistant"),
        Role::System => ("system", "System"),
    };
    let model = message.metadata.model().map(|model| format!(" <small>{}</small>", escaped(model)));
    let model = model.unwrap_or_default();
    writeln!(out, "<article class=\"{class}\">\n<h2>{speaker}{model}</h2>")
}

pub(super) fn close_message(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</article>")
}

pub(super) fn end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</main>\n</body>\n</html>")
}

pub(super) fn part(out: &mut dyn Write, part: &Part) -> io::Result<()> {
    match part {
        Part::StepStart => Ok(()),
        Part::Text { text, .. } => prose(out, text),
        Part::Reasoning { text, .. } if text.trim().is_empty() => Ok(()),
        Part::Reasoning { text, .. } => {
            writeln!(out, "<details class=\"thought\"><summary>Thought</summary>")?;
            prose(out, text)?;
            writeln!(out, "</details>")
        }
        Part::Tool(tool) => call(out, tool),
        Part::SourceUrl { url, title, .. } => {
            writeln!(out, "<p class=\"note\">Source: {}</p>", link(url, title.as_deref().unwrap_or(url)))
        }
        Part::SourceDocument { title, media_type, .. } => {
            writeln!(out, "<p class=\"note\">Source: {} ({})</p>", escaped(title), escaped(media_type))
        }
        Part::File { media_type, filename, url, .. } => {
            file(out, url, media_type, filename.as_deref().unwrap_or("file"))
        }
        Part::Data { name, data, .. } => data_part(out, name, data),
    }
}

fn file(out: &mut dyn Write, url: &str, media_type: &str, name: &str) -> io::Result<()> {
    match picture(url) {
        Some(source) => writeln!(out, "<p><img src=\"{source}\" alt=\"{}\"></p>", escaped(name)),
        None => {
            writeln!(out, "<p class=\"note\">Attachment: {} ({})</p>", escaped(name), escaped(media_type))
        }
    }
}

/// A data URL, if it holds a picture of a kind that can't run code, in base64 and nothing else.
fn picture(url: &str) -> Option<&str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_picture = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&kind);
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    (is_picture && data.bytes().all(is_base64)).then_some(url)
}

fn call(out: &mut dyn Write, tool: &ToolPart) -> io::Result<()> {
    let shown = Presentation::of(tool);
    let class = match tool.state {
        ToolState::OutputAvailable if tool.is_settled() => "done",
        ToolState::OutputError | ToolState::OutputDenied => "failed",
        ToolState::InputStreaming
        | ToolState::InputAvailable
        | ToolState::OutputAvailable
        | ToolState::ApprovalRequested
        | ToolState::ApprovalResponded => "open",
    };
    let (title, state) = (escaped(title(tool, &shown)), tool.state_in_words());
    let name = escaped(&tool.tool_name);
    writeln!(
        out,
        "<details class=\"call {class}\"><summary><code>{name}</code> {title} <small>{state}</small></summary>"
    )?;
    if let Some(input) = &tool.input {
        let text = serde_json::to_string_pretty(input).unwrap_or_default();
        fixed(out, "input", &text)?;
    }
    for block in &shown.content {
        match block {
            Shown::Text { text } => prose(out, text)?,
            Shown::Diff { path, old_text, new_text } => {
                diff(out, &path.to_string_lossy(), old_text.as_deref().unwrap_or_default(), new_text)?;
            }
            Shown::Terminal { printed: Some(printed), .. } => prose(out, printed)?,
            Shown::Terminal { printed: None, .. } => {}
            Shown::Image { mime, data } => file(out, &format!("data:{mime};base64,{data}"), mime, "picture")?,
            Shown::Link { path, mime, .. } => file(out, "", mime, &path.to_string_lossy())?,
        }
    }
    if let Some(error) = &tool.error_text {
        fixed(out, "error", error)?;
    }
    if let Some(decision) = &shown.decision {
        writeln!(out, "<p class=\"note\">{}</p>", escaped(&decision.in_words()))?;
    }
    writeln!(out, "</details>")
}

fn diff(out: &mut dyn Write, path: &str, old: &str, new: &str) -> io::Result<()> {
    write!(out, "<figure><figcaption>{}</figcaption><pre class=\"diff\">", escaped(path))?;
    for line in changed(old, new) {
        let line_text = escaped(&line);
        match line.as_bytes().first() {
            Some(b'+') => writeln!(out, "<ins>{line_text}</ins>")?,
            Some(b'-') => writeln!(out, "<del>{line_text}</del>")?,
            Some(_) | None => writeln!(out, "{line_text}")?,
        }
    }
    writeln!(out, "</pre></figure>")
}

fn data_part(out: &mut dyn Write, name: &str, data: &Value) -> io::Result<()> {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    match DataName::of(name) {
        Some(DataName::Plan) => {
            writeln!(out, "<ul class=\"plan\">")?;
            for entry in data.get("entries").and_then(Value::as_array).into_iter().flatten() {
                let is_done = entry.get("status").and_then(Value::as_str) == Some("completed");
                let content = entry.get("content").and_then(Value::as_str).unwrap_or_default();
                writeln!(out, "<li>{} {}</li>", if is_done { "☑" } else { "☐" }, escaped(content))?;
            }
            writeln!(out, "</ul>")
        }
        Some(DataName::Context) => {
            writeln!(out, "<details><summary>Context: {}</summary>", escaped(field("uri")))?;
            fixed(out, "context", field("text"))?;
            writeln!(out, "</details>")
        }
        Some(DataName::FileRef) => {
            let uri = field("uri");
            let name = data.get("name").and_then(Value::as_str).unwrap_or(uri);
            writeln!(out, "<p class=\"note\">File: {}</p>", link(uri, name))
        }
        Some(DataName::Command) => prose(out, field("text")),
        Some(DataName::Hook) => writeln!(out, "<p class=\"notice\">{}</p>", escaped(&hooks::line(data))),
        Some(DataName::Notice) => writeln!(out, "<p class=\"notice\">{}</p>", escaped(&notice::line(data))),
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

/// Text as it was written; what is between fences keeps its columns.
fn prose(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let mut paragraph: Vec<&str> = Vec::new();
    let mut code: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        let fence = line.trim_start();
        let marks = &fence[..fence.len() - fence.trim_start_matches('`').len()];
        match &mut code {
            Some((opened, lines)) if marks.len() >= opened.len() && fence.len() == marks.len() => {
                fixed(out, "code", &lines.join("\n"))?;
                code = None;
            }
            Some((_, lines)) => lines.push(line),
            None if marks.len() >= 3 => {
                told(out, &paragraph)?;
                paragraph.clear();
                code = Some((marks, Vec::new()));
            }
            None => paragraph.push(line),
        }
    }
    told(out, &paragraph)?;
    match code {
        Some((_, lines)) => fixed(out, "code", &lines.join("\n")),
        None => Ok(()),
    }
}

fn told(out: &mut dyn Write, lines: &[&str]) -> io::Result<()> {
    let text = lines.join("\n");
    match text.trim_matches('\n') {
        "" => Ok(()),
        text => writeln!(out, "<div class=\"text\">{}</div>", escaped(text)),
    }
}

fn fixed(out: &mut dyn Write, class: &str, text: &str) -> io::Result<()> {
    writeln!(out, "<pre class=\"{class}\">{}</pre>", escaped(text))
}

/// An address of the web becomes a link; any other is shown as text.
fn link(url: &str, name: &str) -> String {
    let is_of_the_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme))
    });
    let is_plain = !url.chars().any(|character| character.is_control() || character.is_whitespace());
    match is_of_the_web && is_plain {
        true => {
            format!("<a href=\"{}\" rel=\"noopener noreferrer\">{}</a>", escaped(url), escaped(name))
        }
        false if name == url => format!("<code>{}</code>", escaped(url)),
        false => format!("{} <code>{}</code>", escaped(name), escaped(url)),
    }
}

/// For text and for attributes in double quotes. Invisible characters are written out: what a page says must be
/// what it shows.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 8);
    for character in visible_block(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '`' => safe.push_str("&#96;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests;
