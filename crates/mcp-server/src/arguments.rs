//! The arguments of our tools. Unknown names are errors: a model that misspells one learns of it.

use std::path::PathBuf;

use attache_core::legible::legible_line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskArguments {
    pub(crate) prompt: String,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionsSearchArguments {
    pub(crate) query: String,
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArguments {
    pub(crate) session: String,
    pub(crate) from: Option<i64>,
    pub(crate) limit: Option<usize>,
}

/// The error is for the model that made the call.
pub(crate) fn read<T: DeserializeOwned>(arguments: Option<&RawValue>) -> Result<T, String> {
    let text = arguments.map_or("{}", RawValue::get);
    // A derived struct would also take its fields from an array, by position.
    if !text.starts_with('{') {
        return Err("the arguments must be an object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| legible_line(&error.to_string()))
}

/// A number of a range; the usual one if there is none.
pub(crate) fn within(name: &str, given: Option<usize>, usual: usize, most: usize) -> Result<usize, String> {
    match given {
        None => Ok(usual),
        Some(given) if (1..=most).contains(&given) => Ok(given),
        Some(given) => Err(format!("`{name}` must be from 1 to {most}, not {given}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(text: &str) -> Result<AskArguments, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read(Some(&raw))
    }

    #[test]
    fn what_is_missing_unknown_or_of_another_kind_is_named() {
        for (text, word) in [
            ("{}", "prompt"),
            (r#"{"prompt": 1}"#, "string"),
            (r#"{"prompt": "x", "workdir": "/w"}"#, "workdir"),
            (r#"["x"]"#, "object"),
            (r#"{"prompt": "x", "workspace": 7}"#, "string"),
        ] {
            let error = ask(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let all = ask(r#"{"prompt": "x", "workspace": "/w", "agent": null}"#).unwrap();
        assert_eq!((all.prompt.as_str(), all.workspace, all.agent), ("x", Some("/w".into()), None));
    }

    #[test]
    fn numbers_are_held_to_their_range() {
        assert_eq!(within("limit", None, 5, 9), Ok(5));
        assert_eq!(within("limit", Some(9), 5, 9), Ok(9));
        assert!(within("limit", Some(0), 5, 9).is_err() && within("limit", Some(10), 5, 9).is_err());
    }

    proptest! {
        #[test]
        fn no_arguments_are_too_odd(text in "\\PC{0,60}") {
            if let Ok(raw) = RawValue::from_string(text) {
                let read: Result<ReadArguments, String> = read(Some(&raw));
                if let Err(error) = read {
                    prop_assert!(!error.contains('\n'));
                }
            }
        }
    }
}
