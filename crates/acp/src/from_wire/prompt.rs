//! Converts prompt blocks to typed user parts. Opens, fetches and guesses nothing; stores what a block says
//! unchanged.

use std::borrow::Cow;

use attache_core::data_name::DataName;
use attache_core::ids::MessageId;
use attache_core::part::Part;
use attache_core::prompt::media::{Block, Marks};
use attache_core::prompt::{Arrival, Prompt, name_of_uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Map, Value};

use super::fields::{Field, Invalid, Object, quoted};
use crate::limits::{
    ATTACHMENT_BYTES, MEDIA_TYPE_BYTES, MESSAGE_ID_BYTES, RUNTIME_CONTEXT_BYTES, RUNTIME_CONTEXT_ITEMS,
};

/// The key under `_meta` for a message id that the client made, for the message to fork from, and for the
/// stored id in answers.
pub const MESSAGE_ID_KEY: &str = "attache/messageId";

/// The key under `_meta` that makes a prompt steer the running turn.
const STEER_KEY: &str = "attache/steer";

pub(super) fn prompt(params: &mut Object) -> Result<Prompt, Invalid> {
    let (message_id, arrival) = match params.meta() {
        Some(mut meta) => {
            let message_id = meta.optional(MESSAGE_ID_KEY).map(message_id).transpose()?;
            (message_id, meta.optional(STEER_KEY).map(arrival).transpose()?.unwrap_or_default())
        }
        None => (None, Arrival::default()),
    };
    let runtime_context = match params.optional("runtimeContext") {
        Some(items) => runtime_context(items)?,
        None => Vec::new(),
    };
    let blocks = params.required("prompt")?;
    let path = blocks.path().to_owned();
    let blocks = blocks.array()?;
    if blocks.is_empty() {
        return Err(Invalid::new(path, "must hold at least one block"));
    }
    let parts = blocks.into_iter().map(part).collect::<Result<_, _>>()?;
    Ok(Prompt { parts, message_id, runtime_context, arrival, ..Prompt::default() })
}

fn arrival(field: Field) -> Result<Arrival, Invalid> {
    Ok(if field.boolean()? { Arrival::Steers } else { Arrival::Waits })
}

/// The message that `_meta` names, if any.
pub(super) fn named_message(params: &mut Object) -> Result<Option<MessageId>, Invalid> {
    match params.meta() {
        Some(mut meta) => meta.optional(MESSAGE_ID_KEY).map(message_id).transpose(),
        None => Ok(None),
    }
}

pub(super) fn message_id(field: Field) -> Result<MessageId, Invalid> {
    let path = field.path().to_owned();
    let text = field.string()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    match !text.is_empty() && text.len() <= MESSAGE_ID_BYTES && text.bytes().all(allowed) {
        true => Ok(MessageId::new(text)),
        false => Err(Invalid::new(
            path,
            format!(
                "must be 1 to {MESSAGE_ID_BYTES} letters, digits or any of _ . : -, not {}",
                quoted(&text)
            ),
        )),
    }
}

fn runtime_context(items: Field) -> Result<Vec<(Option<String>, String)>, Invalid> {
    let path = items.path().to_owned();
    let items = items.array()?;
    if items.len() > RUNTIME_CONTEXT_ITEMS {
        let reason = format!("must hold at most {RUNTIME_CONTEXT_ITEMS} items, not {}", items.len());
        return Err(Invalid::new(path, reason));
    }
    let items: Vec<_> = items.into_iter().map(runtime_item).collect::<Result<_, _>>()?;
    let bytes: usize =
        items.iter().map(|(title, text)| title.as_ref().map_or(0, String::len) + text.len()).sum();
    match bytes <= RUNTIME_CONTEXT_BYTES {
        true => Ok(items),
        false => Err(Invalid::new(path, format!("is larger than {} KiB", RUNTIME_CONTEXT_BYTES / 1024))),
    }
}

fn runtime_item(item: Field) -> Result<(Option<String>, String), Invalid> {
    let mut item = item.object()?;
    let title = item.optional("title").map(Field::string).transpose()?;
    Ok((title, item.required("text")?.string()?))
}

fn part(block: Field) -> Result<Part, Invalid> {
    let mut block = block.object()?;
    let kind = block.required("type")?;
    let path = kind.path().to_owned();
    let kind = kind.string()?;
    match kind.as_str() {
        "text" => Ok(text_part(bounded_text(block.required("text")?)?)),
        "image" => media(&mut block, Block::Image),
        "audio" => media(&mut block, Block::Audio),
        "resource_link" => file_reference(&mut block),
        "resource" => resource(block.required("resource")?.object()?),
        _ => Err(Invalid::new(
            path,
            format!("must be text, image, audio, resource_link or resource, not {}", quoted(&kind)),
        )),
    }
}

/// A text with the same size limit as every attachment.
fn bounded_text(field: Field) -> Result<String, Invalid> {
    let path = field.path().to_owned();
    let text = field.string()?;
    match text.len() <= ATTACHMENT_BYTES {
        true => Ok(text),
        false => Err(Invalid::new(path, format!("is larger than {} MiB", ATTACHMENT_BYTES / 1024 / 1024))),
    }
}

fn text_part(text: String) -> Part {
    Part::Text { text, state: None, provider_metadata: None }
}

