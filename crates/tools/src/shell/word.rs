//! One word of a command after quotes and expansions: what of it is certain before anything runs. Knows no programs.

/// Consecutive parts of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// A pattern that the shell fills with names of files.
    Wild(String),
    /// Some name that fits this pattern, taken from it before: quotes no longer make a difference.
    Chosen(String),
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
    /// Names below this directory that fit the pattern, which begins there.
    Below {
        directory: String,
        pattern: String,
    },
    /// Everything below a directory, however deep.
    Through(String),
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
                Some(Piece::Wild(_) | Piece::Chosen(_) | Piece::Number | Piece::Unknown) => true,
                None => false,
            }
    }

    /// Whether the shell may make several words of it.
    pub(super) fn may_be_several(&self) -> bool {
        self.splits || self.pieces.iter().any(|piece| matches!(piece, Piece::Wild(_)))
    }

    /// Whether it is an integer as arithmetic writes it: a leading zero would make it octal, or an error.
    pub(super) fn is_numeric(&self) -> bool {
        match self.pieces.as_slice() {
            [Piece::Number] => true,
            [Piece::Text(text)] => {
                text == "0"
                    || text.bytes().all(|digit| digit.is_ascii_digit())
                        && text.bytes().next().is_some_and(|first| first != b'0')
            }
            _ => false,
        }
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
                Piece::Wild(_) | Piece::Chosen(_) | Piece::Number => {
                    return match climbs(&self.pieces[index..]) {
                        true => Place::Unknown,
                        false => below(&literal, &self.pieces[index..]),
                    };
                }
            }
        }
        Place::At(literal)
    }

    /// `*/../*`: each name that fits multiplies the others.
    pub(super) fn climbs_back(&self) -> bool {
        let wild = self.pieces.iter().position(|piece| matches!(piece, Piece::Wild(_)));
        wild.is_some_and(|first| {
            self.pieces[first..].iter().any(|piece| match piece {
                Piece::Text(text) => text.split('/').any(|name| name == ".."),
                Piece::Wild(_) | Piece::Chosen(_) | Piece::Number | Piece::Unknown => false,
            })
        })
    }

    /// The same after its patterns were filled: one of the names.
    pub(super) fn chosen(mut self) -> Self {
        for piece in &mut self.pieces {
            if let Piece::Wild(pattern) = piece {
                *piece = Piece::Chosen(std::mem::take(pattern));
            }
        }
        self
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
            Some(Piece::Wild(_) | Piece::Chosen(_) | Piece::Number | Piece::Unknown) | None => "",
        }
    }
}

/// Whether something behind a pattern leads out of the directory it stands in.
fn climbs(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Text(text) | Piece::Wild(text) | Piece::Chosen(text) => text.contains(".."),
        Piece::Unknown => true,
        Piece::Number => false,
    })
}

/// What `find` fills in for a name, at any depth. Nobody writes it: two stars are two pieces.
pub(super) const ANY_DEPTH: &str = "**";
/// The same where it names no links.
pub(super) const ANY_FILE: &str = "***";

/// A pattern whose first wildcard stands behind `literal`.
fn below(literal: &str, rest: &[Piece]) -> Place {
    let (directory, name) = match literal.rfind('/') {
        Some(0) => ("/", &literal[1..]),
        Some(end) => (&literal[..end], &literal[end + 1..]),
        None => (".", literal),
    };
    let mut pattern = name.to_owned();
    for piece in rest {
        match piece {
            Piece::Wild(wild) if wild == ANY_FILE => return Place::Through(directory.to_owned()),
            Piece::Wild(wild) if wild == ANY_DEPTH => {
                return Place::Below { directory: directory.to_owned(), pattern: wild.clone() };
            }
            Piece::Text(text) | Piece::Wild(text) | Piece::Chosen(text) => pattern.push_str(text),
            Piece::Number | Piece::Unknown => pattern.push('*'),
        }
    }
    Place::Below { directory: directory.to_owned(), pattern }
}
