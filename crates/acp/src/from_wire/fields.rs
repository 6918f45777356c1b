//! Reads JSON parameters field by field and remembers the path, so that every error names its field. Does not
//! know what the fields mean.

use attache_rpc::ErrorObject;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::limits::QUOTED_BYTES;

/// A field with a wrong value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Invalid {
    /// `prompt[2].data`; consists of our own names and numbers, never of input.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Invalid {
    /// What is wrong with the field at this path.
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

impl From<Invalid> for ErrorObject {
    fn from(invalid: Invalid) -> Self {
        ErrorObject::invalid_params(invalid.to_string())
    }
}

/// A JSON object from which we take fields one by one; the rest is ignored.
#[derive(Debug)]
pub(super) struct Object {
    path: String,
    fields: Map<String, Value>,
}

/// A value and the path to it.
#[derive(Debug)]
pub(super) struct Field {
    path: String,
    value: Value,
}

impl Object {
    /// The parameters of a message. Missing parameters count as an empty object, so that the error names the
    /// missing field.
    pub(super) fn params(params: Option<Box<RawValue>>) -> Result<Self, Invalid> {
        let Some(raw) = params else { return Ok(Self { path: String::new(), fields: Map::new() }) };
        match serde_json::from_str(raw.get()) {
            Ok(Value::Object(fields)) => Ok(Self { path: String::new(), fields }),
            Ok(other) => Err(Invalid::new("params", format!("must be an object, not {}", kind(&other)))),
            Err(error) => Err(Invalid::new("params", error.to_string())),
        }
    }

    pub(super) fn required(&mut self, name: &str) -> Result<Field, Invalid> {
        let path = self.path_of(name);
        match self.fields.remove(name) {
            Some(value) => Ok(Field { path, value }),
            None => Err(Invalid::new(path, "is missing")),
        }
    }

    /// `None` if the field is absent or null.
    pub(super) fn optional(&mut self, name: &str) -> Option<Field> {
        let value = self.fields.remove(name).filter(|value| !value.is_null())?;
        Some(Field { path: self.path_of(name), value })
    }

    /// A string, or `None` if the field is absent or anything else, as the protocol demands for this field.
    pub(super) fn lenient_string(&mut self, name: &str) -> Option<String> {
        self.optional(name)?.string().ok()
    }

    pub(super) fn lenient_integer(&mut self, name: &str) -> Option<i64> {
        self.optional(name)?.value.as_i64()
    }

    /// `_meta`, which may be anything; only an object tells us something.
    pub(super) fn meta(&mut self) -> Option<Object> {
        self.optional("_meta")?.object().ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn path_of(&self, name: &str) -> String {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match (plain, self.path.is_empty()) {
            (true, true) => name.to_owned(),
            (true, false) => format!("{}.{name}", self.path),
            (false, _) => format!("{}[{name:?}]", self.path),
        }
    }
}

impl Field {
    pub(super) fn invalid(&self, reason: impl Into<String>) -> Invalid {
        Invalid::new(self.path.clone(), reason)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn into_value(self) -> Value {
        self.value
    }

    pub(super) fn string(self) -> Result<String, Invalid> {
        match self.value {
            Value::String(text) => Ok(text),
            other => Err(wrong_kind(self.path, "a string", &other)),
        }
    }

    pub(super) fn boolean(self) -> Result<bool, Invalid> {
        match self.value {
            Value::Bool(flag) => Ok(flag),
            other => Err(wrong_kind(self.path, "true or false", &other)),
        }
    }

    pub(super) fn unsigned_16(self) -> Result<u16, Invalid> {
        let number = self.value.as_u64().and_then(|number| u16::try_from(number).ok());
        number.ok_or_else(|| wrong_kind(self.path, "a whole number from 0 to 65535", &self.value))
    }

    pub(super) fn object(self) -> Result<Object, Invalid> {
        match self.value {
            Value::Object(fields) => Ok(Object { path: self.path, fields }),
            other => Err(wrong_kind(self.path, "an object", &other)),
        }
    }

    pub(super) fn array(self) -> Result<Vec<Field>, Invalid> {
        match self.value {
            Value::Array(items) => Ok(items
                .into_iter()
                .enumerate()
                .map(|(index, value)| Field { path: format!("{}[{index}]", self.path), value })
                .collect()),
            other => Err(wrong_kind(self.path, "an array", &other)),
        }
    }
}

/// The beginning of a text, short enough for an error.
pub(crate) fn quoted(text: &str) -> String {
    match text.len() > QUOTED_BYTES {
        true => format!("{:?}…", &text[..text.floor_char_boundary(QUOTED_BYTES)]),
        false => format!("{text:?}"),
    }
}

fn wrong_kind(path: String, wanted: &str, found: &Value) -> Invalid {
    Invalid::new(path, format!("must be {wanted}, not {}", kind(found)))
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}
