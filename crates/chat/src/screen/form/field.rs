//! One field of a form: what may be entered, what is, and what is wrong with it.

use agent_client_protocol_schema::v1::{
    ElicitationContentValue, ElicitationPropertySchema, EnumOption, MultiSelectItems, StringPropertySchema,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::screen::harmless;
use crate::screen::terminal::ScreenStyle;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{Margin, wrap};

#[derive(Debug)]
pub(super) struct FormField {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    need: Need,
    entry: FieldEntry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Optional,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filled {
    Value(ElicitationContentValue),
    LeftOut,
}

#[derive(Debug)]
enum FieldEntry {
    Line {
        typed: String,
        takes: LineTakes,
    },
    /// Nothing is chosen beforehand, but for a default of the agent: a stray Enter agrees to nothing.
    One {
        choices: Vec<EnumOption>,
        chosen: Option<usize>,
    },
    Several {
        choices: Vec<EnumOption>,
        at: usize,
        chosen: Vec<bool>,
        least: u64,
        most: u64,
    },
    YesOrNo {
        yes: Option<bool>,
    },
}

#[derive(Debug)]
enum LineTakes {
    Text { least: u32, most: u32 },
    Integer { least: i64, most: i64 },
    Number { least: f64, most: f64 },
}

impl FormField {
    pub(super) fn new(name: &str, property: &ElicitationPropertySchema, need: Need) -> Self {
        let (title, description, entry) = match property {
            ElicitationPropertySchema::String(text) => (&text.title, &text.description, text_entry(text)),
            ElicitationPropertySchema::Integer(number) => {
                let typed = number.default.map(|number| number.to_string()).unwrap_or_default();
                let takes = LineTakes::Integer {
                    least: number.minimum.unwrap_or(i64::MIN),
                    most: number.maximum.unwrap_or(i64::MAX),
                };
                (&number.title, &number.description, FieldEntry::Line { typed, takes })
            }
            ElicitationPropertySchema::Number(number) => {
                let typed = number.default.map(|number| number.to_string()).unwrap_or_default();
                let takes = LineTakes::Number {
                    least: number.minimum.unwrap_or(f64::NEG_INFINITY),
                    most: number.maximum.unwrap_or(f64::INFINITY),
                };
                (&number.title, &number.description, FieldEntry::Line { typed, takes })
            }
            ElicitationPropertySchema::Boolean(answer) => {
                let entry = FieldEntry::YesOrNo { yes: answer.default };
                (&answer.title, &answer.description, entry)
            }
            ElicitationPropertySchema::Array(list) => {
                let choices = choices_of(&list.items);
                let default = list.default.clone().unwrap_or_default();
                let entry = FieldEntry::Several {
                    chosen: choices.iter().map(|choice| default.contains(&choice.value)).collect(),
                    choices,
                    at: 0,
                    least: list.min_items.unwrap_or(0),
                    most: list.max_items.unwrap_or(u64::MAX),
                };
                (&list.title, &list.description, entry)
            }
            // A kind of a newer protocol: any field can be a line of text.
            _ => {
                let takes = LineTakes::Text { least: 0, most: u32::MAX };
                (&None, &None, FieldEntry::Line { typed: String::new(), takes })
            }
        };
        Self {
            name: name.to_owned(),
            title: title.clone().unwrap_or_else(|| name.to_owned()),
            description: description.clone().unwrap_or_default(),
            need,
            entry,
        }
    }

    /// Why the field has no use for the key, if so.
    pub(super) fn key(&mut self, key: KeyEvent) -> Result<(), String> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let number = match key.code {
            KeyCode::Char(digit @ '1'..='9') => Some(usize::from(digit as u8 - b'1')),
            _ => None,
        };
        match &mut self.entry {
            FieldEntry::Line { typed, .. } => match key.code {
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Char('u') if control => typed.clear(),
                KeyCode::Char(character) if !control => typed.push(character),
                _ => {}
            },
            FieldEntry::One { choices, chosen } => {
                *chosen = match number.filter(|number| *number < choices.len()) {
                    Some(number) => Some(number),
                    None => moved(key.code, *chosen, choices.len()),
                };
            }
            FieldEntry::Several { choices, at, chosen, .. } => {
                *at = moved(key.code, Some(*at), choices.len()).unwrap_or_default();
                if let Some(number) = number.filter(|number| *number < choices.len()) {
                    *at = number;
                }
                if (key.code == KeyCode::Char(' ') || number.is_some())
                    && let Some(choice) = chosen.get_mut(*at)
                {
                    *choice = !*choice;
                }
            }
            FieldEntry::YesOrNo { yes } => match key.code {
                KeyCode::Char('y' | 'Y') => *yes = Some(true),
                KeyCode::Char('n' | 'N') => *yes = Some(false),
                KeyCode::Up | KeyCode::Down | KeyCode::Tab => {
                    *yes = Some(!yes.unwrap_or(false));
                }
                _ => {}
            },
        }
        match key.code {
            KeyCode::Char(character) if !control && !self.takes(character) => Err(self.how_to_choose()),
            _ => Ok(()),
        }
    }

    fn takes(&self, character: char) -> bool {
        let is_of = |count: usize| {
            character.to_digit(10).is_some_and(|digit| (1..=count).contains(&(digit as usize)))
        };
        match &self.entry {
            FieldEntry::Line { .. } => true,
            FieldEntry::One { choices, .. } => is_of(choices.len()),
            FieldEntry::Several { choices, .. } => character == ' ' || is_of(choices.len()),
            FieldEntry::YesOrNo { .. } => matches!(character, 'y' | 'Y' | 'n' | 'N'),
        }
    }

    fn how_to_choose(&self) -> String {
        match &self.entry {
            FieldEntry::Line { .. } => "this one is needed".to_owned(),
            FieldEntry::One { choices, .. } => {
                format!("choose one first: 1-{} or the arrows, then enter", choices.len().min(9))
            }
            FieldEntry::Several { .. } => "choose with the arrows and space, then enter".to_owned(),
            FieldEntry::YesOrNo { .. } => "choose first: y or n, then enter".to_owned(),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let FieldEntry::Line { typed, .. } = &mut self.entry {
            typed.push_str(text);
        }
    }

    pub(super) fn value(&self) -> Result<Filled, String> {
        let filled = match &self.entry {
            FieldEntry::Line { typed, takes } => match typed.is_empty() {
                true => Filled::LeftOut,
                false => Filled::Value(takes.read(typed)?),
            },
            FieldEntry::One { choices, chosen } => match chosen.and_then(|chosen| choices.get(chosen)) {
                Some(choice) => Filled::Value(ElicitationContentValue::String(choice.value.clone())),
                None => Filled::LeftOut,
            },
            FieldEntry::Several { choices, chosen, least, most, .. } => {
                let chosen = choices.iter().zip(chosen).filter(|(_, chosen)| **chosen);
                let values: Vec<String> = chosen.map(|(choice, _)| choice.value.clone()).collect();
                let count = values.len() as u64;
                if count < *least || count > *most {
                    return Err(match *most {
                        u64::MAX => format!("choose at least {least}"),
                        most => format!("choose {least} to {most}"),
                    });
                }
                Filled::Value(ElicitationContentValue::StringArray(values))
            }
            FieldEntry::YesOrNo { yes } => match yes {
                Some(yes) => Filled::Value(ElicitationContentValue::Boolean(*yes)),
                None => Filled::LeftOut,
            },
        };
        match (&filled, self.need) {
            (Filled::LeftOut, Need::Required) => Err(self.how_to_choose()),
            (Filled::LeftOut | Filled::Value(_), _) => Ok(filled),
        }
    }

    pub(super) fn lines(&self, theme: ScreenTheme, width: usize) -> Vec<Line<'static>> {
        match &self.entry {
            FieldEntry::Line { typed, .. } => {
                let typed = format!("{}{}", theme.showable(&harmless::exact_line(typed)), theme.bar());
                let margin = Margin::hanging(theme.span(Tone::User, format!("{} ", theme.pointer())));
                wrap(&[Span::raw(typed)], &margin, width)
            }
            FieldEntry::One { choices, chosen } => {
                let rows = choices.iter().enumerate().flat_map(|(index, choice)| {
                    let role = if Some(index) == *chosen { Tone::Chosen } else { Tone::Plain };
                    row(choice, &format!("{} ", index + 1), role, theme, width)
                });
                rows.collect()
            }
            FieldEntry::Several { choices, at, chosen, .. } => {
                let rows = choices.iter().zip(chosen).enumerate().flat_map(|(index, (choice, chosen))| {
                    let sign = if *chosen { theme.checked() } else { theme.unchecked() };
                    let role = if index == *at { Tone::Chosen } else { Tone::Plain };
                    row(choice, &format!("{sign} "), role, theme, width)
                });
                rows.collect()
            }
            FieldEntry::YesOrNo { yes } => {
                let rows = [("yes", true), ("no", false)].into_iter().flat_map(|(name, means)| {
                    let role = if *yes == Some(means) { Tone::Chosen } else { Tone::Plain };
                    row(&EnumOption::new(name, name), "", role, theme, width)
                });
                rows.collect()
            }
        }
    }

    pub(super) fn keys(&self, theme: ScreenTheme) -> String {
        match (&self.entry, theme.screen) {
            (FieldEntry::Line { .. }, _) => "enter".to_owned(),
            (FieldEntry::One { .. }, ScreenStyle::Drawn) => format!("{} and enter", theme.arrows()),
            (FieldEntry::One { .. }, ScreenStyle::Lines) => "a number and enter".to_owned(),
            (FieldEntry::Several { .. }, ScreenStyle::Drawn) => format!("{}, space, enter", theme.arrows()),
            (FieldEntry::Several { .. }, ScreenStyle::Lines) => "numbers, as 13, and enter".to_owned(),
            (FieldEntry::YesOrNo { .. }, _) => "y, n, enter".to_owned(),
        }
    }
}

impl LineTakes {
    fn read(&self, typed: &str) -> Result<ElicitationContentValue, String> {
        match self {
            Self::Text { least, most } => {
                let count = typed.chars().count() as u64;
                match count < u64::from(*least) || count > u64::from(*most) {
                    true if *most == u32::MAX => Err(format!("at least {least} characters")),
                    true => Err(format!("{least} to {most} characters")),
                    false => Ok(ElicitationContentValue::String(typed.to_owned())),
                }
            }
            Self::Integer { least, most } => match typed.trim().parse::<i64>() {
                Ok(number) if (*least..=*most).contains(&number) => {
                    Ok(ElicitationContentValue::Integer(number))
                }
                Ok(_) => Err(format!("a number from {least} to {most}")),
                Err(_) => Err("a whole number".to_owned()),
            },
            Self::Number { least, most } => match typed.trim().parse::<f64>() {
                Ok(number) if number.is_finite() && number >= *least && number <= *most => {
                    Ok(ElicitationContentValue::Number(number))
                }
                Ok(_) => Err(format!("a number from {least} to {most}")),
                Err(_) => Err("a number".to_owned()),
            },
        }
    }
}

/// A line to write, or one of the values that it may have.
fn text_entry(text: &StringPropertySchema) -> FieldEntry {
    let values = text.enum_values.iter().flatten();
    let named = values.map(|value| EnumOption::new(value.clone(), value.clone()));
    let choices = text.one_of.clone().unwrap_or_else(|| named.collect());
    let default = text.default.clone().unwrap_or_default();
    if choices.is_empty() {
        let (least, most) = (text.min_length.unwrap_or(0), text.max_length.unwrap_or(u32::MAX));
        return FieldEntry::Line { typed: default, takes: LineTakes::Text { least, most } };
    }
    let chosen = choices.iter().position(|choice| choice.value == default);
    FieldEntry::One { choices, chosen }
}

fn choices_of(items: &MultiSelectItems) -> Vec<EnumOption> {
    match items {
        MultiSelectItems::Titled(titled) => titled.options.clone(),
        MultiSelectItems::String(plain) => {
            plain.values.iter().map(|value| EnumOption::new(value.clone(), value.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// The first key goes to the first choice, or up to the last one.
fn moved(code: KeyCode, at: Option<usize>, count: usize) -> Option<usize> {
    let last = count.checked_sub(1)?;
    match code {
        KeyCode::Up => Some(at.and_then(|at| at.checked_sub(1)).unwrap_or(last)),
        KeyCode::Down | KeyCode::Tab => Some(at.map_or(0, |at| (at + 1) % count)),
        _ => at,
    }
}

fn row(
    choice: &EnumOption,
    number: &str,
    role: Tone,
    theme: ScreenTheme,
    width: usize,
) -> Vec<Line<'static>> {
    let sign = if role == Tone::Chosen { theme.pointer() } else { " " };
    let mut spans = vec![theme.span(role, theme.showable(&harmless::exact_line(&choice.title)))];
    if let Some(description) = choice.description.as_deref().filter(|text| !text.is_empty()) {
        let text = theme.showable(&harmless::exact_line(description));
        spans.push(theme.span(Tone::Quiet, format!("  {text}")));
    }
    wrap(&spans, &Margin::hanging(theme.span(role, format!("{sign} {number}"))), width)
}
