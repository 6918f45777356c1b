//! The conversation where lines are typed instead of keys: every dialog is answered by a number or a text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Front, ScreenState};

/// More than any page has.
const WHOLE_PAGE: usize = 100_000;

impl ScreenState {
    pub(crate) fn line(&mut self, line: &str) {
        match &mut self.front {
            Front::Composer => {
                // A line that ended with a backslash goes on.
                let text = format!("{}{line}", self.composer.text());
                self.composer.set(text);
                self.key(KeyEvent::from(KeyCode::Enter));
            }
            Front::Menu(menu) => match line.trim().parse::<usize>() {
                Ok(number) => match menu.row(number) {
                    Some(row) => {
                        self.close_front();
                        self.picked(row);
                    }
                    None => self.tell(format!("there is no number {number}")),
                },
                Err(_) if line.trim().is_empty() => self.key(KeyEvent::from(KeyCode::Esc)),
                Err(_) => {
                    menu.search(line.trim());
                }
            },
            Front::Permission { .. } | Front::Form { .. } => {
                for character in line.chars() {
                    self.key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE));
                    // The number alone was the answer.
                    if matches!(self.front, Front::Composer) {
                        return;
                    }
                }
                self.key(KeyEvent::from(KeyCode::Enter));
            }
            Front::Pages(_) => self.close_front(),
        }
    }

    /// The open question, to be read as a whole; empty without one.
    pub(crate) fn dialog_lines(&mut self) -> Vec<String> {
        let (theme, width) = (self.theme, self.columns);
        let lines = match &mut self.front {
            Front::Composer => return Vec::new(),
            Front::Permission { dialog, .. } => dialog.lines(theme, width),
            Front::Form { dialog, .. } => dialog.lines(theme, width),
            Front::Menu(menu) => {
                let mut lines = menu.numbered(theme, width);
                lines.push("A number, words to search, or an empty line to leave.".to_owned());
                return lines;
            }
            Front::Pages(pager) => {
                let lines = pager.lines(theme, width, WHOLE_PAGE);
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                // Read through at once; there is nothing to scroll.
                let end = lines.len().saturating_sub(1);
                let kept = lines[..end].iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
                let lines = lines[..kept].to_vec();
                self.close_front();
                return lines;
            }
        };
        lines.iter().map(ToString::to_string).collect()
    }

    /// What is shown instead of the status line.
    pub(crate) fn hint_shown(&self) -> Option<String> {
        self.hint.as_ref().map(|(hint, _)| self.theme.showable(&crate::screen::harmless::exact_line(hint)))
    }

    pub(crate) fn waits_for_a_line(&self) -> bool {
        !matches!(self.front, Front::Composer) || !self.is_working() && !self.own_runs.is_running()
    }
}
