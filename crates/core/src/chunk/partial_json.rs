//! Reads JSON text that is cut off anywhere, as a tool's input is while it streams. Complete text gives its
//! value; cut-off text gives what the AI SDK's clients show for it.

use serde_json::Value;

/// The value so far: everything open is closed, an unfinished key or number is left out. `None` when nothing
/// can be read.
pub fn parse(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    serde_json::from_str(&Repair::of(text)).ok()
}

/// The reader's place in the text. A stack entry is replaced when its construct moves on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum JsonPlace {
    Root,
    Finished,
    String,
    StringEscape,
    StringUnicodeEscape,
    Literal,
    Number,
    ObjectStart,
    ObjectKey,
    ObjectAfterKey,
    ObjectBeforeValue,
    ObjectAfterValue,
    ObjectAfterComma,
    ArrayStart,
    ArrayAfterValue,
    ArrayAfterComma,
}

const LITERALS: [&str; 3] = ["true", "false", "null"];

/// Walks the text once with a stack of places. This is not a parser: it never rejects, it only remembers up to
/// which point the text can be kept.
struct Repair<'a> {
    text: &'a str,
    stack: Vec<JsonPlace>,
    /// The text up to here can be kept.
    valid_end: usize,
    literal_start: usize,
    unicode_digits: u8,
    unicode_start: usize,
    /// The last thing read was a `\uD8xx` escape: alone it is no character, so it is kept only once its other
    /// half has come.
    half_pair: bool,
}

