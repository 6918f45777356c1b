//! What a terminal shows after each frame, by a small terminal of the tests' own.

use super::*;
use crate::screen::theme::{Colours, ScreenTheme, Tone};
use proptest::prelude::*;
use ratatui_core::text::Span;

impl Painter {
    fn frame(&mut self, finished: &[Line<'static>], view: &ScreenView) -> String {
        self.frame_with(finished, &[], view)
    }
}

/// Knows the few sequences that the painter uses. The scrollback is everything above `top`.
struct Screen {
    rows: Vec<String>,
    height: usize,
    at: (usize, usize),
    saved: Option<(Vec<String>, (usize, usize))>,
}

impl Screen {
    fn new(height: usize) -> Self {
        Self { rows: vec![String::new()], height, at: (0, 0), saved: None }
    }

    fn top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    fn feed(&mut self, bytes: &str) {
        let mut rest = bytes;
        while let Some(character) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                self.obey(&sequence[..end], sequence.as_bytes()[end]);
                rest = &sequence[end + 1..];
                continue;
            }
            rest = &rest[character.len_utf8()..];
            match character {
                '\r' => self.at.1 = 0,
                '\n' => {
                    self.at.0 += 1;
                    if self.at.0 == self.rows.len() {
                        self.rows.push(String::new());
                    }
                }
                character => {
                    let mut row: Vec<char> = self.rows[self.at.0].chars().collect();
                    row.resize(row.len().max(self.at.1 + 1), ' ');
                    row[self.at.1] = character;
                    self.rows[self.at.0] = row.into_iter().collect();
                    self.at.1 += 1;
                }
            }
        }
    }

    fn obey(&mut self, number: &str, command: u8) {
        let count: usize = number.parse().unwrap_or(1);
        match (command, number) {
            (b'A', _) => {
                assert!(self.at.0 >= self.top() + count, "above the screen: what has scrolled is for good");
                self.at.0 -= count;
            }
            (b'B', _) => {
                self.at.0 += count;
                assert!(self.at.0 < self.rows.len(), "below what was written");
            }
            (b'C', _) => self.at.1 += count,
            (b'J', "" | "0") => {
                self.cut();
                self.rows.truncate(self.at.0 + 1);
            }
            (b'J', _) => self.rows = vec![String::new()],
            (b'H', _) => self.at = (0, 0),
            (b'K', "2") => self.rows[self.at.0].clear(),
            (b'K', _) => self.cut(),
            (b'h', "?1049") => {
                self.saved = Some((std::mem::replace(&mut self.rows, vec![String::new()]), self.at));
            }
            (b'l', "?1049") => (self.rows, self.at) = self.saved.take().unwrap(),
            (b'm' | b'h' | b'l', _) => {}
            other => panic!("{other:?}"),
        }
    }

    fn cut(&mut self) {
        let kept: String = self.rows[self.at.0].chars().take(self.at.1).collect();
        self.rows[self.at.0] = kept;
    }

    fn text(&self) -> Vec<&str> {
        let mut rows: Vec<&str> = self.rows.iter().map(|row| row.trim_end()).collect();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        rows
    }
}

fn lines(texts: &[&str]) -> Vec<Line<'static>> {
    texts.iter().map(|text| Line::from((*text).to_owned())).collect()
}

fn view(texts: &[&str]) -> ScreenView {
    ScreenView { lines: lines(texts), cursor: Some((0, texts.len() - 1)), extent: ViewExtent::Inline }
}

#[test]
fn finished_lines_scroll_away_above_the_live_ones() {
    let (mut painter, mut screen) = (Painter::default(), Screen::new(5));
    screen.feed(&painter.frame(&[], &view(&["live", "> "])));
    screen.feed(&painter.frame(&lines(&["one", "two", "three", "four"]), &view(&["more", "> "])));
    assert_eq!(screen.text(), ["one", "two", "three", "four", "more", ">"]);
    screen.feed(&painter.frame(&lines(&["five"]), &view(&["> "])));
    assert_eq!(screen.text(), ["one", "two", "three", "four", "five", ">"]);
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let mut painter = Painter::default();
    painter.frame(&[], &view(&["a", "b"]));
    assert_eq!(painter.frame(&[], &view(&["a", "b"])), "");
    let change = painter.frame(&[], &view(&["a", "c"]));
    assert!(!change.contains('a') && change.contains('c'), "{change:?}");
}

