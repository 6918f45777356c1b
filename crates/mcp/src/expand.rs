//! `${NAME}` and `${NAME:-default}` in what a configuration says of a server, resolved when the server is
//! started. What comes of it is given to the server alone.

/// Why a text can't be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the environment variable {0} is not set; set it, or write ${{{0}:-DEFAULT}}")]
    Unset(String),
    #[error("{0} holds a key of attache's own, which a project's server does not get")]
    OwnKey(String),
    #[error("`${{{0}}}` is not understood here; ${{NAME}} and ${{NAME:-DEFAULT}} are")]
    Unknown(String),
}

/// `text` with references to variables replaced. A `$` before anything else is a `$`.
pub(crate) fn expand(
    text: &str,
    lookup: impl Fn(&str) -> Result<Option<String>, Unresolved>,
) -> Result<String, Unresolved> {
    let (mut resolved, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((reference, after)) = behind.split_once('}') else { break };
        resolved.push_str(before);
        resolved.push_str(&value(reference, &lookup)?);
        rest = after;
    }
    resolved.push_str(rest);
    Ok(resolved)
}

fn value(
    reference: &str,
    lookup: impl Fn(&str) -> Result<Option<String>, Unresolved>,
) -> Result<String, Unresolved> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    // As some editors write it.
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.chars().all(is_letter) && name.starts_with(|c: char| !c.is_ascii_digit())
    };
    if !is_name(name) {
        return Err(Unresolved::Unknown(reference.chars().take(64).collect()));
    }
    let set = lookup(name)?.filter(|value| default.is_none() || !value.is_empty());
    set.or(default.map(str::to_owned)).ok_or_else(|| Unresolved::Unset(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let lookup = |name: &str| match name {
            "KEY" => Some("k".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, |name| Ok(lookup(name))).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_replaced_and_the_rest_stays() {
        for (text, result) in [
            ("plain $HOME $ {x}", "plain $HOME $ {x}"),
            ("a${KEY}b${KEY}", "akbk"),
            ("${NONE:-d e}", "d e"),
            ("${EMPTY:-d}|${EMPTY}|${NONE:-}", "d||"),
            ("${env:KEY}", "k"),
            ("${KEY", "${KEY"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(result), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_its_neighbours_are_not_printed() {
        assert_eq!(
            expanded("${KEY} ${NONE}").unwrap_err(),
            "the environment variable NONE is not set; set it, or write ${NONE:-DEFAULT}"
        );
        assert!(expanded("${input:token}").unwrap_err().contains("`${input:token}` is not understood"));
    }
}
