//! One word of a command after quotes and expansions: what is certain about it before anything runs. Knows no
//! programs.

/// Consecutive parts of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPart {
    Text(String),
    /// A pattern that the shell replaces by names of files.
    Wild(String),
    /// Some name that matches this pattern, chosen earlier: quotes no longer make a difference.
    Chosen(String),
    /// Some integer.
    Number,
    /// Any text.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) pieces: Vec<WordPart>,
    /// The text in the command, to show if the word itself is unknown.
    pub(super) source: String,
    /// It has unknown parts without quotes, so it may become several words, or none.
    pub(super) splits: bool,
}

/// The meaning of a word as the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathWord {
    At(String),
    /// Names below this directory that match the pattern, which begins there.
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
        Self { pieces: vec![WordPart::Text(text.to_owned())], source: text.to_owned(), splits: false }
    }

    pub(super) fn unknown(source: &str) -> Self {
        Self { pieces: vec![WordPart::Unknown], source: source.to_owned(), splits: true }
    }

    /// The word, if it is certain.
    pub(super) fn text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [WordPart::Text(text)] => Some(text),
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
                Some(WordPart::Text(text)) => {
                    text.is_empty() || (text.starts_with('-') && self.text().is_none())
                }
                Some(WordPart::Wild(_) | WordPart::Chosen(_) | WordPart::Number | WordPart::Unknown) => true,
                None => false,
            }
    }

    /// Whether the shell may make several words of it.
    pub(super) fn may_be_several(&self) -> bool {
        self.splits || self.pieces.iter().any(|piece| matches!(piece, WordPart::Wild(_)))
    }

    /// Whether it is an integer in the form of arithmetic: a leading zero would make it octal, or an error.
    pub(super) fn is_numeric(&self) -> bool {
        match self.pieces.as_slice() {
            [WordPart::Number] => true,
            [WordPart::Text(text)] => {
                text == "0"
                    || text.bytes().all(|digit| digit.is_ascii_digit())
                        && text.bytes().next().is_some_and(|first| first != b'0')
            }
            _ => false,
        }
    }

    pub(super) fn place(&self) -> PathWord {
        if self.splits {
            return PathWord::Unknown;
        }
        let mut literal = String::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                WordPart::Text(text) => literal.push_str(text),
                WordPart::Unknown => return PathWord::Unknown,
                WordPart::Wild(_) | WordPart::Chosen(_) | WordPart::Number => {
                    return match climbs(&self.pieces[index..]) {
                        true => PathWord::Unknown,
                        false => below(&literal, &self.pieces[index..]),
                    };
                }
            }
        }
        PathWord::At(literal)
    }

    /// `*/../*`: each matching name multiplies the others.
    pub(super) fn climbs_back(&self) -> bool {
        let wild = self.pieces.iter().position(|piece| matches!(piece, WordPart::Wild(_)));
        wild.is_some_and(|first| {
            self.pieces[first..].iter().any(|piece| match piece {
                WordPart::Text(text) => text.split('/').any(|name| name == ".."),
                WordPart::Wild(_) | WordPart::Chosen(_) | WordPart::Number | WordPart::Unknown => false,
            })
        })
    }

    /// The same after its patterns were replaced: one of the names.
    pub(super) fn chosen(mut self) -> Self {
        for piece in &mut self.pieces {
            if let WordPart::Wild(pattern) = piece {
                *piece = WordPart::Chosen(std::mem::take(pattern));
            }
        }
        self
    }

    /// The rest after `prefix`, if the word certainly begins with it.
    pub(super) fn after(&self, prefix: &str) -> Option<Self> {
        let Some(WordPart::Text(first)) = self.pieces.first() else { return None };
        let rest = first.strip_prefix(prefix)?;
        let mut word = self.clone();
        word.pieces[0] = WordPart::Text(rest.to_owned());
        if rest.is_empty() {
            word.pieces.remove(0);
        }
        Some(word)
    }

    /// Its certain beginning.
    pub(super) fn beginning(&self) -> &str {
        match self.pieces.first() {
            Some(WordPart::Text(text)) => text,
            Some(WordPart::Wild(_) | WordPart::Chosen(_) | WordPart::Number | WordPart::Unknown) | None => "",
        }
    }
}

/// Whether something after a pattern leads out of its directory.
fn climbs(pieces: &[WordPart]) -> bool {
    pieces.iter().any(|piece| match piece {
        WordPart::Text(text) | WordPart::Wild(text) | WordPart::Chosen(text) => text.contains(".."),
        WordPart::Unknown => true,
        WordPart::Number => false,
    })
}

/// What `find` inserts for a name, at any depth. No line can contain it: two stars would be two parts.
pub(super) const ANY_DEPTH: &str = "**";
/// The same if it names no links.
pub(super) const ANY_FILE: &str = "***";

/// A pattern whose first wildcard follows `literal`.
fn below(literal: &str, rest: &[WordPart]) -> PathWord {
    let (directory, name) = match literal.rfind('/') {
        Some(0) => ("/", &literal[1..]),
        Some(end) => (&literal[..end], &literal[end + 1..]),
        None => (".", literal),
    };
    let mut pattern = name.to_owned();
    for piece in rest {
        match piece {
            WordPart::Wild(wild) if wild == ANY_FILE => return PathWord::Through(directory.to_owned()),
            WordPart::Wild(wild) if wild == ANY_DEPTH => {
                return PathWord::Below { directory: directory.to_owned(), pattern: wild.clone() };
            }
            WordPart::Text(text) | WordPart::Wild(text) | WordPart::Chosen(text) => pattern.push_str(text),
            WordPart::Number | WordPart::Unknown => pattern.push('*'),
        }
    }
    PathWord::Below { directory: directory.to_owned(), pattern }
}
