//! Colours for terminals; none for pipes and files.

use crate::answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Green,
    Red,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    Grey,
    Bold,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Coloured,
    Plain,
}

impl Paint {
    /// Colours on a terminal, unless the user turned them off.
    pub(crate) fn for_answers() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && answer::is_seen() { Self::Coloured } else { Self::Plain }
    }

    pub(crate) fn is_coloured(self) -> bool {
        match self {
            Self::Coloured => true,
            Self::Plain => false,
        }
    }

    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Green => "32",
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Magenta => "35",
            Colour::Cyan => "36",
            Colour::Grey => "90",
            Colour::Bold => "1",
        };
        match self {
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}
