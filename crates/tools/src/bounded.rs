//! Cuts everything that enters the model's context and says what it cut. Never splits a character.

use crate::text::counted;

/// Text within its limit, including the note about what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounded {
    text: String,
    left_out: u64,
}

impl Bounded {
    /// Keeps the beginning and the end.
    pub(crate) fn whole(text: impl Into<String>, limit: usize) -> Self {
        let text = text.into();
        if text.len() <= limit {
            return Self { text, left_out: 0 };
        }
        let room = limit.saturating_sub(NOTE_BYTES);
        let head = text.floor_char_boundary(room - room / 2);
        let tail = text.ceil_char_boundary(text.len() - room / 2);
        Self::joined(&text[..head], &text[tail..], (tail - head) as u64, limit)
    }

    /// Keeps the beginning, cut at the end of a line if there is one.
    pub(crate) fn head(text: impl Into<String>, limit: usize) -> Self {
        let text = text.into();
        if text.len() <= limit {
            return Self { text, left_out: 0 };
        }
        let end = text.floor_char_boundary(limit.saturating_sub(NOTE_BYTES));
        let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
        Self::joined(text[..end].trim_end_matches('\n'), "", (text.len() - end) as u64, limit)
    }

    /// For bytes that were never in memory as a whole: their beginning, their end, and their total number.
    pub(crate) fn from_ends(head: &[u8], tail: &[u8], total: u64, limit: usize) -> Self {
        let missing = total.saturating_sub((head.len() + tail.len()) as u64);
        if missing == 0 {
            return Self::whole(String::from_utf8_lossy(&[head, tail].concat()), limit);
        }
        let (head, head_lost) = without_split_end(head);
        let (tail, tail_lost) = without_split_start(tail);
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let room = limit.saturating_sub(NOTE_BYTES);
        let head_end = head.floor_char_boundary(room - room / 2);
        let tail_start = tail.ceil_char_boundary(tail.len().saturating_sub(room / 2));
        let cut_again = head.len() - head_end + tail_start + head_lost + tail_lost;
        Self::joined(&head[..head_end], &tail[tail_start..], missing + cut_again as u64, limit)
    }

    /// Whole lines from the beginning, up to `head_bytes`, and from the end, as many as fit. Between them
    /// stands a note about what is left out, with `rest`, which says where that is. A line that is too long by
    /// itself is cut.
    pub(crate) fn lines(ends: &Ends<'_>, limit: usize, head_bytes: usize, rest: &str) -> Self {
        let missing = ends.total.saturating_sub((ends.head.len() + ends.tail.len()) as u64);
        let (mut head, mut tail) = match missing {
            0 => (String::from_utf8_lossy(&[ends.head, ends.tail].concat()).into_owned(), String::new()),
            _ => (
                String::from_utf8_lossy(without_split_end(ends.head).0).into_owned(),
                String::from_utf8_lossy(without_split_start(ends.tail).0).into_owned(),
            ),
        };
        if missing == 0 {
            if head.len() <= limit {
                return Self { text: head, left_out: 0 };
            }
            tail.clone_from(&head);
        }
        head.truncate(end_of_lines(&head, head_bytes));
        let between = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let room = limit.saturating_sub(head.len() + between.len() + LINES_NOTE_BYTES + rest.len());
        tail.drain(..start_of_lines(&tail, room));
        let newlines = |text: &str| text.matches('\n').count() as u64;
        let lines = ends.lines.saturating_sub(newlines(&head) + newlines(&tail));
        let left_out = ends.total.saturating_sub((head.len() + tail.len()) as u64).max(1);
        let lines = match usize::try_from(lines).unwrap_or(usize::MAX) {
            0 => String::new(),
            lines => format!("{}, ", counted(lines, "line")),
        };
        let mut text = format!("{head}{between}[… {lines}{left_out} bytes left out{rest} …]\n{tail}");
        text.truncate(text.floor_char_boundary(limit));
        Self { text, left_out }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.left_out > 0
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn joined(head: &str, tail: &str, left_out: u64, limit: usize) -> Self {
        let mut text = format!("{head}\n[… {left_out} bytes left out …]\n{tail}");
        text.truncate(text.floor_char_boundary(limit));
        Self { text, left_out }
    }
}

/// Beginning and end of bytes that were never in memory as a whole, and the total numbers of bytes and
/// newlines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) tail: &'a [u8],
    pub(crate) total: u64,
    pub(crate) lines: u64,
}

/// The end of the last whole line within `room`; within a line if there is none.
fn end_of_lines(text: &str, room: usize) -> usize {
    let end = text.floor_char_boundary(room.min(text.len()));
    text[..end].rfind('\n').map_or(end, |at| at + 1)
}

/// The beginning of the first whole line in the last `room` bytes; within a line if there is none.
fn start_of_lines(text: &str, room: usize) -> usize {
    let start = text.ceil_char_boundary(text.len().saturating_sub(room));
    if start == 0 || text.as_bytes()[start - 1] == b'\n' {
        return start;
    }
    match text[start..].find('\n') {
        Some(at) if start + at + 1 < text.len() => start + at + 1,
        Some(_) | None => start,
    }
}

/// The greatest length of the note between lines, without the text that says where the rest is.
const LINES_NOTE_BYTES: usize = 80;

/// The greatest length of the note: its words and the digits of the largest number.
const NOTE_BYTES: usize = 52;

