//! Front matter: the `---` block of `key: value` lines at the top of a Markdown file. Reads the part of YAML
//! that such files use, line by line. `nested` reads a key with values below it only when a caller asks for it,
//! so YAML that is not understood does no harm in a key that no caller uses. Pure.

mod flow;
mod nested;

use thiserror::Error;

use crate::nearest::slip_of;

pub use nested::{FrontNode, NodeValue};

/// A file, split into block and body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    fields: Vec<FrontField>,
    /// The lines of the block.
    lines: Vec<&'a str>,
    /// The text behind the block; the whole text if there is no block.
    pub body: &'a str,
}

/// One key with its value and the line it is in, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontField {
    /// The key as written.
    pub key: String,
    /// What it is set to.
    pub value: FrontValue,
    /// Where it is in the file, from 1 on.
    pub line: usize,
    /// How many of the following lines belong to it.
    below: usize,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontValue {
    /// A scalar; numbers and booleans as they are written.
    Text(String),
    /// `[a, b]`, or lines that begin with `- `.
    List(Vec<String>),
    /// Keys below a key or in `{…}`, as they are written; `FrontMatter::node` reads them.
    Nested(String),
}

/// What is wrong with a file, and in which line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct FrontMatterError {
    /// Where it is in the file, from 1 on.
    pub line: usize,
    /// What is wrong, in words.
    pub problem: String,
}

impl FrontMatterError {
    /// A problem in a line.
    pub fn new(line: usize, problem: impl Into<String>) -> Self {
        Self { line, problem: problem.into() }
    }
}

/// The line that begins and ends a block.
const FENCE: &str = "---";

impl<'a> FrontMatter<'a> {
    /// A file without a block has no fields; a block that never ends is an error.
    pub fn parse(text: &'a str) -> Result<Self, FrontMatterError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut rest = text;
        if take_line(&mut rest).is_none_or(|line| line.trim_end() != FENCE) {
            return Ok(Self { body: text, ..Self::default() });
        }
        let mut lines = Vec::new();
        loop {
            match take_line(&mut rest) {
                Some(line) if line.trim_end() == FENCE => break,
                Some(line) => lines.push(line.trim_end()),
                None => return Err(FrontMatterError::new(1, "the block has no end: a line `---`")),
            }
        }
        Ok(Self { fields: fields(&lines)?, lines, body: rest })
    }

    /// All fields, in their order.
    pub fn fields(&self) -> &[FrontField] {
        &self.fields
    }

    /// The field of that name.
    pub fn field(&self, key: &str) -> Option<&FrontField> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Keys that nobody reads and that are nearly these. Others are those of other programs.
    pub fn slips(&self, known: &[&str]) -> Vec<FrontMatterError> {
        let unknown = self.fields.iter().filter(|field| !known.contains(&field.key.as_str()));
        let slip = |field: &FrontField| {
            let near = slip_of(&field.key, known.iter().copied())?;
            let problem = format!("there is no key `{}` (did you mean `{near}`?)", field.key);
            Some(FrontMatterError::new(field.line, problem))
        };
        unknown.filter_map(slip).collect()
    }

    /// That a key is missing, with what it is for; in the line of the one that may have been meant for it.
    pub fn missing(&self, key: &str, purpose: &str) -> FrontMatterError {
        if let Some(field) = self.field(key) {
            return FrontMatterError::new(field.line, format!("`{key}` is empty: {purpose}"));
        }
        let near = self.fields.iter().find(|field| slip_of(&field.key, [key]).is_some());
        let (line, written) = match near {
            Some(field) => (field.line, format!("; is `{}` a slip of it?", field.key)),
            None => (1, String::new()),
        };
        FrontMatterError::new(line, format!("`{key}` is missing: {purpose}{written}"))
    }

    /// The value of a key with everything below it; `None` when it is missing.
    pub fn node(&self, key: &str) -> Result<Option<FrontNode>, FrontMatterError> {
        let Some(field) = self.field(key) else { return Ok(None) };
        let first = field.line - FIRST_LINE;
        let value = key_and_value(self.lines[first]).map_or("", |(_, value)| value);
        let below = &self.lines[first + 1..=first + field.below];
        nested::node(value, below, field.line).map(Some)
    }