fn media(block: &mut Object, kind: Block) -> Result<Part, Invalid> {
    let media_type = media_type(block.required("mimeType")?)?;
    let uri = block.lenient_string("uri");
    file(
        block.required("data")?,
        media_type,
        Marks { block: Some(kind), uri: uri.as_deref(), ..Marks::default() },
    )
}

fn file_reference(block: &mut Object) -> Result<Part, Invalid> {
    let mut data = Map::new();
    data.insert("name".into(), block.required("name")?.string()?.into());
    data.insert("uri".into(), block.required("uri")?.string()?.into());
    for (key, stored) in [("title", "title"), ("description", "description"), ("mimeType", "mime")] {
        if let Some(text) = block.lenient_string(key) {
            data.insert(stored.into(), text.into());
        }
    }
    if let Some(size) = block.lenient_integer("size") {
        data.insert("size".into(), size.into());
    }
    Ok(Part::Data { name: DataName::FileRef.into(), id: None, data: Value::Object(data) })
}

fn resource(mut resource: Object) -> Result<Part, Invalid> {
    let uri = resource.required("uri")?.string()?;
    if resource.has("text") || !resource.has("blob") {
        let text = bounded_text(resource.required("text")?)?;
        let mut data = Map::new();
        data.insert("uri".into(), uri.into());
        if let Some(mime) = resource.lenient_string("mimeType") {
            data.insert("mime".into(), mime.into());
        }
        data.insert("text".into(), text.into());
        return Ok(Part::Data { name: DataName::Context.into(), id: None, data: Value::Object(data) });
    }
    // We are lenient about this media type: the schema lets a bad one count as absent.
    let media_type = resource
        .optional("mimeType")
        .and_then(|field| media_type(field).ok())
        .unwrap_or_else(|| "application/octet-stream".into());
    file(resource.required("blob")?, media_type, Marks { uri: Some(&uri), ..Marks::default() })
}

fn file(data: Field, media_type: String, marks: Marks<'_>) -> Result<Part, Invalid> {
    let path = data.path().to_owned();
    let data = data.string()?;
    check_base64(&data).map_err(|reason| Invalid::new(path, reason))?;
    let mut url = String::with_capacity(data.len() + media_type.len() + 16);
    url.push_str("data:");
    url.push_str(&media_type);
    url.push_str(";base64,");
    url.push_str(&data);
    if !data.ends_with('=') {
        // Store it padded, so that every later reader may be strict.
        url.extend(std::iter::repeat_n('=', (4 - data.len() % 4) % 4));
    }
    Ok(Part::File {
        media_type,
        url,
        filename: marks.uri.and_then(name_of_uri).map(Cow::into_owned),
        provider_metadata: marks.metadata(),
    })
}

/// Checks without holding the decoded bytes, because an attachment may have 20 MiB. Padding may be missing,
/// because clients disagree about it, but must not be wrong.
fn check_base64(data: &str) -> Result<(), String> {
    let digits = data.trim_end_matches('=');
    if digits.len() * 3 / 4 > ATTACHMENT_BYTES {
        return Err(format!("is larger than {} MiB decoded", ATTACHMENT_BYTES / 1024 / 1024));
    }
    let padding = data.len() - digits.len();
    let mut well_formed = padding == 0 || (padding <= 2 && data.len().is_multiple_of(4));
    let mut decoded = [0; 3 * 1024];
    for piece in digits.as_bytes().chunks(4 * 1024) {
        well_formed = well_formed && STANDARD_NO_PAD.decode_slice(piece, &mut decoded).is_ok();
    }
    if well_formed { Ok(()) } else { Err("invalid base64".to_owned()) }
}

/// A type and a subtype, perhaps with parameters. It becomes part of a data url, so it must not contain
/// anything that ends one.
fn media_type(field: Field) -> Result<String, Invalid> {
    let path = field.path().to_owned();
    let text = field.string()?;
    let token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    let well_formed = essence.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    match well_formed && text.len() <= MEDIA_TYPE_BYTES {
        true => Ok(essence.to_ascii_lowercase()),
        false => {
            Err(Invalid::new(path, format!("must be a media type like image/png, not {}", quoted(&text))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_checked_to_its_last_character() {
        let long = "QUJD".repeat(5000);
        assert_eq!(check_base64(&long), Ok(()));
        assert_eq!(check_base64(&format!("{long}QQ==")), Ok(()));
        assert_eq!(check_base64(&format!("{long}QQ")), Ok(()));
        assert_eq!(check_base64(""), Ok(()));
        for bad in ["Q", "QQ=", "QQ===", "QQ==QUJD", "QR==", "QU D", "QUJD\n", "====", "_-_-"] {
            assert!(check_base64(bad).is_err(), "{bad}");
        }
        let padding_at_a_border = format!("{}QQ=={}", "QUJD".repeat(1023), "QUJD");
        assert!(check_base64(&padding_at_a_border).is_err());
    }

    #[test]
    fn the_size_limit_is_on_decoded_bytes() {
        let encoded = |bytes: usize| base64::engine::general_purpose::STANDARD.encode(vec![0; bytes]);
        assert_eq!(check_base64(&encoded(ATTACHMENT_BYTES)), Ok(()));
        assert!(check_base64(&encoded(ATTACHMENT_BYTES + 1)).unwrap_err().contains("20 MiB"));
    }
}
