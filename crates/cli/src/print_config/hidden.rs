//! How values are printed that may be keys: what only refers to variables as it is, of the rest the names.

use attache_core::ports::mcp::HiddenText;
use toml_edit::InlineTable;

use super::{ConfigPage, one_line};
use crate::config::SettingOrigin;

/// Ways to send a key in a header, before the key.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "Token "];

impl ConfigPage {
    /// A table of headers or variables.
    pub(super) fn hidden_table(
        &mut self,
        name: &str,
        entries: &[(String, HiddenText)],
        origin: &SettingOrigin,
    ) {
        let (references, hidden): (Vec<_>, Vec<_>) =
            entries.iter().partition(|(_, value)| is_reference(value.expose()));
        if !references.is_empty() {
            let shown: InlineTable =
                references.into_iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
            self.entry(name, shown, origin);
        }
        if !hidden.is_empty() {
            let names: Vec<&str> = hidden.iter().map(|(name, _)| name.as_str()).collect();
            self.line(&format!("# values not shown: {}", one_line(&names.join(", "))));
        }
    }
}

/// Whether it holds nothing but `${NAME}`, perhaps behind the word for a way to send it. A default is a value.
pub(super) fn is_reference(text: &str) -> bool {
    let without_scheme = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    let mut rest = without_scheme.unwrap_or(text);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let reference = rest.strip_prefix("${").and_then(|behind| behind.split_once('}'));
        let Some((name, after)) = reference else { return false };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return false;
        }
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_no_word_of_a_value_is_a_reference() {
        for reference in ["${A}", "Bearer ${TOKEN_2}", "${A}${env:B}"] {
            assert!(is_reference(reference), "{reference}");
        }
        for value in
            ["", "Bearer ", "key", "key ${A}", "${A}x", "${A:-key}", "${}", "${a b}", "${A", "Bearer key"]
        {
            assert!(!is_reference(value), "{value}");
        }
    }
}
