//! One word of a command after quotes and expansions: what of it is certain before anything runs. Knows no programs.

/// Consecutive parts of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// A pattern that the shell fills with names of files.
    Wild(String),
    /// Some integer.
    Number,
    /// Anything at all.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    /// As it stands in the command; shown where the word itself is not known.
    pub(super) source: String,
    /// Its unknown parts stand without quotes: it may become several words, or none.
    pub(super) splits: bool,
}

/// What a word says as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At(String),
    /// Any names below this directory.
    Below(String),
    Unknown,
}

impl Word {
    pub(super) fn known(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())], source: text.to_owned(), splits: false }
    }

    pub(super) fn unknown(source: &str) -> Self {
        Self { pieces: vec![Piece::Unknown], source: source.to_owned(), splits: true }
    }

    /// The word where nothing about it is open.
    pub(super) fn text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        self.text().unwrap_or(&self.source).to_owned()
    }

    /// Whether an unknown part may turn out to be an option of the program.
    pub(super) fn may_be_option(&self) -> bool {
        self.splits
            || match self.pieces.first() {
                Some(Piece::Text(text)) => {
                    text.is_empty() || (text.starts_with('-') && self.text().is_none())
                }
                Some(Piece::Wild(_) | Piece::Number | Piece::Unknown) => true,
                None => false,
            }
    }

    pub(super) fn is_numeric(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => text.chars().all(|character| character.is_ascii_digit()),
            Piece::Number => true,
            Piece::Wild(_) | Piece::Unknown => false,
        })
    }

    pub(super) fn place(&self) -> Place {
        if self.splits {
            return Place::Unknown;
        }
        let mut literal = String::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => literal.push_str(text),
                Piece::Unknown => return Place::Unknown,
                Piece::Wild(_) | Piece::Number => {
                    return match climbs(&self.pieces[index..]) {
                        true => Place::Unknown,
                        false => Place::Below(directory_part(&literal)),
                    };
                }
            }
        }
        Place::At(literal)
    }

    /// What follows `prefix`, when the word certainly begins with it.
    pub(super) fn after(&self, prefix: &str) -> Option<Self> {
        let Some(Piece::Text(first)) = self.pieces.first() else { return None };
        let rest = first.strip_prefix(prefix)?;
        let mut word = self.clone();
        word.pieces[0] = Piece::Text(rest.to_owned());
        if rest.is_empty() {
            word.pieces.remove(0);
        }
        Some(word)
    }

    /// Its certain beginning.
    pub(super) fn beginning(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Wild(_) | Piece::Number | Piece::Unknown) | None => "",
        }
    }
}

/// Whether something behind a pattern leads out of the directory it stands in.
fn climbs(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Text(text) | Piece::Wild(text) => text.contains(".."),
        Piece::Unknown => true,
        Piece::Number => false,
    })
}

fn directory_part(literal: &str) -> String {
    match literal.rfind('/') {
        Some(0) => "/".to_owned(),
        Some(end) => literal[..end].to_owned(),
        None => ".".to_owned(),
    }
}