impl<'a> Repair<'a> {
    fn of(text: &'a str) -> String {
        let mut repair = Repair {
            text,
            stack: vec![JsonPlace::Root],
            valid_end: 0,
            literal_start: 0,
            unicode_digits: 0,
            unicode_start: 0,
            half_pair: false,
        };
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            // The clients count UTF-16 units: a character of two units takes two steps there.
            for _ in 0..character.len_utf16() {
                repair.step(character, start, end);
            }
        }
        repair.closed()
    }

    fn step(&mut self, character: char, start: usize, end: usize) {
        let place = self.stack.last().copied().unwrap_or(JsonPlace::Finished);
        match place {
            JsonPlace::Finished => {}
            JsonPlace::Root => self.value_start(character, start, end, JsonPlace::Finished),
            JsonPlace::ObjectBeforeValue => {
                self.value_start(character, start, end, JsonPlace::ObjectAfterValue)
            }
            JsonPlace::ArrayAfterComma => self.value_start(character, start, end, JsonPlace::ArrayAfterValue),
            JsonPlace::ObjectStart => match character {
                '"' => self.replace(JsonPlace::ObjectKey),
                '}' => self.close(end),
                _ => {}
            },
            JsonPlace::ObjectAfterComma if character == '"' => self.replace(JsonPlace::ObjectKey),
            JsonPlace::ObjectKey if character == '"' => self.replace(JsonPlace::ObjectAfterKey),
            JsonPlace::ObjectAfterKey if character == ':' => self.replace(JsonPlace::ObjectBeforeValue),
            JsonPlace::ObjectAfterComma | JsonPlace::ObjectKey | JsonPlace::ObjectAfterKey => {}
            JsonPlace::ObjectAfterValue => self.after_object_value(character, end),
            JsonPlace::ArrayStart if character == ']' => self.close(end),
            JsonPlace::ArrayStart => {
                self.valid_end = end;
                self.value_start(character, start, end, JsonPlace::ArrayAfterValue);
            }
            JsonPlace::ArrayAfterValue => {
                self.after_array_value(character, end);
                if !matches!(character, ',' | ']') {
                    self.valid_end = end;
                }
            }
            JsonPlace::String => self.in_string(character, end),
            JsonPlace::StringEscape => self.in_escape(character, end),
            JsonPlace::StringUnicodeEscape => self.in_unicode_escape(character, start, end),
            JsonPlace::Number => self.in_number(character, end),
            JsonPlace::Literal => self.in_literal(character, end),
        }
    }

    fn replace(&mut self, place: JsonPlace) {
        self.stack.pop();
        self.stack.push(place);
    }

    fn close(&mut self, end: usize) {
        self.stack.pop();
        self.valid_end = end;
    }

    /// `then` is the reader's place behind the value.
    fn value_start(&mut self, character: char, start: usize, end: usize, then: JsonPlace) {
        let inside = match character {
            '"' => JsonPlace::String,
            't' | 'f' | 'n' => {
                self.literal_start = start;
                JsonPlace::Literal
            }
            '-' | '0'..='9' => JsonPlace::Number,
            '{' => JsonPlace::ObjectStart,
            '[' => JsonPlace::ArrayStart,
            _ => return,
        };
        if character != '-' {
            self.valid_end = end;
        }
        self.half_pair = false;
        self.replace(then);
        self.stack.push(inside);
    }

    fn after_object_value(&mut self, character: char, end: usize) {
        match character {
            ',' => self.replace(JsonPlace::ObjectAfterComma),
            '}' => self.close(end),
            _ => {}
        }
    }

    fn after_array_value(&mut self, character: char, end: usize) {
        match character {
            ',' => self.replace(JsonPlace::ArrayAfterComma),
            ']' => self.close(end),
            _ => {}
        }
    }

    fn in_string(&mut self, character: char, end: usize) {
        match character {
            '"' => self.close(end),
            '\\' => self.stack.push(JsonPlace::StringEscape),
            _ => {
                self.half_pair = false;
                self.valid_end = end;
            }
        }
    }

    fn in_escape(&mut self, character: char, end: usize) {
        self.stack.pop();
        if character == 'u' {
            self.unicode_digits = 0;
            self.unicode_start = end;
            self.stack.push(JsonPlace::StringUnicodeEscape);
        } else {
            self.half_pair = false;
            self.valid_end = end;
        }
    }

    fn in_unicode_escape(&mut self, character: char, start: usize, end: usize) {
        if !character.is_ascii_hexdigit() {
            return;
        }
        self.unicode_digits += 1;
        if self.unicode_digits < 4 {
            return;
        }
        self.stack.pop();
        let digits = self.text.get(self.unicode_start..=start).unwrap_or_default();
        let opens_pair = u32::from_str_radix(digits, 16).is_ok_and(|unit| (0xd800..0xdc00).contains(&unit));
        self.half_pair = opens_pair && !self.half_pair;
        if !self.half_pair {
            self.valid_end = end;
        }
    }

    fn in_number(&mut self, character: char, end: usize) {
        match character {
            '0'..='9' => self.valid_end = end,
            'e' | 'E' | '-' | '.' => {}
            _ => {
                self.stack.pop();
                let place = self.stack.last();
                if place == Some(&JsonPlace::ObjectAfterValue) && matches!(character, ',' | '}') {
                    self.after_object_value(character, end);
                } else if place == Some(&JsonPlace::ArrayAfterValue) && matches!(character, ',' | ']') {
                    self.after_array_value(character, end);
                }
            }
        }
    }

    fn in_literal(&mut self, character: char, end: usize) {
        let so_far = self.text.get(self.literal_start..end).unwrap_or_default();
        if LITERALS.iter().any(|literal| literal.starts_with(so_far)) {
            self.valid_end = end;
            return;
        }
        self.stack.pop();
        let place = self.stack.last();
        if place == Some(&JsonPlace::ObjectAfterValue) {
            self.after_object_value(character, end);
        } else if place == Some(&JsonPlace::ArrayAfterValue) {
            self.after_array_value(character, end);
        }
    }

    /// The kept text, with a closing bracket or quote for everything open.
    fn closed(self) -> String {
        let mut result = self.text.get(..self.valid_end).unwrap_or_default().to_owned();
        for place in self.stack.iter().rev() {
            match place {
                JsonPlace::String => result.push('"'),
                JsonPlace::ObjectStart
                | JsonPlace::ObjectKey
                | JsonPlace::ObjectAfterKey
                | JsonPlace::ObjectBeforeValue
                | JsonPlace::ObjectAfterValue
                | JsonPlace::ObjectAfterComma => result.push('}'),
                JsonPlace::ArrayStart | JsonPlace::ArrayAfterValue | JsonPlace::ArrayAfterComma => {
                    result.push(']')
                }
                JsonPlace::Literal => {
                    let so_far = self.text.get(self.literal_start..).unwrap_or_default();
                    let missing = LITERALS.iter().find_map(|literal| literal.strip_prefix(so_far));
                    result.push_str(missing.unwrap_or_default());
                }
                JsonPlace::Root
                | JsonPlace::Finished
                | JsonPlace::StringEscape
                | JsonPlace::StringUnicodeEscape
                | JsonPlace::Number => {}
            }
        }
        result
    }
}
