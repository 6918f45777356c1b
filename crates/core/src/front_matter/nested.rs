//! Values that hold others: lists and keys below a key, each with its line. Reads what people write in such
//! files, not all of YAML: it has no anchors and no tags.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::{FrontMatterError, block_text, flow, is_blank, key_and_value, scalar, without_comment};
use crate::limits::FRONT_MATTER_DEPTH;

/// A value and the line it begins in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontNode {
    /// The value.
    pub value: NodeValue,
    /// Where it is in the file, from 1 on.
    pub line: usize,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeValue {
    /// Without quotes: it may mean a number, `true`, `false` or `null`.
    Plain(String),
    /// With quotes, or a text of several lines.
    Quoted(String),
    /// Items one after another.
    List(Vec<FrontNode>),
    /// Keys with their values, in their order.
    Map(Vec<(String, FrontNode)>),
}

impl FrontNode {
    pub(super) fn new(line: usize, value: NodeValue) -> Self {
        Self { value, line }
    }

    /// A text, however it is written.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Plain(text) | NodeValue::Quoted(text) => Some(text),
            NodeValue::List(_) | NodeValue::Map(_) => None,
        }
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Plain(text) => plain_json(text),
            NodeValue::Quoted(text) => Value::String(text.clone()),
            NodeValue::List(items) => items.iter().map(Self::to_json).collect(),
            NodeValue::Map(entries) => Value::Object(
                entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }
}

fn plain_json(text: &str) -> Value {
    match text {
        "" | "null" | "~" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => match (text.parse::<i64>(), text.parse::<f64>().ok().and_then(Number::from_f64)) {
            (Ok(number), _) => number.into(),
            // `inf` and similar words are text, not numbers.
            (Err(_), Some(number)) if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Value::Number(number)
            }
            (Err(_), Some(_) | None) => Value::String(text.to_owned()),
        },
    }
}

/// A line of the block and its number.
#[derive(Clone, Debug)]
struct Line<'a> {
    text: Cow<'a, str>,
    number: usize,
}

impl Line<'_> {
    fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    fn item(&self) -> Option<&str> {
        let text = self.text.trim_start();
        text.strip_prefix("- ").or_else(|| (text == "-").then_some(""))
    }
}

/// The value behind a key in line `line`, and what is below it.
pub(super) fn node(value: &str, below: &[&str], line: usize) -> Result<FrontNode, FrontMatterError> {
    let lines: Vec<Line<'_>> = (below.iter().enumerate())
        .map(|(index, text)| Line { text: Cow::Borrowed(*text), number: line + 1 + index })
        .collect();
    value_node(value, &lines, line, FRONT_MATTER_DEPTH)
}

fn value_node(
    value: &str,
    below: &[Line<'_>],
    line: usize,
    depth: usize,
) -> Result<FrontNode, FrontMatterError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(FrontMatterError::new(line, "there is too much inside of each other"));
    };
    let block = without_comment(value);
    if let Some(style @ ('|' | '>')) = block.chars().next()
        && block[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9'))
    {
        let texts: Vec<&str> = below.iter().map(|line| &*line.text).collect();
        return Ok(FrontNode::new(line, NodeValue::Quoted(block_text(style, &texts))));
    }
    if block.starts_with(['{', '[']) {
        let texts = std::iter::once(value).chain(below.iter().map(|line| &*line.text));
        return flow::node(&texts.collect::<Vec<_>>().join("\n"), line, depth);
    }
    let written: Vec<Line<'_>> = below.iter().filter(|line| !is_blank(&line.text)).cloned().collect();
    match written.first() {
        Some(first) if block.is_empty() && first.item().is_some() => list(&written, line, depth),
        Some(first) if block.is_empty() && key_and_value(first.text.trim_start()).is_some() => {
            map(&written, line, depth)
        }
        Some(_) | None => {
            // The text continues below; a key there is indented too far.
            if let Some(key) = written.iter().find(|line| key_and_value(line.text.trim_start()).is_some()) {
                return Err(FrontMatterError::new(
                    key.number,
                    "a key is indented as if it were part of a text",
                ));
            }
            let texts = std::iter::once(value).chain(written.iter().map(|line| line.text.trim()));
            let whole = texts.collect::<Vec<_>>().join(" ");
            let whole = whole.trim();
            let text = scalar(whole, line)?;
            let is_quoted = whole.starts_with(['"', '\'']);
            Ok(FrontNode::new(line, if is_quoted { NodeValue::Quoted(text) } else { NodeValue::Plain(text) }))
        }
    }
}

/// Whether items indented as far as the first line belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SameIndent {
    /// They belong to the key.
    Belongs,
    Follows,
}

/// What belongs to the first line: the ones that are indented more, and items right below a key without
/// indentation.
fn block_end(lines: &[Line<'_>], indent: usize, items: SameIndent) -> usize {
    let belongs = |line: &&Line<'_>| {
        let is_item = items == SameIndent::Belongs && line.indent() == indent && line.item().is_some();
        line.indent() > indent || is_item
    };
    1 + lines[1..].iter().take_while(belongs).count()
}

fn list(lines: &[Line<'_>], line: usize, depth: usize) -> Result<FrontNode, FrontMatterError> {
    let (mut items, mut rest) = (Vec::new(), lines);
    let indent = lines.first().map_or(0, Line::indent);
    while let Some(first) = rest.first() {
        let Some(item) = first.item().filter(|_| first.indent() == indent) else {
            return Err(FrontMatterError::new(first.number, "an item is expected here: `- value`"));
        };
        let end = block_end(rest, indent, SameIndent::Follows);
        let below = &rest[1..end];
        let content = item.trim_start();
        items.push(match key_and_value(content) {
            Some(_) if !content.starts_with(['"', '\'', '{', '[']) => {
                // An item's other keys are indented as far as its first key.
                let text = format!("{}{content}", " ".repeat(first.text.len() - content.len()));
                let head = Line { text: Cow::Owned(text), number: first.number };
                let lines: Vec<Line<'_>> = std::iter::once(head).chain(below.iter().cloned()).collect();
                map(&lines, first.number, depth)?
            }
            Some(_) | None => value_node(content.trim_end(), below, first.number, depth)?,
        });
        rest = &rest[end..];
    }
    Ok(FrontNode::new(line, NodeValue::List(items)))
}

fn map(lines: &[Line<'_>], line: usize, depth: usize) -> Result<FrontNode, FrontMatterError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(FrontMatterError::new(line, "there is too much inside of each other"));
    };
    let (mut entries, mut rest) = (Vec::<(String, FrontNode)>::new(), lines);
    let indent = lines.first().map_or(0, Line::indent);
    while let Some(first) = rest.first() {
        let found = key_and_value(first.text.trim_start()).filter(|_| first.indent() == indent);
        let Some((key, value)) = found else {
            return Err(FrontMatterError::new(first.number, "a key is expected here: `name: value`"));
        };
        if entries.iter().any(|(known, _)| known == key) {
            return Err(FrontMatterError::new(first.number, format!("`{key}` is there twice")));
        }
        let items = match without_comment(value).is_empty() {
            true => SameIndent::Belongs,
            false => SameIndent::Follows,
        };
        let end = block_end(rest, indent, items);
        let node = value_node(value, &rest[1..end], first.number, depth)?;
        entries.push((key.to_owned(), node));
        rest = &rest[end..];
    }
    Ok(FrontNode::new(line, NodeValue::Map(entries)))
}
