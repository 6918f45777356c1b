//! Headers of the configuration: `${NAME}` in a value is a variable of the environment, read once at the start.
//! Values are never shown.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;

use crate::limits::SECRET_BYTES;

/// Ready to be sent.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(HeaderMap);

/// Why a header can't be sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("header `{header}`: {reason}")]
pub struct UnsetVariable {
    /// Its name.
    pub header: String,
    /// Without its value.
    pub reason: String,
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Headers {
    /// With the values of variables in them.
    pub fn resolve<'a>(
        written: impl IntoIterator<Item = (&'a str, &'a str)>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UnsetVariable> {
        let mut headers = HeaderMap::new();
        for (name, value) in written {
            let refused = |reason: String| UnsetVariable { header: name.to_owned(), reason };
            let value = with_variables(value, &variable).map_err(refused)?;
            let known = HeaderName::from_bytes(name.as_bytes());
            let key = known.map_err(|_| refused("this is no name of a header".to_owned()))?;
            let sent = HeaderValue::from_str(&value);
            let mut sent = sent.map_err(|_| refused("its value can't be sent in a header".to_owned()))?;
            sent.set_sensitive(true);
            headers.append(key, sent);
        }
        Ok(Self(headers))
    }

    pub(crate) fn map(&self) -> HeaderMap {
        self.0.clone()
    }

    /// The text without the values: servers repeat what they were sent.
    pub(crate) fn cut(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let values = self.0.values().filter_map(|value| value.to_str().ok());
        // Behind the word that says how, as in `Bearer …`.
        for secret in values.flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)]) {
            if secret.len() >= SECRET_BYTES {
                text = text.replace(secret, "[hidden]");
            }
        }
        text
    }
}

/// A text with the values of its `${NAME}` in it. The error does not name the text.
pub fn with_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, after) = behind.split_once('}').ok_or("a `${` has no `}` behind it")?;
        value.push_str(before);
        value.push_str(&variable(name).ok_or_else(|| format!("the variable {name} is not set"))?);
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(value: &str) -> Result<Headers, UnsetVariable> {
        Headers::resolve([("Authorization", value)], |name| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn variables_are_put_in_and_never_shown() {
        let headers = resolve("Bearer ${TOKEN}").unwrap();
        assert_eq!(headers.map()["authorization"], "Bearer s3cret");
        assert!(!format!("{headers:?}").contains("s3cret"), "{headers:?}");
        assert!(!format!("{:?}", headers.map()).contains("s3cret"));
    }

    #[test]
    fn what_a_server_repeats_of_them_is_cut() {
        let headers = resolve("Bearer ${TOKEN}").unwrap();
        assert_eq!(headers.cut("{\"sent\":\"s3cret\"}, Bearer s3cret"), "{\"sent\":\"[hidden]\"}, [hidden]");
        assert_eq!(resolve("a b").unwrap().cut("a b"), "a b");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = resolve("Bearer ${OTHER}").unwrap_err();
        assert_eq!(error.to_string(), "header `Authorization`: the variable OTHER is not set");
        assert!(resolve("a\nb").unwrap_err().to_string().contains("can't be sent"));
    }
}
