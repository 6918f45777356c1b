//! Folds a command's output into the lines that a terminal would finally show: removes colours, and keeps only
//! the last state of a progress bar. Reads a stream in pieces of any size, keeps a bounded part of it, and
//! never adds text.

mod line;

use crate::limits::{FOLDED_LINE_BYTES, FOLDED_REACH_BYTES, FOLDED_SEQUENCE_BYTES};

use line::TerminalLine;

/// The state of one stream. Bytes that are not text are kept unchanged.
#[derive(Debug, Default)]
pub(super) struct OutputFold {
    /// The lines above the cursor, oldest first. Each ends with a newline, except perhaps the last one if it is
    /// long.
    above: Vec<u8>,
    /// How many bytes at the beginning of `above` no cursor can reach any more, so that they can be handed on.
    settled: usize,
    /// `above` begins within a line whose beginning was handed on.
    is_cut: bool,
    line: TerminalLine,
    /// The lines below the cursor, the nearest last.
    below: Vec<Vec<u8>>,
    state: FoldState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FoldState {
    #[default]
    Text,
    /// After an ESC.
    Escape,
    /// After an ESC and a byte that selects a table: one more byte follows.
    EscapeMore,
    Sequence(Sequence),
    /// In a title, a link or a picture, up to its end mark, for at most this many bytes.
    Message {
        left: usize,
    },
    /// After an ESC within a message: its end mark may follow.
    MessageEscape {
        left: usize,
    },
}

/// A sequence after ESC and `[` so far. Only its first number matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sequence {
    number: Option<u16>,
    /// Whether the first number is complete.
    is_past_first: bool,
    /// Whether it changes settings of the terminal itself.
    is_private: bool,
}