#[test]
fn a_page_covers_everything_and_gives_it_back() {
    let (mut painter, mut screen) = (Painter::default(), Screen::new(4));
    screen.feed(&painter.frame(&lines(&["past"]), &view(&["live", "> "])));
    let page = ScreenView { lines: lines(&["page"]), cursor: None, extent: ViewExtent::Whole };
    screen.feed(&painter.frame(&[], &page));
    assert_eq!(screen.text(), ["page"]);
    screen.feed(&painter.frame(&[], &view(&["live", "> x"])));
    assert_eq!(screen.text(), ["past", "live", "> x"]);
}

#[test]
fn a_terminal_that_became_narrow_is_cleared_up_to_what_has_scrolled() {
    let (mut painter, mut screen) = (Painter::default(), Screen::new(9));
    screen.feed(&painter.frame(&lines(&["past"]), &view(&["abcdefgh", "> "])));
    // As terminals break it anew at four columns.
    screen.rows = ["past", "abcd", "efgh", ">"].map(str::to_owned).into();
    screen.at = (3, 0);
    screen.feed(&painter.resized(4));
    screen.feed(&painter.frame(&[], &view(&["abc…", "> "])));
    assert_eq!(screen.text(), ["past", "abc…", ">"]);
}

#[test]
fn leaving_takes_the_live_part_away() {
    let (mut painter, mut screen) = (Painter::default(), Screen::new(9));
    screen.feed(&painter.frame(&lines(&["past"]), &view(&["live", "> "])));
    screen.feed(&painter.leave());
    assert_eq!(screen.text(), ["past"]);
}

#[test]
fn what_was_on_the_screen_scrolls_away_when_it_is_drawn_again() {
    let (mut painter, mut screen) = (Painter::default(), Screen::new(4));
    screen.feed(&painter.frame(&lines(&["past"]), &view(&["live", "> "])));
    let again = painter.redraw(4);
    assert!(again.starts_with(&"\r\n".repeat(4)) && !again.contains("2J"));
    screen.feed("\r\nshell\r\n");
    screen.feed(&painter.begin_anew());
    screen.feed(&painter.frame(&[], &view(&["live", "> "])));
    assert_eq!(screen.text(), ["past", "live", ">", "shell", "live", ">"]);
}

#[test]
fn styles_end_where_their_text_ends() {
    let theme = ScreenTheme { colours: Colours::Sixteen, ..ScreenTheme::PLAIN };
    let line = Line::from(vec![theme.span(Tone::Bad, "no"), Span::raw(" yes")]);
    assert_eq!(painted(&line), "\x1b[31mno\x1b[0m yes");
}

proptest! {
    #[test]
    fn the_screen_is_always_what_was_asked_for(
        frames in proptest::collection::vec(
            (proptest::collection::vec("[a-c]{0,4}", 0..4), proptest::collection::vec("[x-z]{0,4}", 1..6)),
            1..12,
        )
    ) {
        let (mut painter, mut screen) = (Painter::default(), Screen::new(8));
        let mut past: Vec<String> = Vec::new();
        for (finished, live) in frames {
            let finished: Vec<&str> = finished.iter().map(String::as_str).collect();
            let live: Vec<&str> = live.iter().map(String::as_str).collect();
            screen.feed(&painter.frame(&lines(&finished), &view(&live)));
            past.extend(finished.iter().map(|text| (*text).to_owned()));
            let mut expected: Vec<&str> = past.iter().map(String::as_str).chain(live.iter().copied()).collect();
            expected.truncate(expected.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
            prop_assert_eq!(screen.text(), expected);
            prop_assert_eq!(screen.at, (past.len() + live.len() - 1, 0));
        }
    }
}
