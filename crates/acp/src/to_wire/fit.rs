//! Makes an update fit that is too long for a line: splits it, or cuts it where splitting is not possible and
//! says so in `_meta.attache.cut`. Keeps what would become something else if cut (images, ids, paths).

use attache_core::metadata::OWN_KEY;
use attache_rpc::encode_notification;
use serde_json::{Map, Value, json};

use super::line::{UPDATE_METHOD, UpdateNotification};
use crate::limits::{ENVELOPE_BYTES, LINE_BYTES};

/// The kind of a field's text, which decides when and how we may cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Arguments and results as data: cut first, because the client shows something else.
    Raw,
    /// Markdown.
    Prose,
    /// Text outside of a stream: titles, descriptions, attached texts.
    Plain,
    /// One side of a diff: cut last.
    Diff,
}

pub(super) fn write(session_id: &str, mut update: Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    if let Some(raw) = raw_apart(&mut update) {
        write_cut(session_id, raw, out)?;
    }
    write_cut(session_id, update, out)
}

fn write_cut(session_id: &str, mut update: Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    cut(&mut update, &[FieldKind::Raw, FieldKind::Prose, FieldKind::Plain, FieldKind::Diff]);
    encode_notification(out, UPDATE_METHOD, &UpdateNotification { session_id, update: &update })
}

/// Takes the raw data out, to send it first on its own line: a client merges the fields of all updates of one
/// call.
fn raw_apart(update: &mut Value) -> Option<Value> {
    let fields = update.as_object_mut()?;
    if fields.get("sessionUpdate")? != "tool_call_update" {
        return None;
    }
    let mut apart = Map::new();
    for name in ["rawInput", "rawOutput"] {
        if let Some(value) = fields.remove(name) {
            apart.insert(name.to_owned(), value);
        }
    }
    if apart.is_empty() {
        return None;
    }
    for name in ["sessionUpdate", "toolCallId"] {
        apart.insert(name.to_owned(), fields.get(name)?.clone());
    }
    Some(Value::Object(apart))
}

/// Cuts texts of these kinds, then lists, until the object fits a line with its frame. Marks the object if it
/// cut something.
pub(super) fn cut(object: &mut Value, matters: &[FieldKind]) {
    let bytes = encoded_bytes(object);
    let room = LINE_BYTES - ENVELOPE_BYTES;
    if bytes <= room {
        return;
    }
    let mut cut_fields: Vec<&'static str> = Vec::new();
    for (limit, wanted) in STAGES {
        let wanted: Vec<FieldKind> =
            matters.iter().filter(|matter| wanted.contains(matter)).copied().collect();
        shorten_texts(object, None, &wanted, *limit, &mut cut_fields);
        if encoded_bytes(object) <= room {
            break;
        }
    }
    for length in [64, 16, 4, 1, 0] {
        if encoded_bytes(object) <= room {
            break;
        }
        shorten_lists(object, matters, length, &mut cut_fields);
    }
    if !cut_fields.is_empty() {
        mark(object, bytes, &cut_fields);
    }
}

/// From gentle to rough: raw data first, diffs only when nothing else is left to cut.
const STAGES: &[(usize, &[FieldKind])] = &[
    (16 * 1024, &[FieldKind::Raw]),
    (4 * 1024, &[FieldKind::Raw]),
    (1024, &[FieldKind::Raw]),
    (32 * 1024, &[FieldKind::Prose, FieldKind::Plain]),
    (16 * 1024, &[FieldKind::Prose, FieldKind::Plain]),
    (4 * 1024, &[FieldKind::Prose, FieldKind::Plain]),
    (16 * 1024, &[FieldKind::Diff]),
    (4 * 1024, &[FieldKind::Diff]),
    (1024, &[FieldKind::Raw, FieldKind::Prose, FieldKind::Plain, FieldKind::Diff]),
    (256, &[FieldKind::Raw, FieldKind::Prose, FieldKind::Plain, FieldKind::Diff]),
];

/// The kind of an object whose fields we cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutObject {
    /// A file with its address, whose text is not prose.
    Resource,
    Other,
}