impl OutputFold {
    /// Takes the next piece, and hands on what can't change any more.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if self.state == FoldState::Text {
                let lines = self.whole_lines(rest);
                if lines > 0 {
                    rest = &rest[lines..];
                    continue;
                }
                let plain = rest.iter().position(|byte| is_control(*byte)).unwrap_or(rest.len());
                if plain > 0 {
                    self.text(&rest[..plain]);
                    rest = &rest[plain..];
                    continue;
                }
            }
            if self.read(first) == Took::It {
                rest = &rest[1..];
            }
        }
        if self.settled > FOLDED_REACH_BYTES {
            self.is_cut = self.above[self.settled - 1] != b'\n';
            out.extend(self.above.drain(..self.settled));
            self.settled = 0;
        }
    }

    /// Takes lines of plain text at once, because most output is nothing else. Returns the number of bytes.
    fn whole_lines(&mut self, bytes: &[u8]) -> usize {
        if !self.line.is_at_end() || !self.below.is_empty() {
            return 0;
        }
        let plain = bytes.iter().position(|byte| is_control(*byte) && *byte != b'\n').unwrap_or(bytes.len());
        let Some(end) = bytes[..plain].iter().rposition(|byte| *byte == b'\n') else { return 0 };
        self.line.take_into(&mut self.above);
        self.above.extend_from_slice(&bytes[..=end]);
        self.mark_settled();
        end + 1
    }

    /// Hands on everything unchanged; later output begins below it.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.above);
        (self.settled, self.is_cut) = (0, false);
        self.line.take_into(out);
        while let Some(line) = self.below.pop() {
            out.push(b'\n');
            out.extend(line);
        }
    }

    fn text(&mut self, run: &[u8]) {
        self.line.put(run);
        while let Some(part) = self.line.overflow(FOLDED_LINE_BYTES) {
            self.above.extend(part);
            self.mark_settled();
        }
    }

    fn mark_settled(&mut self) {
        self.settled = self.settled.max(self.above.len().saturating_sub(FOLDED_REACH_BYTES));
    }

    fn read(&mut self, byte: u8) -> Took {
        match self.state {
            FoldState::Text => self.control(byte),
            FoldState::Escape => return self.escape(byte),
            FoldState::EscapeMore => match byte {
                b' '..=b'/' => {}
                0x30..=0x7e => self.state = FoldState::Text,
                _ => return self.give_up(),
            },
            FoldState::Sequence(sequence) => return self.sequence(sequence, byte),
            // A message without an end would swallow all output: limit it to the length of a line.
            FoldState::Message { left: 0 } => return self.give_up(),
            FoldState::Message { left } => match byte {
                b'\n' => return self.give_up(),
                0x07 | 0x18 | 0x1a => self.state = FoldState::Text,
                0x1b => self.state = FoldState::MessageEscape { left },
                _ => self.state = FoldState::Message { left: left - 1 },
            },
            FoldState::MessageEscape { left } => match byte {
                b'\\' => self.state = FoldState::Text,
                b'\n' => return self.give_up(),
                _ => self.state = FoldState::Message { left: left.saturating_sub(1) },
            },
        }
        Took::It
    }

    /// The sequence is not one that we know: reads the byte again as text.
    fn give_up(&mut self) -> Took {
        self.state = FoldState::Text;
        Took::Nothing
    }

    fn control(&mut self, byte: u8) {
        match byte {
            b'\n' => self.down_or_new_line(),
            b'\r' => self.line.go_to_start(),
            0x08 => self.line.left(1),
            0x1b => self.state = FoldState::Escape,
            _ => {}
        }
    }

    fn escape(&mut self, byte: u8) -> Took {
        self.state = match byte {
            b'[' => FoldState::Sequence(Sequence::default()),
            b']' | b'P' | b'X' | b'^' | b'_' => FoldState::Message { left: FOLDED_SEQUENCE_BYTES },
            b' '..=b'/' => FoldState::EscapeMore,
            0x30..=0x7e => FoldState::Text,
            _ => return self.give_up(),
        };
        Took::It
    }

    fn sequence(&mut self, mut sequence: Sequence, byte: u8) -> Took {
        match byte {
            b'0'..=b'9' if !sequence.is_past_first => {
                let number = sequence.number.unwrap_or(0);
                sequence.number = Some(number.saturating_mul(10).saturating_add(u16::from(byte - b'0')));
            }
            b'0'..=b'9' | b' '..=b'/' => {}
            b':' | b';' => sequence.is_past_first = true,
            b'<'..=b'?' => sequence.is_private = true,
            0x40..=0x7e => {
                self.state = FoldState::Text;
                if !sequence.is_private {
                    self.obey(byte, sequence.number);
                }
                return Took::It;
            }
            _ => return self.give_up(),
        }
        self.state = FoldState::Sequence(sequence);
        Took::It
    }

    /// Obeys what moves the cursor or erases. Colours and full-screen controls change no text.
    fn obey(&mut self, order: u8, number: Option<u16>) {
        let count = usize::from(number.unwrap_or(1).max(1));
        match order {
            b'A' => self.up(count),
            b'B' => self.down(count),
            b'C' => self.line.right(count),
            b'D' => self.line.left(count),
            b'E' if self.below.is_empty() => self.down_or_new_line(),
            b'E' => {
                self.down(count);
                self.line.go_to_start();
            }
            b'F' => {
                self.up(count);
                self.line.go_to_start();
            }
            b'G' | b'`' => self.line.go_to_column(count - 1),
            // The cursor goes somewhere on a screen of unknown size: keep everything that was printed.
            b'H' | b'f' => self.begin_anew(),
            b'J' => match number.unwrap_or(0) {
                0 => {
                    self.line.erase_right();
                    self.below.clear();
                }
                1 => {}
                _ => self.begin_anew(),
            },
            b'K' => match number.unwrap_or(0) {
                0 => self.line.erase_right(),
                1 => self.line.erase_left(),
                _ => self.line.erase(),
            },
            _ => {}
        }
    }

    fn down_or_new_line(&mut self) {
        self.line.take_into(&mut self.above);
        self.above.push(b'\n');
        self.mark_settled();
        if let Some(below) = self.below.pop() {
            self.line = TerminalLine::at_start(below);
        }
    }

    fn down(&mut self, count: usize) {
        let column = self.line.column();
        for _ in 0..count.min(self.below.len()) {
            self.down_or_new_line();
        }
        self.line.go_to_column(column);
    }

    fn up(&mut self, count: usize) {
        let column = self.line.column();
        for _ in 0..count {
            // Keeps what is settled, and the beginning of a line that was too long.
            let Some(end) = self.above.len().checked_sub(1).filter(|end| self.above[*end] == b'\n') else {
                break;
            };
            let start = self.above[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if start < self.settled || (start == 0 && self.is_cut) {
                break;
            }
            let mut line = Vec::new();
            self.line.take_into(&mut line);
            self.below.push(line);
            self.line = TerminalLine::at_start(self.above[start..end].to_vec());
            self.above.truncate(start);
        }
        self.line.go_to_column(column);
    }

    fn begin_anew(&mut self) {
        if self.line.is_empty() && self.below.is_empty() {
            return;
        }
        while !self.below.is_empty() {
            self.down_or_new_line();
        }
        if !self.line.is_empty() {
            self.down_or_new_line();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Took {
    It,
    /// The byte has to be read again.
    Nothing,
}

/// Tabs and form feeds are part of texts.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f) && !matches!(byte, b'\t' | 0x0c)
}

/// The folded text of output in these pieces; for tests.
pub fn folded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut fold, mut out) = (OutputFold::default(), Vec::new());
    pieces.into_iter().for_each(|piece| fold.push(piece, &mut out));
    fold.settle(&mut out);
    out
}

#[cfg(test)]
mod tests;
