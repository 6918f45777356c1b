//! A list to choose from, narrowed by typing. Knows rows, not what they stand for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;

use crate::screen::harmless;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{columns, cut, cut_line};

/// A list to pick from. A row's value is the one that the caller passed in.
#[derive(Clone, Debug)]
pub(crate) struct Picker<T> {
    pub(crate) title: String,
    rows: Vec<MenuChoice<T>>,
    typed: String,
    chosen: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct MenuChoice<T> {
    pub(crate) label: String,
    pub(crate) hint: String,
    pub(crate) value: T,
    pub(crate) mark: Mark,
}

/// Whether a row is what holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Current,
    Other,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MenuPick<T> {
    Nothing,
    Away,
    This(T),
}

impl<T: Clone> Picker<T> {
    pub(crate) fn new(title: impl Into<String>, rows: Vec<MenuChoice<T>>) -> Self {
        let chosen = rows.iter().position(|row| row.mark == Mark::Current).unwrap_or(0);
        Self { title: title.into(), rows, typed: String::new(), chosen }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> MenuPick<T> {
        let count = self.matching().count();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return MenuPick::Away,
            KeyCode::Char('c') if control => return MenuPick::Away,
            KeyCode::Enter => {
                let chosen = self.matching().nth(self.chosen).map(|row| row.value.clone());
                return chosen.map_or(MenuPick::Nothing, MenuPick::This);
            }
            KeyCode::Up => self.chosen = self.chosen.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            KeyCode::Char('p') if control => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => {
                self.chosen = if self.chosen + 1 < count { self.chosen + 1 } else { 0 }
            }
            KeyCode::Char('n') if control => self.chosen = (self.chosen + 1).min(count.saturating_sub(1)),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.chosen = (self.chosen + 10).min(count.saturating_sub(1)),
            KeyCode::Backspace => {
                self.typed.pop();
                self.chosen = 0;
            }
            KeyCode::Char(character) if !control => {
                self.typed.push(character);
                self.chosen = 0;
            }
            _ => {}
        }
        MenuPick::Nothing
    }

    /// The value of the row with this number, counted from 1 among those that match.
    pub(crate) fn row(&self, number: usize) -> Option<T> {
        self.matching().nth(number.checked_sub(1)?).map(|row| row.value.clone())
    }

    /// In the place of what was searched for before.
    pub(crate) fn search(&mut self, words: &str) {
        words.clone_into(&mut self.typed);
        self.chosen = 0;
    }

    /// The rows that match, to be chosen by their numbers.
    pub(crate) fn numbered(&self, theme: ScreenTheme, width: usize) -> Vec<String> {
        let mut lines = vec![theme.showable(&self.title)];
        for (index, row) in self.matching().enumerate() {
            let current = if row.mark == Mark::Current { " (now)" } else { "" };
            let text = format!("{} {}{current}  {}", index + 1, row.label, row.hint);
            lines.push(cut(&theme.showable(&harmless::exact_line(text.trim_end())), width, theme.ellipsis()));
        }
        if lines.len() == 1 {
            lines.push("nothing matches".to_owned());
        }
        lines
    }

    /// Every word typed is in the label or the hint.
    fn matching(&self) -> impl Iterator<Item = &MenuChoice<T>> {
        let typed = self.typed.to_lowercase();
        self.rows.iter().filter(move |row| {
            let text = format!("{} {}", row.label, row.hint).to_lowercase();
            typed.split_whitespace().all(|word| text.contains(word))
        })
    }

    pub(crate) fn lines(&self, theme: ScreenTheme, width: usize, most: usize) -> Vec<Line<'static>> {
        let mut lines = vec![Line::from(vec![
            theme.span(Tone::Strong, cut(&theme.showable(&self.title), width, theme.ellipsis())),
            theme.span(
                Tone::Quiet,
                if self.typed.is_empty() {
                    String::new()
                } else {
                    format!("  {}", harmless::exact_line(&self.typed))
                },
            ),
        ])];
        let room = most.saturating_sub(2).max(1);
        let first = self.chosen.saturating_sub(room - 1);
        let shown: Vec<_> = self.matching().enumerate().skip(first).take(room).collect();
        let labels =
            shown.iter().map(|(_, row)| columns(&row.label)).max().unwrap_or_default().min(width * 2 / 3);
        for (index, row) in &shown {
            let (sign, role) = match (*index == self.chosen, row.mark) {
                (true, _) => (theme.pointer(), Tone::Chosen),
                (false, Mark::Current) => (theme.dot(), Tone::Plain),
                (false, Mark::Other) => (" ", Tone::Plain),
            };
            let label = theme.showable(&harmless::exact_line(&row.label));
            let label = cut(&label, labels.max(4).min(width.saturating_sub(2)), theme.ellipsis());
            let blanks = " ".repeat((labels + 2).saturating_sub(columns(&label)));
            let room = width.saturating_sub(2 + columns(&label) + blanks.len());
            let hint = cut(&theme.showable(&harmless::exact_line(&row.hint)), room, theme.ellipsis());
            lines.push(Line::from(vec![
                theme.span(role, format!("{sign} {label}")),
                theme.span(Tone::Quiet, format!("{blanks}{hint}")),
            ]));
        }
        if shown.is_empty() {
            lines.push(Line::from(theme.span(Tone::Quiet, "  nothing matches")));
        }
        let help = format!(
            "{} choose {dot} enter takes it {dot} type to search {dot} esc",
            theme.arrows(),
            dot = theme.dot()
        );
        lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, width, theme.ellipsis()))));
        lines.into_iter().map(|line| cut_line(line, width, theme.ellipsis())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker<u8> {
        let row =
            |label: &str, value, mark| MenuChoice { label: label.into(), hint: String::new(), value, mark };
        let rows =
            vec![row("build", 1, Mark::Other), row("plan", 2, Mark::Current), row("ask", 3, Mark::Other)];
        Picker::new("Mode", rows)
    }

    fn press(picker: &mut Picker<u8>, code: KeyCode) -> MenuPick<u8> {
        picker.key(KeyEvent::from(code))
    }

    #[test]
    fn it_begins_at_what_holds_and_goes_round() {
        let mut modes = picker();
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::This(2));
        press(&mut modes, KeyCode::Down);
        press(&mut modes, KeyCode::Down);
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::This(1));
        press(&mut modes, KeyCode::Up);
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::This(3));
    }

    #[test]
    fn typing_narrows_it_and_nothing_can_be_taken_from_an_empty_list() {
        let mut modes = picker();
        press(&mut modes, KeyCode::Char('p'));
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::This(2));
        press(&mut modes, KeyCode::Char('x'));
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::Nothing);
        press(&mut modes, KeyCode::Backspace);
        assert_eq!(press(&mut modes, KeyCode::Enter), MenuPick::This(2));
        assert_eq!(press(&mut modes, KeyCode::Esc), MenuPick::Away);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in [6, 20, 80] {
            for line in picker().lines(ScreenTheme::PLAIN, width, 5) {
                assert!(crate::screen::wrap::line_columns(&line) <= width, "{line}");
            }
        }
    }
}