    /// The text of a key; `None` when it is missing or empty, an error when it holds something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>, FrontMatterError> {
        let Some(field) = self.field(key) else { return Ok(None) };
        match &field.value {
            FrontValue::Text(text) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            FrontValue::List(_) | FrontValue::Nested(_) => {
                Err(FrontMatterError::new(field.line, format!("`{key}` must be a text")))
            }
        }
    }

    /// The words of a key: a list, or a text with commas.
    pub fn list(&self, key: &str) -> Result<Option<Vec<&str>>, FrontMatterError> {
        let Some(field) = self.field(key) else { return Ok(None) };
        match &field.value {
            FrontValue::List(items) => Ok(Some(items.iter().map(String::as_str).collect())),
            FrontValue::Text(text) => {
                Ok(Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()))
            }
            FrontValue::Nested(_) => {
                Err(FrontMatterError::new(field.line, format!("`{key}` must be a list")))
            }
        }
    }
}

fn take_line<'a>(rest: &mut &'a str) -> Option<&'a str> {
    if rest.is_empty() {
        return None;
    }
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    *rest = behind;
    Some(line)
}

/// The first line of the block is line 2 of the file.
const FIRST_LINE: usize = 2;

fn fields(lines: &[&str]) -> Result<Vec<FrontField>, FrontMatterError> {
    let mut fields: Vec<FrontField> = Vec::new();
    let mut place = 0;
    while place < lines.len() {
        let (text, line) = (lines[place], place + FIRST_LINE);
        place += 1;
        if is_blank(text) {
            continue;
        }
        if text.starts_with([' ', '\t', '-']) {
            return Err(FrontMatterError::new(line, "a key is expected here: `name: value`"));
        }
        let Some((key, value)) = key_and_value(text) else {
            return Err(FrontMatterError::new(line, "not a key: `name: value` is expected"));
        };
        if fields.iter().any(|field| field.key == key) {
            return Err(FrontMatterError::new(line, format!("`{key}` is there twice")));
        }
        // YAML allows the items of a list to be indented as little as their key.
        let may_list = without_comment(value).is_empty();
        let is_item = |line: &str| may_list && (line.starts_with("- ") || line == "-");
        let belongs = |line: &&&str| is_blank(line) || line.starts_with([' ', '\t']) || is_item(line);
        let below = lines[place..].iter().take_while(belongs).count();
        let value = value_of(value, &lines[place..place + below], line)?;
        place += below;
        fields.push(FrontField { key: key.to_owned(), value, line, below });
    }
    Ok(fields)
}

fn is_blank(line: &str) -> bool {
    line.trim_start().is_empty() || line.trim_start().starts_with('#')
}

/// `key: value` or `key:`; removes quotes around the key.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = match line.split_once(": ") {
        Some((key, value)) => (key, value.trim()),
        None => (line.strip_suffix(':')?, ""),
    };
    let key = key.trim();
    let quoted = |quote: char| key.strip_prefix(quote).and_then(|key| key.strip_suffix(quote));
    let key = quoted('"').or_else(|| quoted('\'')).unwrap_or(key);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    (!key.is_empty() && key.chars().all(is_name)).then_some((key, value))
}

fn value_of(value: &str, below: &[&str], line: usize) -> Result<FrontValue, FrontMatterError> {
    let block = without_comment(value);
    if let Some(style @ ('|' | '>')) = block.chars().next()
        && block[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9'))
    {
        return Ok(FrontValue::Text(block_text(style, below)));
    }
    let written: Vec<&str> = below.iter().copied().filter(|line| !is_blank(line)).collect();
    if block.is_empty() {
        return nested(&written, below, line);
    }
    if block.starts_with('{') {
        return Ok(FrontValue::Nested([&[block], below].concat().join("\n")));
    }
    if block.starts_with('[') {
        // A list may continue below.
        let whole = [&[block], written.as_slice()].concat().join(" ");
        return inline_list(without_comment(&whole), line);
    }
    let whole = match written.is_empty() {
        true => value.to_owned(),
        // A plain text continues in indented lines.
        false => [&[value], written.as_slice()]
            .concat()
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" "),
    };
    Ok(FrontValue::Text(scalar(&whole, line)?))
}

/// The value below a key that has none in its own line: items, keys, or a text.
fn nested(written: &[&str], below: &[&str], line: usize) -> Result<FrontValue, FrontMatterError> {
    let Some(first) = written.first().map(|line| line.trim_start()) else {
        return Ok(FrontValue::Text(String::new()));
    };
    if first == "-" || first.starts_with("- ") {
        let is_plain_list = written.iter().all(|line| {
            let item = line.trim_start();
            (item == "-" || item.starts_with("- ")) && key_and_value(&item[1..]).is_none()
        });
        if is_plain_list {
            let item = |item: &&str| scalar(item.trim_start()[1..].trim(), line);
            return written.iter().map(item).collect::<Result<_, _>>().map(FrontValue::List);
        }
        return Ok(FrontValue::Nested(below.join("\n")));
    }
    if key_and_value(first).is_some() || is_quoted_key(first) {
        return Ok(FrontValue::Nested(below.join("\n")));
    }
    let text: Vec<&str> = written.iter().map(|line| line.trim()).collect();
    Ok(FrontValue::Text(scalar(&text.join(" "), line)?))
}

