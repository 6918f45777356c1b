//! Resources of a server as the result of a call: a list of them, or what one holds.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::limits::{DESCRIPTION_CHARACTERS, LISTED_RESOURCES};
use crate::listing::shortened;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourcePage {
    resources: Vec<NamedResource>,
    resource_templates: Vec<NamedResource>,
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamedResource {
    uri: String,
    uri_template: String,
    name: String,
    description: Option<String>,
    mime_type: Option<String>,
}

/// One line for each.
pub(crate) fn listed(page: &RawValue) -> String {
    let page: ResourcePage = serde_json::from_str(page.get()).unwrap_or_default();
    let all: Vec<NamedResource> = page.resources.into_iter().chain(page.resource_templates).collect();
    let mut text = String::new();
    for resource in all.iter().take(LISTED_RESOURCES) {
        let uri = if resource.uri.is_empty() { &resource.uri_template } else { &resource.uri };
        let more = [Some(&resource.name), resource.mime_type.as_ref(), resource.description.as_ref()];
        let more: Vec<String> = more
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .map(|text| shortened(text, DESCRIPTION_CHARACTERS))
            .collect();
        text.push_str(&format!("{}: {}\n", shortened(uri, 1_000), more.join(", ")));
    }
    if all.len() > LISTED_RESOURCES || page.next_cursor.is_some() {
        text.push_str("[there are more, which are not listed]\n");
    }
    text
}

/// A text as the result of a call.
pub(crate) fn as_text(text: &str) -> Option<Box<RawValue>> {
    let text = if text.is_empty() { "There are no resources." } else { text };
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    serde_json::value::to_raw_value(&result).ok()
}

/// What was read, as the result of a call.
pub(crate) fn as_result(read: &RawValue) -> Result<Box<RawValue>, String> {
    #[derive(Deserialize)]
    struct Contents<'a> {
        #[serde(borrow, default)]
        contents: Vec<&'a RawValue>,
    }
    let strange = |error: serde_json::Error| format!("what was read is not understood: {error}");
    let Contents { contents } = serde_json::from_str(read.get()).map_err(strange)?;
    let items: Vec<String> =
        contents.iter().map(|item| format!(r#"{{"type":"resource","resource":{item}}}"#)).collect();
    RawValue::from_string(format!(r#"{{"content":[{}]}}"#, items.join(","))).map_err(strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: serde_json::Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn resources_and_templates_are_listed_by_their_uri() {
        let page = raw(
            json!({ "resources": [{ "uri": "a://1", "name": "one", "mimeType": "text/plain" }], "nextCursor": "x" }),
        );
        assert_eq!(listed(&page), "a://1: one, text/plain\n[there are more, which are not listed]\n");
        let page = raw(json!({ "resourceTemplates": [{ "uriTemplate": "a://{id}", "name": "any" }] }));
        assert_eq!(listed(&page), "a://{id}: any\n");
        assert_eq!(listed(&raw(json!("strange"))), "");
    }

    #[test]
    fn what_was_read_is_a_result() {
        let read = raw(json!({ "contents": [{ "uri": "a://1", "text": "t" }] }));
        let result: serde_json::Value = serde_json::from_str(as_result(&read).unwrap().get()).unwrap();
        assert_eq!(
            result,
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a://1", "text": "t" } }] })
        );
    }
}
