//! Lines as other agents count them: from the first, which is 1, to the last, which is included.

use serde_json::{Map, Value};

use super::aliases::plain;

const FIRST: &[&str] =
    &["start_line", "line_start", "from_line", "first_line", "start", "start_line_one_indexed", "line"];
const LAST: &[&str] =
    &["end_line", "line_end", "to_line", "last_line", "end", "end_line_one_indexed_inclusive"];
const BOTH: &[&str] = &["view_range", "line_range", "range"];

/// The same call with `offset` and `limit`, for a tool that has them.
pub(super) fn as_offset_and_limit(
    known: &Map<String, Value>,
    mut given: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    if !known.contains_key("offset") || !known.contains_key("limit") {
        return Ok(given);
    }
    let (first, last) = (take(&mut given, FIRST)?, take(&mut given, LAST)?);
    let both = take(&mut given, BOTH)?;
    let (name, first, last) = match (first, last, both) {
        (None, None, None) => return Ok(given),
        (first, last, None) => {
            let name = first.as_ref().or(last.as_ref()).map(|field| field.0.clone()).unwrap_or_default();
            let number =
                |field: Option<(String, Value)>| field.map(|(name, value)| number(&name, &value)).transpose();
            (name, number(first)?, number(last)?)
        }
        (None, None, Some((name, range))) => match pair(&range) {
            Some((first, last)) => (name, Some(first), last),
            None => return Err(format!("field `{name}` must be two line numbers, like [10, 20]")),
        },
        (_, _, Some((name, _))) => {
            return Err(format!("field `{name}` says where to begin and end; give only it"));
        }
    };
    if let Some(other) = ["offset", "limit"].into_iter().find(|other| given.contains_key(*other)) {
        return Err(format!("fields `{name}` and `{other}` both say which lines; give one of them"));
    }
    // Some models count from 0.
    let first = first.map_or(1, |first| first.max(1));
    if first > 1 {
        given.insert("offset".to_owned(), (first - 1).into());
    }
    // -1 is the end of the file.
    if let Some(last) = last.filter(|last| *last >= 0) {
        let count = last.checked_sub(first - 1).filter(|count| *count > 0);
        let count = count.ok_or_else(|| format!("the last line, {last}, lies before the first, {first}"))?;
        given.insert("limit".to_owned(), count.into());
    }
    Ok(given)
}

/// The one field of these that was given.
fn take(given: &mut Map<String, Value>, names: &[&str]) -> Result<Option<(String, Value)>, String> {
    let is_one = |name: &&String| names.iter().any(|other| plain(other) == plain(name));
    let found: Vec<String> = given.keys().filter(is_one).cloned().collect();
    match found.as_slice() {
        [one, other, ..] => Err(format!("fields `{one}` and `{other}` mean the same; give one of them")),
        [name] => Ok(given.remove(name).map(|value| (name.clone(), value))),
        [] => Ok(None),
    }
}

fn number(name: &str, value: &Value) -> Result<i64, String> {
    whole(value).ok_or_else(|| format!("field `{name}` must be a line number"))
}

fn pair(value: &Value) -> Option<(i64, Option<i64>)> {
    let written = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    match written.as_ref().unwrap_or(value).as_array()?.as_slice() {
        [first] => Some((whole(first)?, None)),
        [first, last] => Some((whole(first)?, Some(whole(last)?))),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    let of_float = || value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64);
    let of_text = || value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_i64().or_else(of_float).or_else(of_text)
}
