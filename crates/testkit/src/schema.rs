//! Validates parameters and results against the ACP schema and our own extensions. Knows shapes, not sequences.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

const ACP: &str = include_str!("../schema/acp-v1.json");
const ATTACHE: &str = include_str!("../schema/attache.json");

/// Which half of a method a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    Request,
    Notification,
    Response,
}

/// Who answers a method; requests and notifications travel towards that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Agent,
    Client,
    Either,
}

#[derive(Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// Neither the schema nor our extensions know the method; `_…` methods never end here.
    UnknownMethod,
    /// The definition's name, the place in the payload and what is wrong there.
    Invalid { definition: String, path: String, reason: String },
}

/// Compiled on first use: a test that sends two methods does not pay for forty.
#[derive(Debug)]
pub struct Validator {
    all_definitions: Map<String, Value>,
    /// Several definitions may speak about one payload (`session/prompt` and our runtimeContext): all must
    /// hold.
    by_method: HashMap<(String, Payload), Vec<Definition>>,
    sides: HashMap<String, Side>,
    error: Definition,
}

#[derive(Debug)]
struct Definition {
    name: String,
    compiled: OnceLock<jsonschema::Validator>,
}

impl Validator {
    /// The one instance of this process; compiled definitions are worth sharing between connections.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Validator> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    pub fn new() -> Self {
        let mut all_definitions = definitions(ACP);
        for (name, definition) in definitions(ATTACHE) {
            let before = all_definitions.insert(name.clone(), definition);
            assert!(before.is_none(), "attache.json redefines {name}");
        }
        let mut by_method: HashMap<_, Vec<Definition>> = HashMap::new();
        let mut sides = HashMap::new();
        for (name, definition) in &all_definitions {
            let Some(method) = definition.get("x-method").and_then(Value::as_str) else { continue };
            let Some(payload) = payload_of(name) else { panic!("{name} is no payload of {method}") };
            by_method.entry((method.to_owned(), payload)).or_default().push(Definition::named(name));
            sides.insert(method.to_owned(), side_of(definition));
        }
        Self { all_definitions, by_method, sides, error: Definition::named("Error") }
    }

    pub fn request(&self, method: &str, params: &Value) -> Result<(), SchemaFault> {
        self.check(method, Payload::Request, params)
    }

    pub fn notification(&self, method: &str, params: &Value) -> Result<(), SchemaFault> {
        self.check(method, Payload::Notification, params)
    }

    /// `method` is that of the request the result answers.
    pub fn response(&self, method: &str, result: &Value) -> Result<(), SchemaFault> {
        self.check(method, Payload::Response, result)
    }

    pub fn error(&self, error: &Value) -> Result<(), SchemaFault> {
        self.validate(&self.error, error)
    }

    /// Who answers `method`; `None` for unknown methods.
    pub fn side(&self, method: &str) -> Option<Side> {
        self.sides.get(method).copied()
    }

    /// Every method that has a definition, in no particular order.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.sides.keys().map(String::as_str)
    }

    fn check(&self, method: &str, payload: Payload, value: &Value) -> Result<(), SchemaFault> {
        match self.by_method.get(&(method.to_owned(), payload)) {
            Some(definitions) => {
                definitions.iter().try_for_each(|definition| self.validate(definition, value))
            }
            None if method.starts_with('_') && !self.sides.contains_key(method) => Ok(()),
            None => Err(SchemaFault::UnknownMethod),
        }
    }

    fn validate(&self, definition: &Definition, value: &Value) -> Result<(), SchemaFault> {
        let compiled = definition.compiled.get_or_init(|| {
            let root = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#/$defs/{}", definition.name),
                "$defs": self.all_definitions,
            });
            match jsonschema::validator_for(&root) {
                Ok(validator) => validator,
                Err(error) => panic!("{} does not compile: {error}", definition.name),
            }
        });
        compiled.validate(value).map_err(|error| SchemaFault::Invalid {
            definition: definition.name.clone(),
            path: error.instance_path().to_string(),
            reason: error.to_string(),
        })
    }
}

impl Default for Validator {
    fn default() -> Self {
        Self::new()
    }
}

impl Definition {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), compiled: OnceLock::new() }
    }
}

impl std::fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownMethod => f.write_str("no definition for this method"),
            Self::Invalid { definition, path, reason } => {
                write!(f, "against {definition} at {path:?}: {reason}")
            }
        }
    }
}

