//! How things look: colours that work on light and dark grounds, and signs, with plain ones for terminals
//! without either. The sixteen colours of the terminal's own theme are used, never fixed ones.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

use crate::screen::drawing::Canvas;
use crate::screen::terminal::ScreenStyle;

/// The role of a piece of text, which decides its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tone {
    Plain,
    /// Beside the matter: hints, numbers of lines, finished things.
    Quiet,
    Strong,
    Emphasis,
    Struck,
    Heading,
    Code,
    Link,
    /// The user's words and the user's place.
    User,
    Good,
    Bad,
    Warning,
    Added,
    AddedWord,
    Removed,
    RemovedWord,
    Keyword,
    Text,
    Number,
    Comment,
    /// The chosen row of a list.
    Chosen,
}

/// Whether the terminal shows colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    Sixteen,
    None,
}

/// Whether it shows more than ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    Unicode,
    Ascii,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenTheme {
    pub colours: Colours,
    pub signs: Signs,
    pub canvas: Canvas,
    /// Which keys a help may name: of lines there are only those that end a line or a program.
    pub screen: ScreenStyle,
}

impl ScreenTheme {
    /// For texts that are kept, not painted.
    pub(crate) const PLAIN: Self = Self {
        colours: Colours::None,
        signs: Signs::Unicode,
        canvas: Canvas::None,
        screen: ScreenStyle::Drawn,
    };

