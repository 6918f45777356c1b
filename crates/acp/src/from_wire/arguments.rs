//! A filled form of the arguments of a call. Checks shapes only.

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAction, ElicitationContentValue,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::to_wire::ArgumentKind;

/// What was made of the form.
#[derive(Clone, Debug, PartialEq)]
pub enum EditedArguments {
    /// The call is to run with these.
    Given(Value),
    /// The fields in `wrong` are no JSON; `typed` is what all of them hold.
    Wrong {
        /// By their names.
        typed: Map<String, Value>,
        /// Their names.
        wrong: Vec<String>,
    },
    /// Nothing: the form was put aside.
    PutAside,
}

/// Reads the form about `input`. A text that is missing was emptied; another value that is missing, or is of
/// another kind, stays as it was.
pub fn arguments(input: &Value, response: &RawValue) -> EditedArguments {
    let Ok(response) = serde_json::from_str::<CreateElicitationResponse>(response.get()) else {
        return EditedArguments::PutAside;
    };
    let ElicitationAction::Accept(accepted) = response.action else { return EditedArguments::PutAside };
    let mut content = accepted.content.unwrap_or_default();
    let (mut given, mut typed, mut wrong) = (Map::new(), Map::new(), Vec::new());
    for (name, before) in input.as_object().into_iter().flatten() {
        let kind = ArgumentKind::of(before);
        let said = read(kind, content.remove(name));
        let value = match said {
            FieldValue::Of(value) => value,
            FieldValue::Missing => before.clone(),
            FieldValue::Json(text) => {
                typed.insert(name.clone(), json!(text));
                match serde_json::from_str(&text) {
                    Ok(value) => value,
                    Err(_) => {
                        wrong.push(name.clone());
                        continue;
                    }
                }
            }
        };
        if kind != ArgumentKind::Json {
            typed.insert(name.clone(), value.clone());
        }
        given.insert(name.clone(), value);
    }
    match wrong.is_empty() {
        true => EditedArguments::Given(Value::Object(given)),
        false => EditedArguments::Wrong { typed, wrong },
    }
}

/// What a field holds.
enum FieldValue {
    Of(Value),
    /// As it was typed.
    Json(String),
    /// Nothing, or something of another kind.
    Missing,
}

fn read(kind: ArgumentKind, said: Option<ElicitationContentValue>) -> FieldValue {
    use ElicitationContentValue::{Boolean, Integer, Number, String};
    match kind {
        ArgumentKind::Text => match said {
            None => FieldValue::Of(json!("")),
            Some(String(text)) => FieldValue::Of(json!(text)),
            Some(_) => FieldValue::Missing,
        },
        ArgumentKind::Flag => match said {
            Some(Boolean(flag)) => FieldValue::Of(json!(flag)),
            Some(_) | None => FieldValue::Missing,
        },
        ArgumentKind::Integer => match said {
            Some(Integer(number)) => FieldValue::Of(json!(number)),
            Some(Number(number)) => {
                whole(number).map_or(FieldValue::Missing, |number| FieldValue::Of(json!(number)))
            }
            Some(_) | None => FieldValue::Missing,
        },
        ArgumentKind::Number => match said {
            Some(Integer(number)) => FieldValue::Of(json!(number)),
            Some(Number(number)) => FieldValue::Of(json!(number)),
            Some(_) | None => FieldValue::Missing,
        },
        ArgumentKind::Json => match said {
            Some(String(text)) => FieldValue::Json(text),
            Some(_) | None => FieldValue::Missing,
        },
    }
}

/// Clients in JavaScript know one kind of number.
fn whole(number: f64) -> Option<i64> {
    let is_exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    is_exact.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &Value) -> EditedArguments {
        let input =
            json!({ "to": "x", "count": 3, "share": 0.5, "force": false, "tags": ["a"], "note": null });
        let answer = json!({ "action": "accept", "content": content }).to_string();
        arguments(&input, &RawValue::from_string(answer).unwrap())
    }

    #[test]
    fn every_kind_of_value_comes_back_as_its_own() {
        let typed =
            json!({ "to": "y", "count": 4.0, "share": 2, "force": true, "tags": "[\"b\"]", "note": "{}" });
        let expected = json!({ "to": "y", "count": 4, "share": 2, "force": true, "tags": ["b"], "note": {} });
        assert_eq!(read(&typed), EditedArguments::Given(expected));
    }

    #[test]
    fn a_text_that_is_missing_was_emptied_and_everything_else_stays() {
        let expected =
            json!({ "to": "", "count": 3, "share": 0.5, "force": false, "tags": ["a"], "note": null });
        assert_eq!(read(&json!({ "count": "four", "unknown": 1 })), EditedArguments::Given(expected));
    }

    #[test]
    fn what_is_no_json_is_named_and_nothing_that_was_typed_is_lost() {
        let EditedArguments::Wrong { typed, wrong } = read(&json!({ "to": "y", "tags": "[", "note": "1" }))
        else {
            panic!("taken")
        };
        assert_eq!(wrong, ["tags"]);
        assert_eq!((&typed["to"], &typed["tags"], &typed["note"]), (&json!("y"), &json!("["), &json!("1")));
    }

    #[test]
    fn a_form_that_was_put_aside_says_nothing() {
        for action in ["decline", "cancel"] {
            let answer = RawValue::from_string(json!({ "action": action }).to_string()).unwrap();
            assert_eq!(arguments(&json!({ "to": "x" }), &answer), EditedArguments::PutAside);
        }
    }
}
