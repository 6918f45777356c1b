//! What identifies a tool whose definition can change under the same name. An "always" answer applies to
//! exactly this identity; when it no longer applies, attache says what has changed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::prompt::digest;

/// How many digits of a digest are kept: a server would need years to find another text with the same digits.
const DIGITS: usize = 24;

/// How many names of arguments are kept, in order to say which have changed.
const NAMES: usize = 40;

/// A tool in digests: enough to notice that it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Digests of how its server is reached, of its description and of its schema.
    reached: String,
    description: String,
    schema: String,
    names: BTreeSet<String>,
}

impl ToolIdentity {
    /// `reached`: its server's program, arguments, names of variables or address.
    pub fn of(reached: &str, description: &str, schema: &Value) -> Self {
        let short = |text: &str| digest(text.as_bytes()).chars().take(DIGITS).collect();
        let fields = schema.get("properties").and_then(Value::as_object);
        let plain =
            |name: &String| name.replace(|c: char| c.is_whitespace() || c.is_control() || c == ',', "_");
        Self {
            reached: short(reached),
            description: short(description),
            schema: short(&schema.to_string()),
            names: fields.into_iter().flatten().take(NAMES).map(|(name, _)| plain(name)).collect(),
        }
    }

    /// The stored form.
    pub fn to_text(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        format!("{} {} {} {}", self.reached, self.description, self.schema, names.join(","))
    }

    /// `None` if no version of this code wrote the text.
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.splitn(4, ' ').map(str::to_owned);
        let (reached, description, schema) = (words.next()?, words.next()?, words.next()?);
        let names = words.next()?;
        let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Some(Self { reached, description, schema, names })
    }

    /// What has changed since the stored identity, in words.
    pub(crate) fn changes_since(&self, kept: Option<&str>) -> String {
        let Some(before) = kept.and_then(Self::from_text) else { return "it is another tool".to_owned() };
        let mut changes = Vec::new();
        if before.reached != self.reached {
            changes.push("its server is started or reached in another way".to_owned());
        }
        if before.description != self.description {
            changes.push("its description is another".to_owned());
        }
        if before.schema != self.schema {
            let list = |what: &str, names: Vec<&String>| {
                let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
                (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
            };
            let new = list("new", self.names.difference(&before.names).collect());
            let gone = list("gone", before.names.difference(&self.names).collect());
            let which: Vec<String> = new.into_iter().chain(gone).collect();
            let which = if which.is_empty() { String::new() } else { format!(" ({})", which.join("; ")) };
            changes.push(format!("its arguments are others{which}"));
        }
        changes.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_changed_is_said() {
        let schema = json!({ "properties": { "path": {}, "a, b": {} } });
        let tool = ToolIdentity::of("python3 server.py", "Reads", &schema);
        let kept = tool.to_text();
        assert_eq!(ToolIdentity::from_text(&kept), Some(tool.clone()));
        let said = |tool: ToolIdentity| tool.changes_since(Some(&kept));
        assert_eq!(said(tool), "");
        assert_eq!(
            said(ToolIdentity::of("python3 other.py", "Reads", &schema)),
            "its server is started or reached in another way"
        );
        let other = json!({ "properties": { "path": {}, "mode": {} } });
        assert_eq!(
            said(ToolIdentity::of("python3 server.py", "Writes", &other)),
            "its description is another and its arguments are others (new: mode; gone: a__b)"
        );
        let same_names = json!({ "properties": { "path": { "type": "string" }, "a, b": {} } });
        assert_eq!(
            said(ToolIdentity::of("python3 server.py", "Reads", &same_names)),
            "its arguments are others"
        );
        let tool = ToolIdentity::of("x", "y", &json!({}));
        assert_eq!(tool.changes_since(Some("0123456789abcdef")), "it is another tool");
    }

    proptest! {
        #[test]
        fn what_is_kept_is_understood(reached in ".{0,20}", description in ".{0,20}", names in prop::collection::vec(".{0,12}", 0..4)) {
            let fields: serde_json::Map<String, Value> = names.into_iter().map(|name| (name, json!({}))).collect();
            let tool = ToolIdentity::of(&reached, &description, &json!({ "properties": fields }));
            prop_assert_eq!(tool.changes_since(Some(&tool.to_text())), "");
        }
    }
}
