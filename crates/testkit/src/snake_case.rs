//! Finds snake_case keys that leaked onto the wire. Looks at keys only: discriminator values are free.

use serde_json::Value;

/// JSON pointers of every key with an underscore, in order of appearance.
///
/// Left alone: what belongs to others (`rawInput`, `rawOutput`: the tools' own JSON; foreign entries of
/// `_meta`), and maps whose keys are data (`env`-like maps do not exist in ACP; elicitation properties do).
pub fn leaked_keys(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, &mut String::new(), &mut found);
    found
}

/// Payload of others under these keys: a tool's arguments and results, an answered form, a form's field names.
const FOREIGN: [&str; 4] = ["rawInput", "rawOutput", "properties", "required"];

fn walk(value: &Value, path: &mut String, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, child) in entries {
                descend(path, key, |path| {
                    if key == "_meta" {
                        meta(child, path, found);
                        return;
                    }
                    if is_snake_case(key) {
                        found.push(path.clone());
                    }
                    if !FOREIGN.contains(&key.as_str()) {
                        walk(child, path, found);
                    }
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                descend(path, &index.to_string(), |path| walk(item, path, found));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Of `_meta` only our own entries are ours to keep clean: `attache` and `attache/…`.
fn meta(value: &Value, path: &mut String, found: &mut Vec<String>) {
    let Value::Object(entries) = value else { return };
    for (key, child) in entries {
        if key == "attache" || key.starts_with("attache/") {
            descend(path, key, |path| {
                if is_snake_case(key) {
                    found.push(path.clone());
                }
                walk(child, path, found);
            });
        }
    }
}

fn is_snake_case(key: &str) -> bool {
    key.trim_start_matches('_').contains('_')
}

fn descend(path: &mut String, key: &str, visit: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(key);
    visit(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_leaked_key_is_found_wherever_it_stands() {
        let value = json!({"params": {"update": [{"tool_call_id": 1, "locations": [{"line_number": 2}]}]}});
        assert_eq!(
            leaked_keys(&value),
            ["/params/update/0/tool_call_id", "/params/update/0/locations/0/line_number"]
        );
    }

    #[test]
    fn values_and_leading_underscores_are_free() {
        assert_eq!(
            leaked_keys(&json!({"sessionUpdate": "tool_call_update", "_meta": {}})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn tool_payload_belongs_to_the_tool() {
        let value = json!({"rawInput": {"old_string": "a"}, "rawOutput": [{"exit_code": 0}]});
        assert_eq!(leaked_keys(&value), Vec::<String>::new());
    }

    #[test]
    fn of_meta_only_our_entries_are_looked_at() {
        let value = json!({"_meta": {"their_key": {"a_b": 1}, "attache": {"message_id": 1},
            "attache/messageId": "m", "attache/message_id": "m"}});
        assert_eq!(leaked_keys(&value), ["/_meta/attache/message_id", "/_meta/attache/message_id"]);
    }
}
