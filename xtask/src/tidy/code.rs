//! Rust source as rules read it: without the text of comments and literals, and without what only tests
//! compile. It is no parser: it knows brackets, lines and rustfmt's layout, no types.

/// Marks an item that only tests compile.
const TEST_ITEM: &str = "#[cfg(test)]";

/// What a source file says to the compiler.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    text: String,
    is_product: Vec<bool>,
}

impl Code {
    pub(super) fn of(text: &str) -> Self {
        let text = code(text);
        let is_product = product_lines(&text);
        Self { text, is_product }
    }

    /// Numbered lines of code that are compiled into the product.
    pub(super) fn product(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().zip(&self.is_product).enumerate();
        lines.filter(|(_, (_, is_product))| **is_product).map(|(index, (line, _))| (index + 1, line))
    }
}

/// The code of a file: each comment is spaces, each literal is quotes around spaces. Lines and columns stay.
fn code(text: &str) -> String {
    let mut lexer = Lexer { rest: text, code: String::with_capacity(text.len()) };
    while lexer.step().is_some() {}
    lexer.code
}

/// For each line whether it is compiled into the product: not inside an item behind `#[cfg(test)]`.
fn product_lines(code: &str) -> Vec<bool> {
    let mut product = Vec::new();
    let mut lines = code.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != TEST_ITEM {
            product.push(true);
            continue;
        }
        product.push(false);
        let mut depth = 0_i32;
        for line in lines.by_ref() {
            product.push(false);
            depth += depth_change(line);
            let is_attribute = line.trim_start().starts_with("#[") && line.trim_end().ends_with(']');
            if depth <= 0 && !is_attribute && line.trim_end().ends_with([';', '}', ',']) {
                break;
            }
        }
    }
    product
}

/// By how much a line of code opens more brackets than it closes.
pub(super) fn depth_change(line: &str) -> i32 {
    line.chars().map(|c| if "{([".contains(c) { 1 } else { -i32::from("})]".contains(c)) }).sum()
}

struct Lexer<'a> {
    rest: &'a str,
    code: String,
}

impl Lexer<'_> {
    /// Takes the next token that can hide brackets, or one character of code; `None` at the end.
    fn step(&mut self) -> Option<()> {
        let first = self.rest.chars().next()?;
        let follows_word = self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if let Some(length) = raw_string(self.rest).filter(|_| !follows_word) {
            self.literal(length);
        } else if first == '"' {
            self.literal(quoted(self.rest, '"'));
        } else if let Some(length) = character(self.rest) {
            self.literal(length);
        } else {
            self.code.push(first);
            self.rest = &self.rest[first.len_utf8()..];
        }
        Some(())
    }

    fn blank(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.code.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }

    /// Keeps the quotes: that there is a literal matters, what it says does not.
    fn literal(&mut self, length: usize) {
        let start = self.code.len();
        self.blank(length);
        self.code.replace_range(start..=start, "\"");
        self.code.pop();
        self.code.push('"');
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at.min(text.len())
}

/// `r"…"` and `r#"…"#`, with `b` or `c` before it.
fn raw_string(text: &str) -> Option<usize> {
    let start = text.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let inner = start.trim_start_matches('#');
    let hashes = &start[..start.len() - inner.len()];
    let content = inner.strip_prefix('"')?;
    let end = content.find(&format!("\"{hashes}"))?;
    Some(text.len() - content.len() + end + 1 + hashes.len())
}

fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            _ if c == quote && !is_escaped => return at + 1,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// A character between quotes; a lifetime has no second one.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        return Some(quoted(text, '\''));
    }
    inner[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_comments_and_literals_are_no_code() {
        for hidden in [
            "// }",
            "/* } /* } */ } */",
            "\"}\"",
            "\"\\\"}\"",
            "r\"}\"",
            "r#\"}\"}\"#",
            "b\"}\"",
            "'}'",
            "b'}'",
            "'\\''",
            "'\\u{7d}'",
        ] {
            assert_eq!(depth_change(&code(hidden)), 0, "{hidden}");
            assert_eq!(code(hidden).chars().count(), hidden.chars().count(), "{hidden}");
        }
        assert_eq!(code("fn f<'a>(x: &'a str) {"), "fn f<'a>(x: &'a str) {");
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("f(\"a\")"), "f(\" \")");
    }

    fn product(text: &str) -> String {
        Code::of(text).product().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn only_the_item_behind_the_mark_is_left_out() {
        for item in [
            "mod tests;",
            "use a::b;",
            "use a::{\n    b,\n    c,\n};",
            "#[allow(dead_code)]\nfn f(\n    a: u8,\n) -> u8 {\n    let x = \"}\";\n    a\n}",
            "mod tests {\n    fn f() {\n        r#\"\n}\n\"#;\n    }\n}",
            "pub(crate) const A: u8 = 1;",
            "struct A;",
            "impl A {}",
        ] {
            let text = format!("struct B;\n#[cfg(test)]\n{item}\nstruct C;\n");
            assert_eq!(product(&text), "struct B;\nstruct C;", "{item}");
        }
        assert_eq!(
            product("struct A {\n    #[cfg(test)]\n    b: u8,\n    c: u8,\n}"),
            "struct A {\n    c: u8,\n}"
        );
    }
}
