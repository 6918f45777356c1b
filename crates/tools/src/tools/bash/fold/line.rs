//! The line at the cursor: written, overwritten, erased. Columns count characters, because the width of a
//! character is unknown here.

/// Values from here on stand for bytes that are not characters.
const NO_TEXT: u32 = 0x11_0000;

#[derive(Debug, Default)]
pub(super) struct TerminalLine {
    /// The whole line, unless the cursor is within it.
    text: Vec<u8>,
    cursor: Cursor,
    /// The whole line while the cursor is within it.
    cells: Cells,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cursor {
    #[default]
    End,
    /// At the beginning of a line that is not empty. Usually its newline follows.
    Start,
    /// At the position in the cells.
    Within,
}

/// A line split into characters.
#[derive(Debug, Default)]
struct Cells {
    characters: Vec<u32>,
    at: usize,
    /// The beginning of a character whose other bytes may still come.
    partial: Vec<u8>,
}

impl Cells {
    fn put(&mut self, run: &[u8]) {
        self.partial.extend_from_slice(run);
        let complete = self.partial.len() - unfinished(&self.partial);
        self.put_whole(complete);
    }

    /// Keeps the bytes of an incomplete character as they are.
    fn put_rest(&mut self) {
        self.put_whole(self.partial.len());
    }

    fn put_whole(&mut self, bytes: usize) {
        for character in characters(&self.partial[..bytes]) {
            match self.characters.get_mut(self.at) {
                Some(place) => *place = character,
                None => self.characters.push(character),
            }
            self.at += 1;
        }
        self.partial.drain(..bytes);
    }
}

impl TerminalLine {
    pub(super) fn at_start(text: Vec<u8>) -> Self {
        let cursor = if text.is_empty() { Cursor::End } else { Cursor::Start };
        Self { text, cursor, cells: Cells::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.cells.characters.is_empty() && self.cells.partial.is_empty()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.cursor == Cursor::End
    }

    /// Writes text without control characters.
    pub(super) fn put(&mut self, run: &[u8]) {
        match self.cursor {
            Cursor::End => self.text.extend_from_slice(run),
            Cursor::Start | Cursor::Within => self.within().put(run),
        }
    }

    /// Takes the first `limit` characters off a longer line.
    pub(super) fn overflow(&mut self, limit: usize) -> Option<Vec<u8>> {
        let Cells { characters, at, .. } = &mut self.cells;
        match self.cursor {
            Cursor::End if self.text.len() > limit => Some(self.text.drain(..limit).collect()),
            Cursor::Within if *at > limit => {
                *at -= limit;
                let mut part = Vec::new();
                characters.drain(..limit).for_each(|character| push_character(&mut part, character));
                Some(part)
            }
            Cursor::End | Cursor::Start | Cursor::Within => None,
        }
    }

    /// Moves the line's text to `out` and empties it.
    pub(super) fn take_into(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.text);
        if self.cursor == Cursor::Within {
            let Cells { characters, partial, .. } = std::mem::take(&mut self.cells);
            characters.into_iter().for_each(|character| push_character(out, character));
            out.extend(partial);
        }
        self.cursor = Cursor::End;
    }

    pub(super) fn go_to_start(&mut self) {
        match self.cursor {
            Cursor::End if self.text.is_empty() => {}
            Cursor::End | Cursor::Start => self.cursor = Cursor::Start,
            Cursor::Within => self.settled().at = 0,
        }
    }

    /// Moves to a column, but not beyond the end.
    pub(super) fn go_to_column(&mut self, column: usize) {
        if column == 0 {
            return self.go_to_start();
        }
        let cells = self.settled();
        cells.at = column.min(cells.characters.len());
    }

    pub(super) fn column(&mut self) -> usize {
        match self.cursor {
            Cursor::Start => 0,
            Cursor::End | Cursor::Within => self.settled().at,
        }
    }

    pub(super) fn left(&mut self, count: usize) {
        let cells = self.settled();
        cells.at = cells.at.saturating_sub(count);
    }

    /// Moving beyond the end adds only one blank, however far it goes: it keeps words apart, and a few bytes
    /// must not become many.
    pub(super) fn right(&mut self, count: usize) {
        let cells = self.settled();
        if count > cells.characters.len() - cells.at {
            cells.characters.push(u32::from(b' '));
        }
        cells.at = (cells.at + count).min(cells.characters.len());
    }

    pub(super) fn erase(&mut self) {
        *self = Self::default();
    }

    pub(super) fn erase_right(&mut self) {
        match self.cursor {
            Cursor::End => {}
            Cursor::Start => self.erase(),
            Cursor::Within => {
                let cells = self.settled();
                cells.characters.truncate(cells.at);
            }
        }
    }

    /// Erases to the left, including the character at the cursor.
    pub(super) fn erase_left(&mut self) {
        let cells = self.settled();
        match cells.characters.get_mut(..=cells.at) {
            Some(left) => left.fill(u32::from(b' ')),
            None => self.erase(),
        }
    }

    /// The line split into characters, with incomplete ones finished.
    fn settled(&mut self) -> &mut Cells {
        let cells = self.within();
        cells.put_rest();
        cells
    }

    fn within(&mut self) -> &mut Cells {
        if self.cursor != Cursor::Within {
            self.cells.characters.extend(characters(&self.text));
            self.cells.at = match self.cursor {
                Cursor::Start => 0,
                Cursor::End | Cursor::Within => self.cells.characters.len(),
            };
            self.text.clear();
            self.cursor = Cursor::Within;
        }
        &mut self.cells
    }
}

fn characters(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(u32::from);
        valid.chain(chunk.invalid().iter().map(|byte| NO_TEXT + u32::from(*byte)))
    })
}

fn push_character(out: &mut Vec<u8>, character: u32) {
    match char::from_u32(character) {
        Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend(u8::try_from(character - NO_TEXT)),
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let is_beginning = |count: &usize| {
        let end = std::str::from_utf8(&bytes[bytes.len() - count..]);
        matches!(end, Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(is_beginning).unwrap_or(0)
}