/// The kind of this key's value, and the name to report if we cut it. `within` is set inside raw data.
fn matter(
    key: &str,
    object: CutObject,
    within: Option<(&'static str, FieldKind)>,
) -> Option<(&'static str, FieldKind)> {
    if within.is_some() {
        return within;
    }
    match key {
        "rawInput" => Some(("rawInput", FieldKind::Raw)),
        "rawOutput" => Some(("rawOutput", FieldKind::Raw)),
        "text" if object == CutObject::Resource => Some(("text", FieldKind::Plain)),
        "text" => Some(("text", FieldKind::Prose)),
        "content" => Some(("content", FieldKind::Plain)),
        "title" => Some(("title", FieldKind::Plain)),
        "description" => Some(("description", FieldKind::Plain)),
        "error" => Some(("error", FieldKind::Plain)),
        "oldText" => Some(("oldText", FieldKind::Diff)),
        "newText" => Some(("newText", FieldKind::Diff)),
        _ => None,
    }
}

fn shorten_texts(
    value: &mut Value,
    within: Option<(&'static str, FieldKind)>,
    wanted: &[FieldKind],
    limit: usize,
    cut_fields: &mut Vec<&'static str>,
) {
    match value {
        Value::String(text) => {
            let Some((name, matter)) = within.filter(|(_, matter)| wanted.contains(matter)) else { return };
            if text.len() > limit {
                *text = match matter {
                    FieldKind::Prose => shortened_markdown(text, limit),
                    FieldKind::Raw | FieldKind::Plain | FieldKind::Diff => shortened(text, limit),
                };
                note(cut_fields, name);
            }
        }
        Value::Array(items) => {
            for item in items {
                shorten_texts(item, within, wanted, limit, cut_fields);
            }
        }
        Value::Object(fields) => {
            let object = match fields.contains_key("uri") {
                true => CutObject::Resource,
                false => CutObject::Other,
            };
            // Everything inside raw data is raw; elsewhere each object starts fresh.
            let within = within.filter(|(_, matter)| *matter == FieldKind::Raw);
            for (key, item) in fields.iter_mut().filter(|(key, _)| *key != "_meta") {
                shorten_texts(item, matter(key, object, within), wanted, limit, cut_fields);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Cutting texts was not enough: keeps fewer items, and in the end no raw data at all.
fn shorten_lists(
    object: &mut Value,
    matters: &[FieldKind],
    length: usize,
    cut_fields: &mut Vec<&'static str>,
) {
    let Some(fields) = object.as_object_mut() else { return };
    if matters.contains(&FieldKind::Raw) {
        for name in ["rawInput", "rawOutput"] {
            let Some(raw) = fields.get_mut(name) else { continue };
            if length == 0 {
                fields.remove(name);
            } else {
                shorten_raw(raw, length);
            }
            note(cut_fields, name);
        }
    }
    // If we may not cut prose, we may not drop a block of it either.
    let lists: &[&'static str] = match matters.contains(&FieldKind::Prose) {
        true => &["locations", "entries", "content"],
        false => &["locations"],
    };
    for name in lists.iter().copied() {
        if let Some(list) =
            fields.get_mut(name).and_then(Value::as_array_mut).filter(|list| list.len() > length)
        {
            list.truncate(length);
            note(cut_fields, name);
        }
    }
}

fn shorten_raw(value: &mut Value, length: usize) {
    match value {
        Value::Array(items) => {
            items.truncate(length);
            items.iter_mut().for_each(|item| shorten_raw(item, length));
        }
        Value::Object(fields) => {
            let mut kept = 0;
            fields.retain(|_, _| {
                kept += 1;
                kept <= length
            });
            fields.values_mut().for_each(|item| shorten_raw(item, length));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn note(cut_fields: &mut Vec<&'static str>, name: &'static str) {
    if !cut_fields.contains(&name) {
        cut_fields.push(name);
    }
}

fn mark(object: &mut Value, bytes: usize, cut_fields: &[&'static str]) {
    let Some(fields) = object.as_object_mut() else { return };
    let meta = fields.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    let Some(meta) = meta.as_object_mut() else { return };
    let ours = meta.entry(OWN_KEY).or_insert_with(|| Value::Object(Map::new()));
    if let Some(ours) = ours.as_object_mut() {
        ours.insert("cut".to_owned(), json!({ "bytes": bytes, "fields": cut_fields }));
    }
}

/// Head and tail of a text with a note between them; at most `limit` bytes plus the note.
fn shortened(text: &str, limit: usize) -> String {
    let (head, tail) = ends(text, limit);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes not shown …\n{tail}")
}

/// The same for Markdown: closes a code fence that is open at the end of the head, and opens the one that is
/// open at the start of the tail, unless it is the same fence.
fn shortened_markdown(text: &str, limit: usize) -> String {
    let (head, tail) = ends(text, limit);
    let tail_start = text.len() - tail.len();
    let before = open_fence(head);
    let after = open_fence(&text[..tail_start]);
    let left_out = tail_start - head.len();
    let same = before.is_some() && before == after;
    let close = before.filter(|_| !same).map(|(_, fence)| format!("\n{fence}")).unwrap_or_default();
    let open = after.filter(|_| !same).map(|(_, fence)| format!("{fence}\n")).unwrap_or_default();
    format!("{head}{close}\n… {left_out} bytes not shown …\n{open}{tail}")
}

fn ends(text: &str, limit: usize) -> (&str, &str) {
    let head = text.floor_char_boundary(limit * 2 / 3);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(limit / 3)).max(head);
    (&text[..head], &text[tail..])
}

/// Where the fence that is still open at the end of the text begins, and its backticks.
fn open_fence(text: &str) -> Option<(usize, &str)> {
    let mut open: Option<(usize, &str)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_start_matches(' ').trim_end();
        let ticks = content.len() - content.trim_start_matches('`').len();
        match open {
            Some((_, fence)) if ticks >= fence.len() && content.len() == ticks => open = None,
            None if ticks >= 3 && !content[ticks..].contains('`') => open = Some((start, &content[..ticks])),
            Some(_) | None => {}
        }
        start += line.len();
    }
    open
}

/// The size of a value as JSON, without storing the JSON.
fn encoded_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Values always encode; if one did not, we would treat it as too long and cut it.
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_fence_stays_closed() {
        let text = format!("Read it:\n```\n{}```\ndone", "line\n".repeat(1000));
        let cut = shortened_markdown(&text, 300);
        assert!(cut.len() < 400);
        assert_eq!(open_fence(&cut), None, "{cut}");
        assert!(cut.starts_with("Read it:\n```\nline") && cut.ends_with("```\ndone"));
    }

    #[test]
    fn two_different_fences_are_closed_and_opened_at_the_cut() {
        let text = format!("```\n{}```\nand\n````\n{}````", "a\n".repeat(500), "b\n".repeat(500));
        let cut = shortened_markdown(&text, 300);
        assert_eq!(open_fence(&cut), None, "{cut}");
        assert!(cut.contains("\n```\n… ") && cut.contains(" …\n````\n"), "{cut}");
    }

    #[test]
    fn a_cut_keeps_characters_whole_and_counts_what_is_gone() {
        let text = "é".repeat(1000);
        let cut = shortened(&text, 100);
        let kept = cut.matches('é').count() * 2;
        assert!(cut.contains(&format!("… {} bytes not shown …", 2000 - kept)), "{cut}");
    }
}
