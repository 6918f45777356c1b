//! Reads JSON text that is cut off anywhere, as a tool's input is while it streams. Whole text it reads as it is;
//! what it gives for broken text is what the AI SDK's clients show for it.

use serde_json::Value;

/// The value so far: everything open is closed, an unfinished key or number is left out. `None` when nothing can be read.
pub fn parse(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    serde_json::from_str(&Repair::of(text)).ok()
}

/// Where in the text the reader stands. An entry of the stack is replaced when its construct moves on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
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

/// One pass over the text with a stack of places. Not a parser: it never rejects, it only remembers the last point up to
/// which the text can be kept.
struct Repair<'a> {
    text: &'a str,
    stack: Vec<Place>,
    /// The text is kept up to here.
    valid_end: usize,
    literal_start: usize,
    unicode_digits: u8,
    unicode_start: usize,
    /// A `\uD8xx` escape was the last thing read: alone it is no character, so it counts only when its other half has come.
    half_pair: bool,
}

impl<'a> Repair<'a> {
    fn of(text: &'a str) -> String {
        let mut repair = Repair {
            text,
            stack: vec![Place::Root],
            valid_end: 0,
            literal_start: 0,
            unicode_digits: 0,
            unicode_start: 0,
            half_pair: false,
        };
        for (start, character) in text.char_indices() {
            let end = start + character.len_utf8();
            // The clients count in UTF-16 units; a character of two units is two steps for them.
            for _ in 0..character.len_utf16() {
                repair.step(character, start, end);
            }
        }
        repair.closed()
    }

    fn step(&mut self, character: char, start: usize, end: usize) {
        let place = self.stack.last().copied().unwrap_or(Place::Finished);
        match place {
            Place::Finished => {}
            Place::Root => self.value_start(character, start, end, Place::Finished),
            Place::ObjectBeforeValue => self.value_start(character, start, end, Place::ObjectAfterValue),
            Place::ArrayAfterComma => self.value_start(character, start, end, Place::ArrayAfterValue),
            Place::ObjectStart => match character {
                '"' => self.replace(Place::ObjectKey),
                '}' => self.close(end),
                _ => {}
            },
            Place::ObjectAfterComma if character == '"' => self.replace(Place::ObjectKey),
            Place::ObjectKey if character == '"' => self.replace(Place::ObjectAfterKey),
            Place::ObjectAfterKey if character == ':' => self.replace(Place::ObjectBeforeValue),
            Place::ObjectAfterComma | Place::ObjectKey | Place::ObjectAfterKey => {}
            Place::ObjectAfterValue => self.after_object_value(character, end),
            Place::ArrayStart if character == ']' => self.close(end),
            Place::ArrayStart => {
                self.valid_end = end;
                self.value_start(character, start, end, Place::ArrayAfterValue);
            }
            Place::ArrayAfterValue => {
                self.after_array_value(character, end);
                if !matches!(character, ',' | ']') {
                    self.valid_end = end;
                }
            }
            Place::String => self.in_string(character, end),
            Place::StringEscape => self.in_escape(character, end),
            Place::StringUnicodeEscape => self.in_unicode_escape(character, start, end),
            Place::Number => self.in_number(character, end),
            Place::Literal => self.in_literal(character, end),
        }
    }

    fn replace(&mut self, place: Place) {
        self.stack.pop();
        self.stack.push(place);
    }

    fn close(&mut self, end: usize) {
        self.stack.pop();
        self.valid_end = end;
    }

    /// `then` is where the reader stands after the value.
    fn value_start(&mut self, character: char, start: usize, end: usize, then: Place) {
        let inside = match character {
            '"' => Place::String,
            't' | 'f' | 'n' => {
                self.literal_start = start;
                Place::Literal
            }
            '-' | '0'..='9' => Place::Number,
            '{' => Place::ObjectStart,
            '[' => Place::ArrayStart,
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
            ',' => self.replace(Place::ObjectAfterComma),
            '}' => self.close(end),
            _ => {}
        }
    }

    fn after_array_value(&mut self, character: char, end: usize) {
        match character {
            ',' => self.replace(Place::ArrayAfterComma),
            ']' => self.close(end),
            _ => {}
        }
    }

    fn in_string(&mut self, character: char, end: usize) {
        match character {
            '"' => self.close(end),
            '\\' => self.stack.push(Place::StringEscape),
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
            self.stack.push(Place::StringUnicodeEscape);
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
                match (character, self.stack.last()) {
                    (',' | '}', Some(Place::ObjectAfterValue)) => self.after_object_value(character, end),
                    (',' | ']', Some(Place::ArrayAfterValue)) => self.after_array_value(character, end),
                    _ => {}
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
        match self.stack.last() {
            Some(Place::ObjectAfterValue) => self.after_object_value(character, end),
            Some(Place::ArrayAfterValue) => self.after_array_value(character, end),
            _ => {}
        }
    }

    /// The kept text with everything open closed.
    fn closed(self) -> String {
        let mut result = self.text.get(..self.valid_end).unwrap_or_default().to_owned();
        for place in self.stack.iter().rev() {
            match place {
                Place::String => result.push('"'),
                Place::ObjectStart
                | Place::ObjectKey
                | Place::ObjectAfterKey
                | Place::ObjectBeforeValue
                | Place::ObjectAfterValue
                | Place::ObjectAfterComma => result.push('}'),
                Place::ArrayStart | Place::ArrayAfterValue | Place::ArrayAfterComma => result.push(']'),
                Place::Literal => {
                    let so_far = self.text.get(self.literal_start..).unwrap_or_default();
                    let missing = LITERALS.iter().find_map(|literal| literal.strip_prefix(so_far));
                    result.push_str(missing.unwrap_or_default());
                }
                Place::Root
                | Place::Finished
                | Place::StringEscape
                | Place::StringUnicodeEscape
                | Place::Number => {}
            }
        }
        result
    }
}