/// `"a key": value`, as keys with signs are written.
fn is_quoted_key(line: &str) -> bool {
    let mut characters = line.chars();
    let Some(quote @ ('"' | '\'')) = characters.next() else { return false };
    let behind = characters.as_str().split_once(quote).and_then(|(_, behind)| behind.strip_prefix(':'));
    behind.is_some_and(|value| value.is_empty() || value.starts_with(char::is_whitespace))
}

/// `[a, "b, c"]`; a text where something follows the bracket.
fn inline_list(text: &str, line: usize) -> Result<FrontValue, FrontMatterError> {
    let (mut items, mut item, mut quote) = (Vec::new(), String::new(), None);
    for (place, c) in text.char_indices().skip(1) {
        match (quote, c) {
            (None, ',') => items.push(std::mem::take(&mut item)),
            (None, ']') if text[place + 1..].trim().is_empty() => {
                items.push(item);
                let items = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
                return items.map(|item| scalar(item, line)).collect::<Result<_, _>>().map(FrontValue::List);
            }
            (None, ']') => return Ok(FrontValue::Text(text.to_owned())),
            (None, '"' | '\'') if item.trim().is_empty() => {
                quote = Some(c);
                item.push(c);
            }
            (Some(open), c) if c == open => {
                quote = None;
                item.push(c);
            }
            _ => item.push(c),
        }
    }
    Err(FrontMatterError::new(line, "a list has no end: `]`"))
}

/// A text of several lines: `|` keeps them, `>` joins them; an empty line stays one.
fn block_text(style: char, below: &[&str]) -> String {
    let indents = below.iter().filter(|line| !line.trim().is_empty());
    let indent = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let lines = below.iter().map(|line| line.get(indent..).unwrap_or_default());
    let joined = lines.fold(String::new(), |mut text: String, line| {
        let separator = match style {
            _ if text.is_empty() => "",
            '>' if !line.is_empty() && !text.ends_with('\n') => " ",
            _ => "\n",
        };
        text.push_str(separator);
        text.push_str(line);
        text
    });
    joined.trim_end().to_owned()
}

/// A text without its quotes, or without the comment behind it.
fn scalar(text: &str, line: usize) -> Result<String, FrontMatterError> {
    let unfinished = || FrontMatterError::new(line, "a quote has no end");
    match text.chars().next() {
        Some('"') => double_quoted(&text[1..]).map(|(text, _)| text).ok_or_else(unfinished),
        Some('\'') => single_quoted(&text[1..]).map(|(text, _)| text).ok_or_else(unfinished),
        Some(_) | None => Ok(without_comment(text).to_owned()),
    }
}

/// Cuts the comment, which begins with ` #`.
fn without_comment(text: &str) -> &str {
    match text.starts_with('#') {
        true => "",
        false => text.split(" #").next().unwrap_or(text).trim_end(),
    }
}

/// The text up to its closing quote, and the length up to there; the caller handles what follows.
fn double_quoted(text: &str) -> Option<(String, usize)> {
    let (mut found, mut characters) = (String::new(), text.chars());
    loop {
        match characters.next()? {
            '"' => return Some((found, text.len() - characters.as_str().len())),
            '\\' => match characters.next()? {
                'n' => found.push('\n'),
                't' => found.push('\t'),
                'r' => found.push('\r'),
                'u' => {
                    let code = characters.as_str().get(..4)?;
                    found.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                    characters = characters.as_str()[4..].chars();
                }
                other => found.push(other),
            },
            plain => found.push(plain),
        }
    }
}

/// The same for single quotes; a quote within is written twice.
fn single_quoted(text: &str) -> Option<(String, usize)> {
    let (mut found, mut characters) = (String::new(), text.chars());
    loop {
        match characters.next()? {
            '\'' if characters.as_str().starts_with('\'') => {
                characters.next();
                found.push('\'');
            }
            '\'' => return Some((found, text.len() - characters.as_str().len())),
            plain => found.push(plain),
        }
    }
}

#[cfg(test)]
mod tests;
