//! What a request to a server without a hello says in headers beside its body: which revision, which method,
//! of what, and those arguments that the tool's schema wants there. Believes no schema.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits::HEADER_ARGUMENTS;

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
/// How a schema says that an argument goes into a header, and what such headers begin with.
const ANNOTATION: &str = "x-mcp-header";
const ARGUMENT: &str = "mcp-param-";

/// Values that no header can hold are written so.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// One argument that goes into a header as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderArgument {
    path: Vec<String>,
    header: HeaderName,
}

/// Those of each tool that has some.
pub(crate) type HeaderArguments = HashMap<String, Vec<HeaderArgument>>;

/// The arguments that a schema wants in headers, or why it can't be followed: such a tool is not offered.
pub(crate) fn header_arguments(schema: &Value) -> Result<Vec<HeaderArgument>, String> {
    let mut found = Vec::new();
    if let Some(fields) = schema.as_object() {
        look(fields, &mut Vec::new(), HeaderReach::ByName, &mut found)?;
    }
    Ok(found)
}

/// Whether a path in a schema names one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderReach {
    ByName,
    /// Through lists, choices or references.
    Otherwise,
}

fn look(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    reach: HeaderReach,
    found: &mut Vec<HeaderArgument>,
) -> Result<(), String> {
    if let Some(name) = schema.get(ANNOTATION) {
        let argument = argument(schema, name, path, reach)?;
        if found.len() >= HEADER_ARGUMENTS || found.iter().any(|known| known.header == argument.header) {
            return Err(format!("{} is there twice, or there are too many", argument.header));
        }
        found.push(argument);
    }
    for (key, value) in schema {
        match (key.as_str(), value) {
            // Values, no schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            ("properties", Value::Object(fields)) => {
                for (name, field) in
                    fields.iter().filter_map(|(name, field)| Some((name, field.as_object()?)))
                {
                    path.push(name.clone());
                    look(field, path, reach, found)?;
                    path.pop();
                }
            }
            ("$defs" | "definitions" | "patternProperties" | "dependentSchemas", Value::Object(all)) => {
                for inner in all.values().filter_map(Value::as_object) {
                    look(inner, path, HeaderReach::Otherwise, found)?;
                }
            }
            (_, Value::Object(inner)) => look(inner, path, HeaderReach::Otherwise, found)?,
            (_, Value::Array(items)) => {
                for inner in items.iter().filter_map(Value::as_object) {
                    look(inner, path, HeaderReach::Otherwise, found)?;
                }
            }
            (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
        }
    }
    Ok(())
}

fn argument(
    schema: &Map<String, Value>,
    name: &Value,
    path: &[String],
    reach: HeaderReach,
) -> Result<HeaderArgument, String> {
    if path.is_empty() || reach == HeaderReach::Otherwise {
        return Err("a header stands for no single argument".to_owned());
    }
    let kind = schema.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err("only a text, a whole number or a yes or no can be a header".to_owned());
    }
    let name = name.as_str().filter(|name| !name.is_empty()).ok_or("a header has no name")?;
    let header = HeaderName::from_bytes(format!("{ARGUMENT}{name}").as_bytes());
    let header = header.map_err(|_| "a header has a name that none can have".to_owned())?;
    Ok(HeaderArgument { path: path.to_vec(), header })
}

/// The headers of one message.
pub(super) fn headers_of(message: &[u8], arguments: &HeaderArguments) -> HeaderMap {
    #[derive(Deserialize)]
    struct Message {
        method: String,
        #[serde(default)]
        params: MessageParams,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct MessageParams {
        name: Option<String>,
        uri: Option<String>,
        task_id: Option<String>,
        arguments: Value,
    }
    let mut headers = HeaderMap::new();
    let Ok(Message { method, params }) = serde_json::from_slice::<Message>(message) else { return headers };
    let name = match method.as_str() {
        "tools/call" | "prompts/get" => params.name.as_ref(),
        "resources/read" => params.uri.as_ref(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id.as_ref(),
        _ => None,
    };
    let own = name.filter(|_| method == "tools/call").and_then(|name| arguments.get(name));
    let own = own.into_iter().flatten().filter_map(|argument| {
        let value = argument.path.iter().try_fold(&params.arguments, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((argument.header.clone(), text))
    });
    let standard = [(METHOD, Some(&method)), (NAME, name)].into_iter();
    let standard = standard.filter_map(|(key, text)| Some((HeaderName::from_static(key), text?.clone())));
    for (key, text) in standard.chain(own) {
        if let Ok(value) = HeaderValue::from_str(&encoded(&text)) {
            headers.insert(key, value);
        }
    }
    headers
}

/// As it is, if a header can hold it; else encoded.
fn encoded(text: &str) -> String {
    let (begin, end) = ENCODED;
    let is_printable = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let is_like_encoded = text.starts_with(begin) && text.ends_with(end);
    match is_printable && text.trim_matches(' ') == text && !is_like_encoded {
        true => text.to_owned(),
        false => format!("{begin}{}{end}", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encoded(text), header, "{text:?}");
        }
    }

    #[test]
    fn a_message_says_what_it_is_in_headers() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "off": { "type": "boolean", "x-mcp-header": "Off" },
        } });
        let arguments = HashMap::from([("sql".to_owned(), header_arguments(&schema).unwrap())]);
        let given = json!({ "region": "us\r\nX: y", "deep": { "n": -7 }, "off": null });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "sql", "arguments": given } });
        let headers = headers_of(call.to_string().as_bytes(), &arguments);
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!((text("mcp-method"), text("mcp-name")), (Some("tools/call"), Some("sql")));
        assert_eq!((text("mcp-param-n"), text("mcp-param-off")), (Some("-7"), None));
        assert!(text("mcp-param-region").unwrap().starts_with("=?base64?"), "no line can be added");
        let read = json!({ "id": 2, "method": "resources/read", "params": { "uri": "a://b" } });
        assert_eq!(headers_of(read.to_string().as_bytes(), &arguments)["mcp-name"], "a://b");
        let list = json!({ "id": 3, "method": "tools/list", "params": {} });
        assert_eq!(headers_of(list.to_string().as_bytes(), &arguments).len(), 1);
    }

    #[test]
    fn headers_that_can_not_be_followed_are_refused() {
        let with = |property: Value| header_arguments(&json!({ "properties": { "a": property } }));
        assert_eq!(with(json!({ "type": "string" })).unwrap(), []);
        for bad in [
            json!({ "type": "string", "x-mcp-header": "" }),
            json!({ "type": "string", "x-mcp-header": "a b" }),
            json!({ "type": "string", "x-mcp-header": "a\r\nX" }),
            json!({ "type": "string", "x-mcp-header": 5 }),
            json!({ "type": "number", "x-mcp-header": "N" }),
            json!({ "x-mcp-header": "N" }),
            json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "N" } }),
            json!({ "anyOf": [{ "type": "string", "x-mcp-header": "N" }] }),
        ] {
            assert!(with(bad.clone()).is_err(), "{bad}");
        }
        let one = json!({ "type": "string", "x-mcp-header": "Same" });
        let other = json!({ "type": "string", "x-mcp-header": "same" });
        assert!(header_arguments(&json!({ "properties": { "a": one, "b": other } })).is_err());
        assert!(header_arguments(&json!({ "type": "string", "x-mcp-header": "N" })).is_err());
        // A default is data, whatever it looks like.
        assert_eq!(with(json!({ "type": "object", "default": { "x-mcp-header": "N" } })).unwrap(), []);
    }
}
