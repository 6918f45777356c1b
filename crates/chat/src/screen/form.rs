//! A form of the agent: one field at a time, with choices or a line to write. Gives what was filled in.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ElicitationAcceptAction, ElicitationAction, ElicitationContentValue, ElicitationSchema,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::screen::harmless;
use crate::screen::terminal::ScreenStyle;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{Margin, cut, wrap};

mod field;

use field::{Filled, FormField};

#[derive(Debug)]
pub(crate) struct FormDialog {
    fields: Vec<FormField>,
    at: usize,
    /// The mistake in the last input.
    complaint: Option<String>,
}

/// The result of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormStep {
    Nothing,
    Give(ElicitationAction),
}

impl FormDialog {
    pub(crate) fn new(schema: &ElicitationSchema) -> Self {
        let required = schema.required.as_deref().unwrap_or_default();
        let fields = schema.properties.iter().map(|(name, property)| {
            let need = if required.contains(name) { field::Need::Required } else { field::Need::Optional };
            FormField::new(name, property, need)
        });
        Self { fields: fields.collect(), at: 0, complaint: None }
    }

    /// Whether its only question is this text.
    pub(crate) fn is_only(&self, text: &str) -> bool {
        matches!(self.fields.as_slice(), [field] if field.description.trim() == text.trim())
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> FormStep {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return FormStep::Give(ElicitationAction::Cancel),
            KeyCode::Char('c') if control => return FormStep::Give(ElicitationAction::Cancel),
            KeyCode::Char('d') if control => return FormStep::Give(ElicitationAction::Decline),
            KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Enter => return self.next(),
            _ => {
                self.complaint = self.fields.get_mut(self.at).and_then(|field| field.key(key).err());
            }
        }
        FormStep::Nothing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at) {
            field.paste(text);
        }
    }

    fn next(&mut self) -> FormStep {
        if let Some(field) = self.fields.get(self.at)
            && let Err(complaint) = field.value()
        {
            self.complaint = Some(complaint);
            return FormStep::Nothing;
        }
        self.at += 1;
        if self.at < self.fields.len() {
            return FormStep::Nothing;
        }
        let mut content: BTreeMap<String, ElicitationContentValue> = BTreeMap::new();
        for (index, field) in self.fields.iter().enumerate() {
            match field.value() {
                Ok(Filled::Value(value)) => drop(content.insert(field.name.clone(), value)),
                Ok(Filled::LeftOut) => {}
                Err(complaint) => {
                    (self.at, self.complaint) = (index, Some(complaint));
                    return FormStep::Nothing;
                }
            }
        }
        let filled = ElicitationAcceptAction::new().content(content);
        FormStep::Give(ElicitationAction::Accept(filled))
    }

    pub(crate) fn lines(&self, theme: ScreenTheme, width: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let Some(field) = self.fields.get(self.at.min(self.fields.len().saturating_sub(1))) else {
            let text = format!("enter agrees {}", ways_out(theme));
            return vec![Line::from(theme.span(Tone::Quiet, cut(&text, width, theme.ellipsis())))];
        };
        let place = match self.fields.len() {
            1 => String::new(),
            count => format!("  {} of {count}", self.at + 1),
        };
        let title = vec![
            theme.span(Tone::Warning, theme.showable(&harmless::exact_line(&field.title))),
            theme.span(Tone::Quiet, place),
        ];
        lines.extend(wrap(&title, &Margin::default(), width));
        if !field.description.is_empty() {
            let text = theme.showable(&harmless::prose(&field.description));
            lines.extend(wrap(&[Span::raw(text)], &Margin::default(), width));
        }
        lines.extend(field.lines(theme, width));
        if let Some(complaint) = &self.complaint {
            lines.push(Line::from(theme.span(Tone::Bad, cut(complaint, width, theme.ellipsis()))));
        }
        let keys = field.keys(theme);
        let help = format!("{keys} {}", ways_out(theme));
        lines.push(Line::from(theme.span(Tone::Quiet, cut(&help, width, theme.ellipsis()))));
        lines
    }
}

fn ways_out(theme: ScreenTheme) -> String {
    match theme.screen {
        ScreenStyle::Drawn => format!("{0} ctrl-d declines {0} esc cancels", theme.dot()),
        ScreenStyle::Lines => format!("{} ctrl-c stops the turn", theme.dot()),
    }
}

#[cfg(test)]
mod tests;
