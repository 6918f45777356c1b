//! The question whether a call may run: its options, each with what it stores, and a rejection with a word to
//! the model. What is asked about is printed above; this is only the choice.

use std::time::Duration;

use agent_client_protocol_schema::v1::{PermissionOption, PermissionOptionId, PermissionOptionKind};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::screen::harmless;
use crate::screen::limits::TYPING;
use crate::screen::terminal::ScreenStyle;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{Margin, columns, cut, wrap};

#[derive(Debug)]
pub(crate) struct PermissionDialog {
    title: String,
    options: Vec<PermissionOption>,
    chosen: Option<usize>,
    /// The user's message to the model with a rejection, while it is typed.
    word: Option<String>,
    opened: Duration,
    /// When the user last typed something else.
    typed: Option<Duration>,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PermissionAnswer {
    Nothing,
    Choose(PermissionOptionId),
    /// Rejected, and this is the next prompt.
    RejectWith(PermissionOptionId, String),
    /// The whole turn ends.
    Stop,
}

impl PermissionDialog {
    /// `typed` is when the user last typed into the composer: whoever is in the middle of a word does not mean
    /// this.
    pub(crate) fn new(
        title: String,
        options: Vec<PermissionOption>,
        opened: Duration,
        typed: Option<Duration>,
    ) -> Self {
        let mut options = options;
        // Options that allow come first, those that reject after them, whatever order the agent names them in.
        options.sort_by_key(|option| match option.kind {
            PermissionOptionKind::AllowOnce => 0,
            PermissionOptionKind::AllowAlways => 1,
            PermissionOptionKind::RejectOnce => 2,
            PermissionOptionKind::RejectAlways => 3,
            _ => 4,
        });
        Self { title, options, chosen: None, word: None, opened, typed }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, now: Duration) -> PermissionAnswer {
        if self.is_in_a_word(now) {
            self.typed = Some(now);
            return PermissionAnswer::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.word.is_some() {
            return self.key_of_word(key);
        }
        let count = self.rows();
        match key.code {
            KeyCode::Esc => return PermissionAnswer::Stop,
            KeyCode::Char('c') if control => return PermissionAnswer::Stop,
            KeyCode::Up => {
                self.chosen = Some(self.chosen.and_then(|at| at.checked_sub(1)).unwrap_or(count - 1));
            }
            KeyCode::Down | KeyCode::Tab => {
                self.chosen = Some(self.chosen.map_or(0, |at| if at + 1 < count { at + 1 } else { 0 }));
            }
            KeyCode::Enter => return self.chosen.map_or(PermissionAnswer::Nothing, |at| self.take(at)),
            KeyCode::Char(digit @ '1'..='9') if !control => {
                let index = usize::from(digit as u8 - b'1');
                if index < count {
                    return self.take(index);
                }
            }
            _ => {}
        }
        PermissionAnswer::Nothing
    }

    fn is_in_a_word(&self, now: Duration) -> bool {
        self.typed.is_some_and(|typed| {
            self.opened.saturating_sub(typed) < TYPING && now.saturating_sub(typed) < TYPING
        })
    }

    fn key_of_word(&mut self, key: KeyEvent) -> PermissionAnswer {
        let Some(word) = &mut self.word else { return PermissionAnswer::Nothing };
        match key.code {
            KeyCode::Esc => self.word = None,
            KeyCode::Backspace => drop(word.pop()),
            KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                word.push(character)
            }
            KeyCode::Enter if !word.trim().is_empty() => {
                let word = std::mem::take(word);
                return match self.rejection() {
                    Some(option) => PermissionAnswer::RejectWith(option, word),
                    None => PermissionAnswer::Nothing,
                };
            }
            _ => {}
        }
        PermissionAnswer::Nothing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(word) = &mut self.word {
            word.push_str(text);
        }
    }

    fn take(&mut self, index: usize) -> PermissionAnswer {
        match self.options.get(index) {
            Some(option) => PermissionAnswer::Choose(option.option_id.clone()),
            None => {
                self.word = Some(String::new());
                PermissionAnswer::Nothing
            }
        }
    }

    /// The options and, if one rejects once, the same with a word.
    fn rows(&self) -> usize {
        self.options.len() + usize::from(self.rejection().is_some())
    }

    fn rejection(&self) -> Option<PermissionOptionId> {
        let rejects = |option: &&PermissionOption| option.kind == PermissionOptionKind::RejectOnce;
        self.options.iter().find(rejects).map(|option| option.option_id.clone())
    }

