//! Braces: the words that `{a,b}` and `{1..9}` make of one. Knows marks, no quotes.

use super::Unclear;
use super::marks::{Mark, Quotes};
use super::word::Piece;
use crate::limits::SHELL_ALTERNATIVES;

/// All words that braces make of one.
pub(super) fn braces(marks: Vec<Mark>) -> Result<Vec<Vec<Mark>>, Unclear> {
    let too_many = || Unclear::from("its braces make too many words");
    if first_group(&marks, 0).is_some() && marks.iter().any(|mark| matches!(mark, Mark::Plain('~'))) {
        return Err("a brace and a tilde are in one word".into());
    }
    let parts = has_dots(&marks) || marks.iter().any(|mark| matches!(mark, Mark::Plain(',')));
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
        // Pushed from the last to the first, so that they come out in order.
        for alternative in alternatives(group, start + 1, &commas).into_iter().rev() {
            let next = start + if commas.is_empty() { alternative.len() } else { 0 };
            open.push(([before, &alternative, after].concat(), next));
        }
        if open.len() > SHELL_ALTERNATIVES {
            return Err(too_many());
        }
    }
    Ok(done)
}

/// Where bash sees a group across a brace that closes nothing, nobody wants to follow it.
fn are_balanced(marks: &[Mark]) -> bool {
    let mut depth = 0_usize;
    for mark in marks {
        match mark {
            Mark::Plain('{') => depth += 1,
            Mark::Plain('}') if depth == 0 => return false,
            Mark::Plain('}') => depth -= 1,
            Mark::Plain(_) | Mark::Quoted(_) | Mark::Expanded(_) | Mark::Open(..) => {}
        }
    }
    depth == 0
}

/// What stands between the commas, which are counted from where the word begins; else what a range counts.
fn alternatives(group: &[Mark], begin: usize, commas: &[usize]) -> Vec<Vec<Mark>> {
    if commas.is_empty() {
        return range(group).unwrap_or_else(|| vec![vec![Mark::Open(Piece::Unknown, Quotes::None)]]);
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
    parts
}

/// `{1..9}` and `{a..e}`; `None` for steps, filled numbers, and what is too long to be written out.
fn range(group: &[Mark]) -> Option<Vec<Vec<Mark>>> {
    let text: Option<String> = group
        .iter()
        .map(|mark| match mark {
            Mark::Plain(character) => Some(*character),
            Mark::Quoted(_) | Mark::Expanded(_) | Mark::Open(..) => None,
        })
        .collect();
    let text = text?;
    let (first, last) = text.split_once("..")?;
    let items: Vec<String> = match (number(first), number(last)) {
        (Some(first), Some(last)) if first.abs_diff(last) < SHELL_ALTERNATIVES as u64 => {
            (first.min(last)..=first.max(last)).map(|number| number.to_string()).collect()
        }
        _ => {
            let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii_lowercase);
            let (first, last) = (letter(first)?, letter(last)?);
            (first.min(last)..=first.max(last)).map(String::from).collect()
        }
    };
    Some(items.iter().map(|item| item.chars().map(Mark::Plain).collect()).collect())
}

fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_filled = digits.len() > 1 && digits.starts_with('0');
    (digits.len() < 10 && !is_filled).then(|| text.parse().ok()).flatten()
}

/// The first `{…}` that has commas of its own, or `..` between its ends.
fn first_group(marks: &[Mark], from: usize) -> Option<(usize, Vec<usize>, usize)> {
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<(usize, Vec<usize>, usize)> = None;
    for (index, mark) in marks.iter().enumerate().skip(from) {
        match mark {
            Mark::Plain('{') => stack.push((index, Vec::new())),
            Mark::Plain(',') => {
                if let Some((_, commas)) = stack.last_mut() {
                    commas.push(index);
                }
            }
            Mark::Plain('}') => {
                if let Some((start, commas)) = stack.pop()
                    && (!commas.is_empty() || has_dots(&marks[start + 1..index]))
                    && best.as_ref().is_none_or(|(known, _, _)| start < *known)
                {
                    best = Some((start, commas, index));
                }
            }
            Mark::Plain(_) | Mark::Quoted(_) | Mark::Expanded(_) | Mark::Open(..) => {}
        }
    }
    best
}

fn has_dots(marks: &[Mark]) -> bool {
    marks.windows(2).any(|pair| matches!(pair, [Mark::Plain('.'), Mark::Plain('.')]))
}