/// `bytes` without a character that their end cuts in two, and how many bytes that drops.
fn without_split_end(bytes: &[u8]) -> (&[u8], usize) {
    let from = bytes.len().saturating_sub(3);
    for start in (from..bytes.len()).rev() {
        let length = match bytes[start] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => break,
        };
        if start + length > bytes.len() {
            return (&bytes[..start], bytes.len() - start);
        }
        break;
    }
    (bytes, 0)
}

/// `bytes` without a character that their beginning cuts in two, and how many bytes that drops.
fn without_split_start(bytes: &[u8]) -> (&[u8], usize) {
    let lost = bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    (&bytes[lost..], lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_note_always_fits_its_reserve() {
        assert!(Bounded::joined("", "", u64::MAX, 1000).text.len() <= NOTE_BYTES);
    }

    #[test]
    fn lines_stay_whole_and_more_of_the_end_is_kept() {
        let text: String = (1..=1000).map(|number| format!("line {number}\n")).collect();
        let bytes = text.as_bytes();
        let ends = Ends {
            head: &bytes[..500],
            tail: &bytes[bytes.len() - 900..],
            total: bytes.len() as u64,
            lines: 1000,
        };
        let bounded = Bounded::lines(&ends, 600, 100, "; see /f");
        let (head, rest) = bounded.text().split_once("[… ").unwrap();
        let (note, tail) = rest.split_once(" …]\n").unwrap();
        assert!(head.starts_with("line 1\n") && head.ends_with('\n') && text.starts_with(head), "{head}");
        assert!(tail.starts_with("line ") && text.ends_with(tail), "{tail}");
        assert!(tail.len() > 3 * head.len() && bounded.text().len() <= 600);
        let lines = 1000 - head.lines().count() - tail.lines().count();
        let bytes = text.len() - head.len() - tail.len();
        assert_eq!(note, format!("{lines} lines, {bytes} bytes left out; see /f"));
    }

    #[test]
    fn one_endless_line_is_cut_within() {
        let line = "x".repeat(10_000);
        let ends = Ends { head: line.as_bytes(), tail: b"", total: 10_000, lines: 0 };
        let bounded = Bounded::lines(&ends, 600, 100, "");
        assert!(bounded.text().starts_with(&format!("{}\n[… 9", "x".repeat(100))), "{}", bounded.text());
        assert!(bounded.text().len() <= 600 && bounded.text().ends_with(&"x".repeat(400)));
    }

    #[test]
    fn what_is_cut_is_counted() {
        let bounded = Bounded::whole("x".repeat(1000), 152);
        assert_eq!(bounded.text(), format!("{0}\n[… 900 bytes left out …]\n{0}", "x".repeat(50)));
        assert!(bounded.is_cut());
    }

    proptest! {
        #[test]
        fn never_longer_than_its_limit_and_untouched_when_it_fits(text in any::<String>(), limit in 0usize..200) {
            let bounded = Bounded::whole(text.clone(), limit);
            prop_assert!(bounded.text().len() <= limit);
            prop_assert_eq!(bounded.is_cut(), text.len() > limit);
            if !bounded.is_cut() {
                prop_assert_eq!(bounded.text(), text);
            }
        }

        #[test]
        fn a_beginning_is_one_and_what_is_missing_is_counted(text in "[aé\n]{0,200}", limit in 60usize..200) {
            let bounded = Bounded::head(text.clone(), limit);
            prop_assert!(bounded.text().len() <= limit);
            let kept = bounded.text().split("\n[… ").next().unwrap_or_default();
            prop_assert!(text.starts_with(kept));
            prop_assert_eq!(bounded.is_cut(), text.len() > limit);
        }

        /// Cutting a valid text at any two bytes invents no replacement character and loses no byte uncounted.
        #[test]
        fn ends_of_a_text_stay_text(text in "[aé€😀]{0,80}", head in 0usize..100, tail in 0usize..100, limit in 60usize..400) {
            let bytes = text.as_bytes();
            let head = &bytes[..head.min(bytes.len())];
            let tail = &bytes[bytes.len() - tail.min(bytes.len() - head.len())..];
            let bounded = Bounded::from_ends(head, tail, bytes.len() as u64, limit);
            prop_assert!(bounded.text().len() <= limit);
            prop_assert_eq!(bounded.text().find(char::REPLACEMENT_CHARACTER), None);
            if bounded.is_cut() {
                let note = format!("\n[… {} bytes left out …]\n", bounded.left_out);
                let kept = bounded.text().len() - note.len();
                prop_assert!(bounded.text().contains(&note));
                prop_assert_eq!(kept as u64 + bounded.left_out, bytes.len() as u64);
            } else {
                prop_assert_eq!(bounded.text(), text);
            }
        }

        #[test]
        fn any_lines_are_bounded(head in any::<Vec<u8>>(), tail in any::<Vec<u8>>(), more in 0u64..10, limit in 200usize..400) {
            let total = (head.len() + tail.len()) as u64 + more;
            let ends = Ends { head: &head, tail: &tail, total, lines: 3 };
            let bounded = Bounded::lines(&ends, limit, limit / 4, "; see /f");
            prop_assert!(bounded.text().len() <= limit);
            prop_assert!(bounded.is_cut() || more == 0);
        }

        #[test]
        fn any_bytes_are_bounded(head in any::<Vec<u8>>(), tail in any::<Vec<u8>>(), more in 0u64..10, limit in 0usize..300) {
            let total = (head.len() + tail.len()) as u64 + more;
            prop_assert!(Bounded::from_ends(&head, &tail, total, limit).text().len() <= limit);
        }
    }
}