    /// As the environment has it: `NO_COLOR`, `TERM`, `LC_ALL`, `LC_CTYPE`, `LANG`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let plain = is_set("NO_COLOR").is_some() || is_set("TERM").is_none_or(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| is_set(name)).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8");
        Self {
            colours: if plain { Colours::None } else { Colours::Sixteen },
            signs: if unicode { Signs::Unicode } else { Signs::Ascii },
            canvas: Canvas::from_environment(variable),
            screen: ScreenStyle::Drawn,
        }
    }

    /// What a person does to stop what is under way.
    pub(crate) fn stopper(self) -> &'static str {
        match self.screen {
            ScreenStyle::Drawn => "esc",
            ScreenStyle::Lines => "ctrl-c",
        }
    }

    /// Attributes stay where there are no colours: they carry meaning, too.
    pub(crate) fn style(self, role: Tone) -> Style {
        let style = Style::new();
        let (style, colour) = match role {
            Tone::Plain => (style, None),
            Tone::Quiet => (style.add_modifier(Modifier::DIM), None),
            Tone::Strong => (style.add_modifier(Modifier::BOLD), None),
            Tone::Emphasis => (style.add_modifier(Modifier::ITALIC), None),
            Tone::Struck => (style.add_modifier(Modifier::CROSSED_OUT), None),
            Tone::Heading => (style.add_modifier(Modifier::BOLD), Some(Color::Cyan)),
            Tone::Code => (style, Some(Color::Cyan)),
            Tone::Link => (style.add_modifier(Modifier::UNDERLINED), Some(Color::Blue)),
            Tone::User => (style.add_modifier(Modifier::BOLD), Some(Color::Cyan)),
            Tone::Good | Tone::Added | Tone::Text => (style, Some(Color::Green)),
            Tone::Bad | Tone::Removed => (style, Some(Color::Red)),
            Tone::Warning => (style, Some(Color::Yellow)),
            Tone::AddedWord => {
                (style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED), Some(Color::Green))
            }
            Tone::RemovedWord => {
                (style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED), Some(Color::Red))
            }
            Tone::Keyword => (style, Some(Color::Magenta)),
            Tone::Number => (style, Some(Color::Yellow)),
            Tone::Comment => (style.add_modifier(Modifier::DIM | Modifier::ITALIC), None),
            Tone::Chosen => (style.add_modifier(Modifier::BOLD), Some(Color::Cyan)),
        };
        match (self.colours, colour) {
            (Colours::Sixteen, Some(colour)) => style.fg(colour),
            (Colours::Sixteen, None) | (Colours::None, _) => style,
        }
    }

    pub(crate) fn span(self, role: Tone, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(role))
    }

    fn choose(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.signs {
            Signs::Unicode => unicode,
            Signs::Ascii => ascii,
        }
    }

    pub(crate) fn bullet(self) -> &'static str {
        self.choose("•", "*")
    }
    pub(crate) fn done(self) -> &'static str {
        self.choose("✓", "+")
    }
    pub(crate) fn failed(self) -> &'static str {
        self.choose("✗", "x")
    }
    pub(crate) fn open(self) -> &'static str {
        self.choose("○", "o")
    }
    pub(crate) fn pointer(self) -> &'static str {
        self.choose("›", ">")
    }
    pub(crate) fn rule(self) -> &'static str {
        self.choose("─", "-")
    }
    pub(crate) fn bar(self) -> &'static str {
        self.choose("│", "|")
    }
    pub(crate) fn cross(self) -> &'static str {
        self.choose("┼", "+")
    }
    pub(crate) fn ellipsis(self) -> &'static str {
        self.choose("…", "...")
    }
    pub(crate) fn dot(self) -> &'static str {
        self.choose("·", "-")
    }
    pub(crate) fn thought(self) -> &'static str {
        self.choose("∴", "~")
    }
    pub(crate) fn checked(self) -> &'static str {
        self.choose("☑", "[x]")
    }
    pub(crate) fn unchecked(self) -> &'static str {
        self.choose("☐", "[ ]")
    }
    pub(crate) fn arrows(self) -> &'static str {
        self.choose("↑↓", "up/down")
    }
    pub(crate) fn full(self) -> &'static str {
        self.choose("━", "#")
    }
    pub(crate) fn empty(self) -> &'static str {
        self.choose("─", ".")
    }
    /// The sign that turns while something is going on.
    pub(crate) fn spinner(self, step: usize) -> &'static str {
        const TURNING: [&str; 8] = ["⣾", "⣽", "⣻", "⢿", "⡿", "⣟", "⣯", "⣷"];
        const PLAIN: [&str; 4] = ["|", "/", "-", "\\"];
        match self.signs {
            Signs::Unicode => TURNING[step % TURNING.len()],
            Signs::Ascii => PLAIN[step % PLAIN.len()],
        }
    }

    /// A text as this terminal can show it: without Unicode, what is not ASCII is written out or has a plain
    /// relative.
    pub(crate) fn showable(self, text: &str) -> String {
        if self.signs == Signs::Unicode || text.is_ascii() {
            return text.to_owned();
        }
        text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
            match character {
                '…' => shown.push_str("..."),
                '–' | '—' | '‑' => shown.push('-'),
                '‘' | '’' => shown.push('\''),
                '“' | '”' | '„' => shown.push('"'),
                '•' | '·' => shown.push('*'),
                '→' => shown.push_str("->"),
                '⏎' => shown.push_str("\\n"),
                '\u{a0}' => shown.push(' '),
                ascii if ascii.is_ascii() => shown.push(ascii),
                other => shown.extend(other.escape_unicode()),
            }
            shown
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(pairs: &[(&str, &str)]) -> ScreenTheme {
        ScreenTheme::from_environment(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        let rich = theme(&[("TERM", "xterm"), ("LANG", "en_GB.UTF-8")]);
        assert_eq!(rich, ScreenTheme { colours: Colours::Sixteen, ..ScreenTheme::PLAIN });
        assert_eq!(theme(&[("TERM", "xterm"), ("NO_COLOR", "1"), ("LANG", "C")]).colours, Colours::None);
        assert_eq!(theme(&[("TERM", "dumb"), ("LANG", "C.UTF-8")]).colours, Colours::None);
        assert_eq!(theme(&[("TERM", "xterm"), ("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")]).signs, Signs::Ascii);
    }

    #[test]
    fn a_terminal_without_unicode_gets_ascii() {
        let plain = ScreenTheme { signs: Signs::Ascii, ..ScreenTheme::PLAIN };
        assert_eq!(plain.showable("a → “b” …ä"), "a -> \"b\" ...\\u{e4}");
        assert!((0..9).all(|step| plain.spinner(step).is_ascii()));
    }
}