    pub(crate) fn lines(&self, theme: ScreenTheme, width: usize) -> Vec<Line<'static>> {
        let title = theme.showable(&harmless::exact_line(&self.title));
        let mut lines = vec![Line::from(theme.span(Tone::Warning, cut(&title, width, theme.ellipsis())))];
        if let Some(word) = &self.word {
            let typed = format!("{}{}", theme.showable(&harmless::exact_line(word)), theme.bar());
            let margin = Margin::hanging(theme.span(Tone::User, format!("{} ", theme.pointer())));
            lines.extend(wrap(&[Span::raw(typed)], &margin, width));
            let back = format!(" {} esc back", theme.dot());
            let back = if theme.screen == ScreenStyle::Drawn { back.as_str() } else { "" };
            let help = format!("enter rejects and sends this{back}");
            lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, width, theme.ellipsis()))));
            return lines;
        }
        let names = self.options.iter().map(|option| option.name.clone());
        let with_word =
            self.rejection().map(|_| format!("Reject, and say what to do instead{}", theme.ellipsis()));
        for (index, name) in names.chain(with_word).enumerate() {
            let (sign, role) = match self.chosen == Some(index) {
                true => (theme.pointer(), Tone::Chosen),
                false => (" ", Tone::Plain),
            };
            let margin = Margin::hanging(theme.span(role, format!("{sign} {} ", index + 1)));
            let name = theme.span(role, theme.showable(&harmless::exact_line(&name)));
            lines.extend(wrap(&[name], &margin, width));
        }
        let choose = match theme.screen {
            ScreenStyle::Drawn => format!("1-{} or {} and enter", self.rows(), theme.arrows()),
            ScreenStyle::Lines => format!("1-{} and enter", self.rows()),
        };
        let help = format!("{choose} {} {} stops the turn", theme.dot(), theme.stopper());
        lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, width, theme.ellipsis()))));
        debug_assert!(
            lines.iter().all(|line| crate::screen::wrap::line_columns(line) <= width.max(columns("› 1 xx")))
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<PermissionOption> {
        vec![
            PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new("always", "Always allow cargo test", PermissionOptionKind::AllowAlways),
            PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
        ]
    }

    fn dialog(typed: Option<Duration>) -> PermissionDialog {
        PermissionDialog::new("Allow?".to_owned(), options(), Duration::from_secs(10), typed)
    }

    fn press(dialog: &mut PermissionDialog, code: KeyCode) -> PermissionAnswer {
        dialog.key(KeyEvent::from(code), Duration::from_secs(10))
    }

    fn chosen(id: &str) -> PermissionAnswer {
        PermissionAnswer::Choose(PermissionOptionId::new(id))
    }

    #[test]
    fn nothing_is_chosen_until_somebody_chooses() {
        let mut asked = dialog(None);
        assert_eq!(press(&mut asked, KeyCode::Enter), PermissionAnswer::Nothing);
        press(&mut asked, KeyCode::Down);
        press(&mut asked, KeyCode::Down);
        assert_eq!(press(&mut asked, KeyCode::Enter), chosen("always"));
        assert_eq!(press(&mut dialog(None), KeyCode::Char('1')), chosen("once"));
        assert_eq!(press(&mut dialog(None), KeyCode::Char('9')), PermissionAnswer::Nothing);
        assert_eq!(press(&mut dialog(None), KeyCode::Esc), PermissionAnswer::Stop);
    }

    #[test]
    fn what_allows_and_what_rejects_stand_together() {
        let mut mixed = options();
        mixed.push(PermissionOption::new("never", "Always reject", PermissionOptionKind::RejectAlways));
        mixed.push(PermissionOption::new("edits", "Always allow edits", PermissionOptionKind::AllowAlways));
        mixed.reverse();
        let asked = PermissionDialog::new("Allow?".to_owned(), mixed, Duration::ZERO, None);
        let shown: Vec<String> = asked.options.iter().map(|option| option.option_id.0.to_string()).collect();
        assert_eq!(shown, ["once", "edits", "always", "no", "never"]);
    }

    #[test]
    fn a_rejection_takes_a_word_along() {
        let mut asked = dialog(None);
        press(&mut asked, KeyCode::Char('4'));
        assert_eq!(press(&mut asked, KeyCode::Enter), PermissionAnswer::Nothing);
        for character in "use 1".chars() {
            press(&mut asked, KeyCode::Char(character));
        }
        let expected = PermissionAnswer::RejectWith(PermissionOptionId::new("no"), "use 1".to_owned());
        assert_eq!(press(&mut asked, KeyCode::Enter), expected);
    }

    #[test]
    fn keys_of_a_word_that_was_being_typed_do_not_answer() {
        let just_before = Duration::from_millis(9_900);
        let mut asked = dialog(Some(just_before));
        assert_eq!(press(&mut asked, KeyCode::Char('1')), PermissionAnswer::Nothing);
        let later = Duration::from_secs(11);
        assert_eq!(asked.key(KeyEvent::from(KeyCode::Char('1')), later), chosen("once"));
    }
}
