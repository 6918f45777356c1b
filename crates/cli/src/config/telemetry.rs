//! `[telemetry]`: whether we send spans of turns, where, and with which headers. Knows no key: headers name the
//! variables that hold keys.

use attache_models::BaseUrl;
use attache_telemetry::parse_pairs;

use super::keys::{SettingInput, SettingRefusal};
use super::provider::is_variable_name;
use super::{SettingOrigin, Sourced};

/// What the file and the variables state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TelemetrySettings {
    /// `None` means on if there is an endpoint.
    pub(crate) enabled: Option<Sourced<bool>>,
    pub(crate) endpoint: Option<Sourced<BaseUrl>>,
    pub(crate) content: Option<Sourced<bool>>,
    pub(crate) service_name: Option<Sourced<String>>,
    /// Name and value; `${NAME}` in a value means a variable.
    pub(crate) headers: Option<Sourced<Vec<(String, String)>>>,
}

impl TelemetrySettings {
    /// Only the user turns it on. Variables that the setup of another program exported never do.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.enabled {
            Some(enabled) => enabled.value,
            None => self.endpoint.is_some(),
        }
    }

    pub(crate) fn sends_content(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.value)
    }

    /// Whether any of it is stated, for code that prints it.
    pub(crate) fn is_stated(&self) -> bool {
        *self != Self::default()
    }

    pub(crate) fn enabled_shown(&self) -> Sourced<bool> {
        let usual = || Sourced { value: self.is_wanted(), origin: SettingOrigin::Default };
        self.enabled.clone().unwrap_or_else(usual)
    }
}

/// A table in the file, `name=value,name=value` in a variable. A file must not hold keys, so each value there
/// needs at least one variable.
pub(super) fn headers(input: &SettingInput<'_>) -> Result<Vec<(String, String)>, SettingRefusal> {
    let value = match input {
        SettingInput::Text(text) => return Ok(parse_pairs(text)),
        SettingInput::Toml { value, .. } => value,
    };
    let table = value.as_inline_table().ok_or(SettingRefusal::Mismatch)?;
    let mut headers = Vec::new();
    for (name, value) in table.iter() {
        let text = value.as_str().filter(|text| has_variable(text));
        let Some(text) = text else {
            // The value may be a key, so do not repeat it.
            let why = format!(
                "`{name}` must name the variable that holds its value, for example \"Bearer ${{MY_TOKEN}}\""
            );
            return Err(SettingRefusal::Because(why));
        };
        headers.push((name.to_owned(), text.to_owned()));
    }
    Ok(headers)
}

fn has_variable(text: &str) -> bool {
    match pieces(text) {
        Some(pieces) => pieces.iter().any(|piece| matches!(piece, HeaderPiece::Variable(_))),
        None => false,
    }
}

/// A piece of a header's value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderPiece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// `None` if a `${` names no variable.
pub(crate) fn pieces(text: &str) -> Option<Vec<HeaderPiece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, after) = behind.split_once('}')?;
        if !is_variable_name(name) {
            return None;
        }
        pieces.extend([HeaderPiece::Text(before), HeaderPiece::Variable(name)]);
        rest = after;
    }
    pieces.push(HeaderPiece::Text(rest));
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_headers_are_found() {
        use HeaderPiece::{Text, Variable};
        assert_eq!(pieces("Bearer ${A_B}!"), Some(vec![Text("Bearer "), Variable("A_B"), Text("!")]));
        assert_eq!(pieces("plain $A"), Some(vec![Text("plain $A")]));
        for broken in ["${A", "${}", "${a b}"] {
            assert_eq!(pieces(broken), None, "{broken}");
        }
    }
}
