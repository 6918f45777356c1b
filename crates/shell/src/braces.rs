//! Braces: the words that `{a,b}` and `{1..9}` make of one word. Knows marked characters, no quotes.

use super::Unclear;
use super::quoting::{Quotes, ShellChar};
use super::word::WordPart;
use crate::limits::SHELL_ALTERNATIVES;

/// All words that the braces in one word produce.
pub(super) fn braces(marks: Vec<ShellChar>) -> Result<Vec<Vec<ShellChar>>, Unclear> {
    let too_many = || Unclear::from("its braces make too many words");
    if first_group(&marks, 0).is_some() && marks.iter().any(|mark| matches!(mark, ShellChar::Plain('~'))) {
        return Err("a brace and a tilde are in one word".into());
    }
    let parts = has_dots(&marks) || marks.iter().any(|mark| matches!(mark, ShellChar::Plain(',')));
    if parts && !are_balanced(&marks) {
        return Err("its braces are not balanced".into());
    }
    let mut done = Vec::new();
    let mut open = vec![(marks, 0)];
    while let Some((marks, from)) = open.pop() {
        let Some((start, commas, end)) = first_group(&marks, from) else {
            done.push(marks);
            if done.len() > SHELL_ALTERNATIVES {
                return Err(too_many());
            }
            continue;
        };
        let (before, group, after) = (&marks[..start], &marks[start + 1..end], &marks[end + 1..]);
        // Push the last one first, so that they come out in order.
        for alternative in alternatives(group, start + 1, &commas)?.into_iter().rev() {
            let next = start + if commas.is_empty() { alternative.len() } else { 0 };
            open.push(([before, &alternative, after].concat(), next));
        }
        if open.len() > SHELL_ALTERNATIVES {
            return Err(too_many());
        }
    }
    Ok(done)
}

/// We do not follow a word if bash sees a group across an unmatched closing brace.
fn are_balanced(marks: &[ShellChar]) -> bool {
    let mut depth = 0_usize;
    for mark in marks {
        match mark {
            ShellChar::Plain('{') => depth += 1,
            ShellChar::Plain('}') if depth == 0 => return false,
            ShellChar::Plain('}') => depth -= 1,
            ShellChar::Plain(_) | ShellChar::Quoted(_) | ShellChar::Expanded(_) | ShellChar::Open(..) => {}
        }
    }
    depth == 0
}

/// The parts between the commas, whose positions count from the start of the word; without commas, the values
/// of a range.
fn alternatives(group: &[ShellChar], begin: usize, commas: &[usize]) -> Result<Vec<Vec<ShellChar>>, Unclear> {
    if commas.is_empty() {
        return range(group);
    }
    let mut rest = group;
    let mut at = begin;
    let mut parts = Vec::new();
    for comma in commas {
        parts.push(rest[..comma - at].to_vec());
        rest = &rest[comma - at + 1..];
        at = comma + 1;
    }
    parts.push(rest.to_vec());
    Ok(parts)
}

/// `{1..9}` and `{a..e}`, also with a step. We do not follow a sequence with too many words; a text that is no
/// sequence stays unchanged.
fn range(group: &[ShellChar]) -> Result<Vec<Vec<ShellChar>>, Unclear> {
    let unknown = || Ok(vec![vec![ShellChar::Open(WordPart::Unknown, Quotes::None)]]);
    let text: Option<String> = group
        .iter()
        .map(|mark| match mark {
            ShellChar::Plain(character) => Some(*character),
            ShellChar::Quoted(_) | ShellChar::Expanded(_) | ShellChar::Open(..) => None,
        })
        .collect();
    // Bash makes no sequence from quoted text or from a variable.
    let Some(text) = text else { return unknown() };
    let mut ends = text.splitn(3, "..");
    let (first, last, step) = (ends.next().unwrap_or_default(), ends.next().unwrap_or_default(), ends.next());
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_alphabetic);
    let step = match step.map(number) {
        None => 1,
        Some(Some(step)) => step.unsigned_abs().max(1),
        Some(None) => return unknown(),
    };
    let counted = |first: i64, last: i64| -> Result<Vec<i64>, Unclear> {
        if first.abs_diff(last) / step >= SHELL_ALTERNATIVES as u64 {
            return Err("its braces make too many words".into());
        }
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let count = i64::try_from(first.abs_diff(last)).unwrap_or(i64::MAX) / step;
        Ok((0..=count).map(|index| first + index * step * if last < first { -1 } else { 1 }).collect())
    };
    let is_filled =
        |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let items: Vec<String> = match (number(first), number(last), letter(first), letter(last)) {
        (Some(first_number), Some(last_number), _, _) => {
            let width = match is_filled(first) || is_filled(last) {
                true => first.len().max(last.len()),
                false => 0,
            };
            let numbers = counted(first_number, last_number)?;
            numbers.iter().map(|number| format!("{number:0width$}")).collect()
        }
        // Between capital and small letters there are characters with a meaning in bash.
        (_, _, Some(first), Some(last)) if first.is_ascii_lowercase() == last.is_ascii_lowercase() => {
            let letters = counted(i64::from(u32::from(first)), i64::from(u32::from(last)))?;
            letters
                .iter()
                .filter_map(|code| u8::try_from(*code).ok())
                .map(|code| char::from(code).to_string())
                .collect()
        }
        (_, _, Some(_), Some(_)) => return Err("a sequence of letters can't be followed".into()),
        _ if is_number(first) && is_number(last) => return Err("its braces make too many words".into()),
        _ => return unknown(),
    };
    Ok(items.iter().map(|item| item.chars().map(ShellChar::Plain).collect()).collect())
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
}

/// A number larger than people write does not count.
fn number(text: &str) -> Option<i64> {
    (is_number(text) && text.len() < 12).then(|| text.parse().ok()).flatten()
}

/// The first `{…}` with commas of its own, or with `..` between its ends.
fn first_group(marks: &[ShellChar], from: usize) -> Option<(usize, Vec<usize>, usize)> {
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<(usize, Vec<usize>, usize)> = None;
    for (index, mark) in marks.iter().enumerate().skip(from) {
        match mark {
            ShellChar::Plain('{') => stack.push((index, Vec::new())),
            ShellChar::Plain(',') => {
                if let Some((_, commas)) = stack.last_mut() {
                    commas.push(index);
                }
            }
            ShellChar::Plain('}') => {
                if let Some((start, commas)) = stack.pop()
                    && (!commas.is_empty() || has_dots(&marks[start + 1..index]))
                    && best.as_ref().is_none_or(|(known, _, _)| start < *known)
                {
                    best = Some((start, commas, index));
                }
            }
            ShellChar::Plain(_) | ShellChar::Quoted(_) | ShellChar::Expanded(_) | ShellChar::Open(..) => {}
        }
    }
    best
}

fn has_dots(marks: &[ShellChar]) -> bool {
    marks.windows(2).any(|pair| matches!(pair, [ShellChar::Plain('.'), ShellChar::Plain('.')]))
}
