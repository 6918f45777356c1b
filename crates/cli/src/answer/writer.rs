//! The only way to a terminal: escapes what a terminal would obey or could not show. Pipes and files get exact
//! bytes.

use std::io::{self, IsTerminal, Write};

use attache_core::legible::legible;

/// Which kind of text we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// Text that may come from others: escape everything.
    Text,
    /// Our own text, which may contain colours.
    Painted,
}

#[derive(Debug)]
pub(crate) struct AnswerWriter<W: Write> {
    out: W,
    /// `None` if the output is no terminal.
    seen: Option<AnswerKind>,
    /// The first bytes of a character whose last bytes have not come yet.
    rest: Vec<u8>,
}

impl<W: Write + IsTerminal> AnswerWriter<W> {
    pub(crate) fn to(out: W, answered: AnswerKind) -> Self {
        let seen = out.is_terminal().then_some(answered);
        Self { out, seen, rest: Vec::new() }
    }
}

impl<W: Write> Write for AnswerWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(answered) = self.seen else { return self.out.write(bytes) };
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - unfinished(&self.rest);
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        self.out.write_all(shown(&text, answered).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(answered) = self.seen {
            let rest = std::mem::take(&mut self.rest);
            self.out.write_all(shown(&rest, answered).as_bytes())?;
        }
        self.out.flush()
    }
}

fn shown(bytes: &[u8], answered: AnswerKind) -> String {
    let text = String::from_utf8_lossy(bytes);
    match answered {
        AnswerKind::Text => legible(&text),
        AnswerKind::Painted => legible_but_colours(&text),
    }
}

/// How many bytes at the end may be the start of a longer character.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    let begins = |byte: u8| match byte {
        0xc0..=0xdf => Some(2),
        0xe0..=0xef => Some(3),
        0xf0..=0xff => Some(4),
        _ => None,
    };
    let last = bytes.iter().rev().take(3).enumerate();
    let open = last.map(|(behind, byte)| (behind + 1, begins(*byte)));
    open.filter_map(|(length, whole)| whole.filter(|whole| length < *whole).map(|_| length))
        .next()
        .unwrap_or(0)
}

/// Keeps only sequences that change the look of the following text.
fn legible_but_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        let (before, sequence) = rest.split_at(at);
        out.push_str(&legible(before));
        let end = sequence[2..].find(|character: char| !matches!(character, '0'..='9' | ';'));
        let length = match end {
            Some(end) if sequence[2 + end..].starts_with('m') => 2 + end + 1,
            Some(_) | None => {
                out.push_str(&legible("\x1b"));
                rest = &sequence[1..];
                continue;
            }
        };
        out.push_str(&sequence[..length]);
        rest = &sequence[length..];
    }
    out.push_str(&legible(rest));
    out
}

#[cfg(test)]
mod tests {
    use attache_core::legible::{is_invisible, is_odd_blank};
    use proptest::prelude::*;

    use super::*;

    fn written(pieces: &[Vec<u8>], seen: Option<AnswerKind>) -> Vec<u8> {
        let mut writer = AnswerWriter { out: Vec::new(), seen, rest: Vec::new() };
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        writer.out
    }

    #[test]
    fn colours_are_ours_and_nothing_else_is_obeyed() {
        let text = "\x1b[1mbold\x1b[0m \x1b[2J\x1b]0;x\x07 \x1b[31";
        let shown = written(&[text.into()], Some(AnswerKind::Painted));
        let expected = "\x1b[1mbold\x1b[0m \\u{1b}[2J\\u{1b}]0;x\\u{7} \\u{1b}[31";
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_is_seen_and_elsewhere_the_same_bytes(
            text in any::<String>(), cuts in prop::collection::vec(1..5_usize, 0..40),
        ) {
            let (mut rest, mut pieces) = (text.as_bytes(), Vec::new());
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece.to_vec());
                rest = behind;
            }
            pieces.push(rest.to_vec());
            prop_assert_eq!(written(&pieces, None), text.as_bytes());
            let seen = String::from_utf8(written(&pieces, Some(AnswerKind::Text))).unwrap();
            prop_assert_eq!(&seen, &legible(&text));
            let harmless = |c: char| matches!(c, '\n' | '\t') || is_odd_blank(c) || !is_invisible(c);
            prop_assert!(seen.chars().all(harmless));
        }
    }
}
