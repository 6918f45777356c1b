//! A prompt as the Python side gets it: content blocks of ACP, made of the stored parts.

use attache_core::part::Part;
use serde_json::{Map, Value, json};

use crate::convert::piece::{FilePiece, Link, Piece, piece};

/// The blocks of a user's message, in order.
pub(super) fn blocks(parts: &[Part]) -> Vec<Value> {
    parts.iter().filter_map(piece).map(|piece| block(&piece)).collect()
}

fn block(piece: &Piece<'_>) -> Value {
    match piece {
        Piece::Text(text) => json!({ "type": "text", "text": text }),
        Piece::Link(link) => link_block(link),
        Piece::Context(context) => {
            let mut resource = json!({ "uri": context.uri, "text": context.text });
            put(&mut resource, "mimeType", context.mime);
            json!({ "type": "resource", "resource": resource })
        }
        Piece::File(file) => file_block(file),
    }
}

fn link_block(link: &Link<'_>) -> Value {
    let mut block = Map::new();
    block.insert("type".into(), json!("resource_link"));
    block.insert("uri".into(), json!(link.uri));
    block.insert("name".into(), json!(link.name.unwrap_or_default()));
    let mut block = Value::Object(block);
    put(&mut block, "title", link.title);
    put(&mut block, "description", link.description);
    put(&mut block, "mimeType", link.mime);
    if let Some(size) = link.size {
        block["size"] = json!(size);
    }
    block
}

/// An embedded resource has an address of its own; pictures and sounds of a prompt have none.
fn file_block(file: &FilePiece<'_>) -> Value {
    let kind = match file.mime.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some(_) | None => "",
    };
    match (file.uri, kind) {
        (None, "image" | "audio") => {
            json!({ "type": kind, "mimeType": file.mime, "data": file.base64() })
        }
        (uri, _) => {
            let uri = uri.or(file.filename).unwrap_or_default();
            let resource = json!({ "uri": uri, "mimeType": file.mime, "blob": file.base64() });
            json!({ "type": "resource", "resource": resource })
        }
    }
}

fn put(value: &mut Value, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        value[key] = json!(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_parts_become_the_blocks_that_they_came_from() {
        let data = |name: &str, data: Value| Part::Data { name: name.into(), id: None, data };
        let file = |mime: &str, uri: Option<&str>| Part::File {
            media_type: mime.into(),
            url: format!("data:{mime};base64,AAAA"),
            filename: None,
            provider_metadata: uri.map(|uri| json!({ "attache": { "uri": uri } })),
        };
        let parts = vec![
            Part::Text { text: "hi".into(), state: None, provider_metadata: None },
            data(
                "file-ref",
                json!({ "name": "n", "uri": "file:///n", "title": "N", "mime": "text/x", "size": 3 }),
            ),
            data("context", json!({ "uri": "file:///c", "text": "t" })),
            file("image/png", None),
            file("audio/wav", None),
            file("image/png", Some("file:///a.png")),
            file("application/zip", Some("file:///a.zip")),
        ];
        let expected = json!([
            { "type": "text", "text": "hi" },
            { "type": "resource_link", "uri": "file:///n", "name": "n", "title": "N", "mimeType": "text/x", "size": 3 },
            { "type": "resource", "resource": { "uri": "file:///c", "text": "t" } },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAAA" },
            { "type": "resource", "resource": { "uri": "file:///a.png", "mimeType": "image/png", "blob": "AAAA" } },
            { "type": "resource", "resource": { "uri": "file:///a.zip", "mimeType": "application/zip", "blob": "AAAA" } },
        ]);
        assert_eq!(Value::Array(blocks(&parts)), expected);
    }
}
