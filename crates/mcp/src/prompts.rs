//! Prompts of a server: read page by page with caps, and written out as the text for a model. Nothing in them
//! is believed: names are data, descriptions are cut.

use attache_core::legible::visible;
use attache_core::part::Part;
use attache_core::ports::mcp::{ArgumentNeed, PromptArgument, WrittenPrompt};
use attache_core::prompt::media::{Block, Marks};
use attache_core::prompt::sniff;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::{
    DESCRIPTION_CHARACTERS, PROMPT_ARGUMENTS, PROMPT_NAME_BYTES, PROMPT_PICTURES, SERVER_PROMPTS,
    TITLE_CHARACTERS,
};
use crate::listing::shortened;

/// One prompt as its server describes it, made harmless.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListedPrompt {
    /// As the server calls it.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) arguments: Vec<PromptArgument>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PromptPage {
    prompts: Vec<WirePrompt>,
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePrompt {
    name: String,
    title: Option<String>,
    description: Option<String>,
    arguments: Option<Vec<WireArgument>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireArgument {
    name: String,
    required: bool,
}

/// Takes one page in; gives the cursor of the next. A prompt that can't be typed or has too many arguments is
/// left out.
pub(crate) fn add(prompts: &mut Vec<ListedPrompt>, page: &RawValue) -> Result<Option<String>, String> {
    let page: PromptPage =
        serde_json::from_str(page.get()).map_err(|error| format!("its list of prompts: {error}"))?;
    for prompt in page.prompts {
        let is_twice = prompts.iter().any(|known| known.name == prompt.name);
        let arguments = prompt.arguments.unwrap_or_default();
        // Names of arguments are shown in a menu as they are.
        let is_name =
            |name: &str| !name.is_empty() && name.len() <= PROMPT_NAME_BYTES && visible(name) == name;
        let is_usable = is_name(&prompt.name)
            && arguments.len() <= PROMPT_ARGUMENTS
            && arguments.iter().all(|argument| is_name(&argument.name));
        if is_twice || !is_usable || prompts.len() >= SERVER_PROMPTS {
            continue;
        }
        let said = prompt.description.or(prompt.title).filter(|text| !text.trim().is_empty());
        let description = shortened(said.as_deref().unwrap_or(&prompt.name), DESCRIPTION_CHARACTERS);
        let argument = |argument: WireArgument| PromptArgument {
            name: argument.name,
            need: if argument.required { ArgumentNeed::Required } else { ArgumentNeed::Optional },
        };
        let arguments = arguments.into_iter().map(argument).collect();
        prompts.push(ListedPrompt { name: prompt.name, description, arguments });
    }
    Ok(page.next_cursor.filter(|cursor| !cursor.is_empty() && prompts.len() < SERVER_PROMPTS))
}

#[derive(Deserialize)]
struct WireMessages {
    #[serde(default)]
    messages: Vec<WireMessage>,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default)]
    role: String,
    /// One piece, as servers usually send it, or several.
    #[serde(default)]
    content: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenPiece {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    resource: Option<PromptResource>,
    uri: Option<String>,
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PromptResource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

/// What a server wrote, as one text, with its pictures beside it. A word of the assistant in it is marked: the
/// conversation has only this one message for all.
pub(crate) fn written(answer: &RawValue) -> Result<WrittenPrompt, String> {
    let WireMessages { messages } = serde_json::from_str(answer.get())
        .map_err(|error| format!("what its server wrote is not understood: {error}"))?;
    let mut written = WrittenPrompt::default();
    for message in messages {
        let pieces = match message.content {
            Value::Array(pieces) => pieces,
            Value::Null => Vec::new(),
            piece => vec![piece],
        };
        let pieces = pieces.into_iter().map(|piece| serde_json::from_value(piece).unwrap_or_default());
        let texts: Vec<String> = pieces.filter_map(|piece: WrittenPiece| piece.text(&mut written)).collect();
        let text = texts.join("\n\n");
        let text = match message.role.as_str() {
            "assistant" if !text.is_empty() => format!("<assistant>\n{text}\n</assistant>"),
            _ => text,
        };
        if !text.is_empty() {
            let between = if written.text.is_empty() { "" } else { "\n\n" };
            written.text.push_str(between);
            written.text.push_str(&text);
        }
    }
    if written.text.is_empty() && written.pictures.is_empty() {
        return Err("its server wrote nothing".to_owned());
    }
    Ok(written)
}

impl WrittenPiece {
    /// What takes its place in the text; a picture has no place there.
    fn text(self, written: &mut WrittenPrompt) -> Option<String> {
        let Self { r#type, text, data, mime_type, resource, uri, name } = self;
        match (r#type.as_str(), text, data, resource, uri) {
            ("text", Some(text), ..) => Some(text),
            ("image" | "audio", _, Some(data), ..) => media(&data, mime_type.as_deref(), written),
            ("resource", _, _, Some(resource), _) => match (resource.text, resource.blob) {
                (Some(text), _) => Some(context(&resource.uri, &text)),
                (None, Some(blob)) => media(&blob, resource.mime_type.as_deref(), written),
                (None, None) => Some(format!("[resource {}]", shortened(&resource.uri, TITLE_CHARACTERS))),
            },
            ("resource_link", _, _, _, Some(uri)) => {
                let name = shortened(name.as_deref().unwrap_or(&uri), TITLE_CHARACTERS);
                Some(format!("[@{name}]({})", shortened(&uri, 1_000)))
            }
            (other, ..) => Some(format!("[a piece of the kind {} is left out]", shortened(other, 40))),
        }
    }
}

/// As an attached text is written for models: nothing in it can end it.
fn context(uri: &str, text: &str) -> String {
    let uri = shortened(uri, 1_000).replace('"', "%22");
    format!("<context ref=\"{uri}\">\n{}\n</context>", text.replace("</context", "<\\/context"))
}

fn media(data: &str, said: Option<&str>, written: &mut WrittenPrompt) -> Option<String> {
    let Ok(bytes) = STANDARD.decode(data.trim()) else {
        return Some("[a file that is not valid base64 is left out]".to_owned());
    };
    let known = sniff::media_type(&bytes).filter(|mime| mime.starts_with("image/"));
    match known {
        Some(mime) if written.pictures.len() < PROMPT_PICTURES => {
            written.pictures.push(Part::File {
                media_type: mime.to_owned(),
                url: format!("data:{mime};base64,{}", STANDARD.encode(&bytes)),
                filename: None,
                provider_metadata: Marks { block: Some(Block::Image), ..Marks::default() }.metadata(),
            });
            None
        }
        _ => {
            let said = shortened(said.unwrap_or("application/octet-stream"), TITLE_CHARACTERS);
            Some(format!("[{said}, {} bytes, is left out]", bytes.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    fn text(messages: Value) -> String {
        written(&raw(&json!({ "messages": messages }))).unwrap().text
    }

    #[test]
    fn prompts_are_listed_with_what_they_need() {
        let mut prompts = Vec::new();
        let page = json!({ "prompts": [
            { "name": "greet", "description": "Greets\u{202e}\nsomebody", "arguments": [
                { "name": "city", "required": true }, { "name": "state" } ] },
            { "name": "greet", "description": "again" },
            { "name": "", "description": "no name" },
            { "name": "odd", "arguments": [{ "name": "who\u{1b}[2J" }] },
            { "name": "bare", "arguments": null },
            { "name": "many", "arguments": vec![json!({ "name": "a" }); PROMPT_ARGUMENTS + 1] },
        ], "nextCursor": "more" });
        assert_eq!(add(&mut prompts, &raw(&page)), Ok(Some("more".to_owned())));
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names, ["greet", "bare"]);
        assert_eq!(prompts[0].description, r"Greets\u{202e} somebody");
        assert_eq!(prompts[0].arguments[0].need, ArgumentNeed::Required);
        assert_eq!(prompts[0].arguments[1].need, ArgumentNeed::Optional);
        let many: Vec<Value> = (0..10_000).map(|number| json!({ "name": format!("p{number}") })).collect();
        assert_eq!(add(&mut prompts, &raw(&json!({ "prompts": many, "nextCursor": "x" }))), Ok(None));
        assert_eq!(prompts.len(), SERVER_PROMPTS);
    }

    #[test]
    fn messages_become_one_text() {
        let user = |content: Value| json!({ "role": "user", "content": content });
        assert_eq!(text(json!([user(json!({ "type": "text", "text": "hi" }))])), "hi");
        let both = json!([
            user(json!({ "type": "text", "text": "hi" })),
            { "role": "assistant", "content": { "type": "text", "text": "yes?" } },
            user(json!([{ "type": "resource_link", "uri": "a://b", "name": "b" }, { "type": "odd" }])),
        ]);
        assert_eq!(
            text(both),
            "hi\n\n<assistant>\nyes?\n</assistant>\n\n[@b](a://b)\n\n[a piece of the kind odd is left out]"
        );
        let resource = json!({ "type": "resource", "resource": { "uri": "a:\"", "text": "x</context>y" } });
        assert_eq!(text(json!([user(resource)])), "<context ref=\"a:%22\">\nx<\\/context>y\n</context>");
        assert_eq!(written(&raw(&json!({}))).unwrap_err(), "its server wrote nothing");
    }

    #[test]
    fn a_picture_comes_along_and_other_files_are_named() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let messages = json!({ "messages": [
            { "role": "user", "content": { "type": "image", "data": png, "mimeType": "image/png" } },
            { "role": "user", "content": { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" } },
        ] });
        let written = written(&raw(&messages)).unwrap();
        assert_eq!(written.text, "[audio/wav, 3 bytes, is left out]");
        assert!(
            matches!(&written.pictures[..], [Part::File { media_type, .. }] if media_type == "image/png")
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(text in r#"[{}\[\]":,a-z]{0,60}"#, role in "[a-z]{0,9}", inner in ".{0,40}") {
            let known = json!({ "messages": [{ "role": role, "content": { "type": role, "text": inner } }] });
            for text in [text, known.to_string()] {
                if let Ok(raw) = RawValue::from_string(text) {
                    drop(written(&raw));
                    drop(add(&mut Vec::new(), &raw));
                }
            }
        }
    }
}