fn definitions(text: &str) -> Map<String, Value> {
    let schema: Value = match serde_json::from_str(text) {
        Ok(schema) => schema,
        Err(error) => panic!("the bundled schema is not JSON: {error}"),
    };
    match schema.get("$defs") {
        Some(Value::Object(definitions)) => definitions.clone(),
        Some(_) | None => panic!("the bundled schema has no $defs"),
    }
}

fn payload_of(definition: &str) -> Option<Payload> {
    [("Request", Payload::Request), ("Notification", Payload::Notification), ("Response", Payload::Response)]
        .into_iter()
        .find(|(suffix, _)| definition.ends_with(suffix))
        .map(|(_, payload)| payload)
}

fn side_of(definition: &Value) -> Side {
    match definition.get("x-side").and_then(Value::as_str) {
        Some("agent") => Side::Agent,
        Some("client") => Side::Client,
        Some(_) | None => Side::Either,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_compiles() {
        let validator = Validator::new();
        let mut seen = 0;
        for (method, payload) in validator.by_method.keys() {
            // The verdict does not matter here: asking compiles, and a schema that does not compile panics.
            assert_ne!(
                validator.check(method, *payload, &Value::Null),
                Err(SchemaFault::UnknownMethod),
                "{method}"
            );
            seen += 1;
        }
        assert!(seen > 60, "only {seen} payloads");
    }

    #[test]
    fn a_request_is_held_to_its_own_methods_definition() {
        let validator = Validator::shared();
        let params = json!({"sessionId": "ses_1", "prompt": [{"type": "text", "text": "hi"}]});
        assert_eq!(validator.request("session/prompt", &params), Ok(()));
        let fault = validator.request("session/new", &params).unwrap_err();
        assert!(fault.to_string().contains("cwd"), "{fault}");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        let update = json!({"sessionId": "ses_1", "update": {
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "locations": [{"path": 3}]}});
        let fault = Validator::shared().notification("session/update", &update).unwrap_err();
        assert!(matches!(fault, SchemaFault::Invalid { .. }), "{fault}");
    }

    #[test]
    fn an_unknown_discriminator_is_refused() {
        let update = json!({"sessionId": "ses_1", "update": {"sessionUpdate": "tool_called"}});
        assert!(Validator::shared().notification("session/update", &update).is_err());
    }

    #[test]
    fn runtime_context_is_checked_beside_the_prompt() {
        let prompt = |context: Value| json!({"sessionId": "s", "prompt": [], "runtimeContext": context});
        let validator = Validator::shared();
        assert_eq!(validator.request("session/prompt", &prompt(json!([{"text": "x"}]))), Ok(()));
        assert!(validator.request("session/prompt", &prompt(json!([{"title": "no text"}]))).is_err());
    }

    #[test]
    fn fork_answers_like_new() {
        let validator = Validator::shared();
        assert_eq!(validator.response("session/fork", &json!({"sessionId": "ses_2"})), Ok(()));
        assert!(validator.response("session/fork", &json!({})).is_err());
        assert!(validator.request("session/fork", &json!({"sessionId": "ses_1"})).is_err(), "cwd is missing");
    }

    #[test]
    fn foreign_extensions_pass_and_unknown_methods_do_not() {
        let validator = Validator::shared();
        assert_eq!(validator.request("_other/thing", &json!({"any": 1})), Ok(()));
        assert_eq!(validator.request("session/dance", &json!({})), Err(SchemaFault::UnknownMethod));
        assert!(validator.response("_attache/session/rewind", &json!({"hidden": 1})).is_err());
    }

    #[test]
    fn an_error_needs_an_integer_and_a_text() {
        let validator = Validator::shared();
        assert_eq!(validator.error(&json!({"code": -32002, "message": "no"})), Ok(()));
        assert!(validator.error(&json!({"code": "-32002", "message": "no"})).is_err());
        assert!(validator.error(&json!({"code": -32002})).is_err());
    }

    #[test]
    fn methods_know_who_answers_them() {
        let validator = Validator::shared();
        assert_eq!(validator.side("session/prompt"), Some(Side::Agent));
        assert_eq!(validator.side("session/update"), Some(Side::Client));
        assert_eq!(validator.side("$/cancel_request"), Some(Side::Either));
        assert_eq!(validator.side("nothing"), None);
    }
}
