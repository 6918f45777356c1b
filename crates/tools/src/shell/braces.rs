//! Braces: the words that `{a,b}` and `{1..9}` make of one. Knows marks, no quotes.

use super::marks::{Mark, Quotes};
use super::word::Piece;
use crate::limits::SHELL_ALTERNATIVES;

/// All words that braces make of one; `None` when they are too many.
pub(super) fn braces(marks: Vec<Mark>) -> Option<Vec<Vec<Mark>>> {
    let mut done = Vec::new();
    let mut open = vec![(marks, 0)];
    while let Some((marks, from)) = open.pop() {
        let Some((start, commas, end)) = first_group(&marks, from) else {
            done.push(marks);
            if done.len() > SHELL_ALTERNATIVES {
                return None;
            }
            continue;
        };
        if commas.is_empty() {
            open.push((sequence(marks, start, end), start + 1));
            continue;
        }
        let mut bounds = vec![start];
        bounds.extend(commas);
        bounds.push(end);
        // Pushed from the last to the first, so that they come out in order.
        for pair in bounds.windows(2).rev() {
            let mut word = marks[..start].to_vec();
            word.extend_from_slice(&marks[pair[0] + 1..pair[1]]);
            word.extend_from_slice(&marks[end + 1..]);
            open.push((word, start));
        }
        if open.len() > SHELL_ALTERNATIVES {
            return None;
        }
    }
    Some(done)
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

/// `{1..9}` is some number, `{a..z}` something.
fn sequence(mut marks: Vec<Mark>, start: usize, end: usize) -> Vec<Mark> {
    let digits = |mark: &Mark| matches!(mark, Mark::Plain('0'..='9' | '.' | '-'));
    let piece = if marks[start + 1..end].iter().all(digits) { Piece::Number } else { Piece::Unknown };
    marks.splice(start..=end, [Mark::Open(piece, Quotes::Double)]);
    marks
}
