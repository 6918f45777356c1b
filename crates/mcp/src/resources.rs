//! Resources of a server as the result of a call: a list of them, or what one holds.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::limits::{DESCRIPTION_CHARACTERS, SUGGESTIONS, TITLE_CHARACTERS};
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

/// The arguments of a call about resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceWish<'a> {
    List,
    Read(&'a str),
    /// Completions for an argument of a template.
    Complete {
        template: &'a str,
        argument: &'a str,
        value: &'a str,
    },
}

impl<'a> ResourceWish<'a> {
    pub(crate) fn of(input: &'a Value) -> Result<Self, &'static str> {
        let text = |key: &str| input.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        match (text("uri"), text("template"), text("argument")) {
            (Some(uri), None, None) => Ok(Self::Read(uri)),
            (None, Some(template), Some(argument)) => {
                Ok(Self::Complete { template, argument, value: text("value").unwrap_or_default() })
            }
            (None, None, None) => Ok(Self::List),
            (Some(_), ..) => Err("`uri` reads a resource; `template` and `argument` belong to no uri"),
            (None, ..) => Err("`template` and `argument` belong together"),
        }
    }
}

/// The last line of a list that is not whole.
pub(crate) const MORE: &str = "[there are more, which are not listed]\n";

/// One line for each of at most so many, and the cursor of the next page.
pub(crate) fn listed(page: &RawValue, room: usize) -> (Vec<String>, Option<String>) {
    let page: ResourcePage = serde_json::from_str(page.get()).unwrap_or_default();
    let all = page.resources.into_iter().chain(page.resource_templates);
    let line = |resource: NamedResource| {
        let uri = if resource.uri.is_empty() { &resource.uri_template } else { &resource.uri };
        let more = [Some(&resource.name), resource.mime_type.as_ref(), resource.description.as_ref()];
        let more: Vec<String> = more
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .map(|text| shortened(text, DESCRIPTION_CHARACTERS))
            .collect();
        format!("{}: {}\n", shortened(uri, 1_000), more.join(", "))
    };
    let cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
    (all.take(room).map(line).collect(), cursor)
}

/// The values of a completion that can be typed: short, and without characters that a terminal would obey.
pub(crate) fn suggested(answer: &RawValue) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CompletionValues {
        values: Vec<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Completed {
        completion: CompletionValues,
    }
    let Completed { completion } = serde_json::from_str(answer.get()).unwrap_or_default();
    // A value stands in for what its user would type, so it is offered as it is or not at all.
    let is_typable = |value: &String| !value.is_empty() && shortened(value, TITLE_CHARACTERS) == *value;
    completion.values.into_iter().filter(is_typable).take(SUGGESTIONS).collect()
}

/// The values as a text for a model.
pub(crate) fn choices(argument: &str, values: &[String]) -> String {
    match values {
        [] => format!("Nothing is suggested for {}.", shortened(argument, TITLE_CHARACTERS)),
        some => format!("{}\n", some.join("\n")),
    }
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
    struct ReadContents<'a> {
        #[serde(borrow, default)]
        contents: Vec<&'a RawValue>,
    }
    let strange = |error: serde_json::Error| format!("what was read is not understood: {error}");
    let ReadContents { contents } = serde_json::from_str(read.get()).map_err(strange)?;
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
        assert_eq!(listed(&page, 9), (vec!["a://1: one, text/plain\n".to_owned()], Some("x".to_owned())));
        assert_eq!(listed(&page, 0).0.len(), 0);
        let page = raw(json!({ "resourceTemplates": [{ "uriTemplate": "a://{id}", "name": "any" }] }));
        assert_eq!(listed(&page, 9), (vec!["a://{id}: any\n".to_owned()], None));
        assert_eq!(listed(&raw(json!("strange")), 9), (Vec::new(), None));
    }

    #[test]
    fn a_call_lists_reads_or_completes() {
        assert_eq!(ResourceWish::of(&json!({})), Ok(ResourceWish::List));
        assert_eq!(ResourceWish::of(&json!({ "uri": "a://1" })), Ok(ResourceWish::Read("a://1")));
        let complete = json!({ "template": "a://{id}", "argument": "id" });
        let wish = ResourceWish::Complete { template: "a://{id}", argument: "id", value: "" };
        assert_eq!(ResourceWish::of(&complete), Ok(wish));
        for bad in
            [json!({ "template": "a" }), json!({ "argument": "a" }), json!({ "uri": "a", "template": "b" })]
        {
            assert!(ResourceWish::of(&bad).is_err(), "{bad}");
        }
        let long = "x".repeat(200_000);
        let values = ["1\u{202e}", "", "a\nb", "\u{1b}[31m", &long, "New York", "2"];
        let values = raw(json!({ "completion": { "values": values } }));
        assert_eq!(suggested(&values), ["New York", "2"], "each as it is, or not at all");
        assert_eq!(suggested(&raw(json!([]))), Vec::<String>::new());
        assert_eq!(choices("id", &[]), "Nothing is suggested for id.");
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
