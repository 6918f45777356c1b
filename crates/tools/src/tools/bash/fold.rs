//! Folds what a command prints into the lines that a terminal would show in the end: colours are gone, and of a
//! progress bar only its last state is left. Reads a stream in pieces of any size; keeps a bounded part of it;
//! never adds to it.

mod line;

use crate::limits::{FOLDED_LINE_BYTES, FOLDED_REACH_BYTES, FOLDED_SEQUENCE_BYTES};

use line::TerminalLine;

/// A stream on its way. Bytes that are no text stay what they are.
#[derive(Debug, Default)]
pub(super) struct OutputFold {
    /// What is above the cursor, oldest first. Lines end with their newline; the last one may have none if it
    /// is long.
    above: Vec<u8>,
    /// How much of the beginning of `above` no cursor reaches any more: it can be handed on.
    settled: usize,
    /// `above` begins within a line: the rest of it was handed on.
    is_cut: bool,
    line: TerminalLine,
    /// What is below the cursor, the nearest line last.
    below: Vec<Vec<u8>>,
    state: FoldState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FoldState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a byte that selects a table: one more byte follows.
    EscapeMore,
    Sequence(Sequence),
    /// A title, a link or a picture: up to its end mark, for as many bytes.
    Message {
        left: usize,
    },
    /// ESC within a message: its end mark may follow.
    MessageEscape {
        left: usize,
    },
}

/// ESC [ and what has come of it. Only the first number matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sequence {
    number: Option<u16>,
    /// Behind the first number.
    is_past_first: bool,
    /// Settings of the terminal itself.
    is_private: bool,
}

impl OutputFold {
    /// Takes the next piece, and hands on what can no longer change.
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

    /// Takes lines of plain text in one go: most output is nothing else. Returns how many bytes.
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

    /// Hands on everything as it is; what follows begins below it.
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
            // A message that does not end would take everything with it: a line is as long as one gets.
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

    /// What has begun is none of what we know: the byte is looked at afresh.
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

    /// What moves the cursor or erases. Colours, and what is only for full screens, change no text.
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
            // Anywhere on a screen of unknown size: nothing that was printed is lost.
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
            // What is settled stays, and so does the beginning of a line that was too long to be kept.
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
    /// The byte is to be read again.
    Nothing,
}

/// Tabs and form feeds belong to texts.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f) && !matches!(byte, b'\t' | 0x0c)
}

/// What the model is told of output that came in these pieces; for tests.
pub fn folded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut fold, mut out) = (OutputFold::default(), Vec::new());
    pieces.into_iter().for_each(|piece| fold.push(piece, &mut out));
    fold.settle(&mut out);
    out
}

#[cfg(test)]
mod tests;
