//! Pictures as terminals draw them: by kitty's protocol, by iTerm2's, or as sixels. Decides how large one is;
//! writes nothing itself.
//!
//! Only base64, numbers and sixels of our own go into the sequences, so that nothing of a picture can be
//! obeyed.

use agent_client_protocol_schema::v1::ImageContent;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::screen::limits::{DRAWING_BYTES, DRAWING_ROWS};

mod sixel;

/// How a terminal takes pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canvas {
    Kitty,
    Iterm,
    Sixel,
    None,
}

impl Canvas {
    /// Inside tmux and screen the sequences are lost.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        if is_set("TMUX") || is_set("STY") {
            return Self::None;
        }
        match (variable("TERM").as_deref(), program.as_str()) {
            (Some("xterm-kitty" | "xterm-ghostty"), _) | (_, "ghostty") => Self::Kitty,
            (_, "iTerm.app" | "WezTerm") => Self::Iterm,
            (Some(term), _) if term.starts_with("foot") || term.starts_with("mlterm") => Self::Sixel,
            _ if is_set("KITTY_WINDOW_ID") => Self::Kitty,
            _ if variable("LC_TERMINAL").as_deref() == Some("iTerm2") => Self::Iterm,
            _ => Self::None,
        }
    }
}

/// A picture to be drawn, with its size in rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drawing {
    rows: usize,
    /// As the terminal takes it; the cursor stays where it is.
    picture: String,
}

/// Bytes of base64 in one piece of kitty's protocol.
const PIECE: usize = 4096;

impl Drawing {
    /// `None` where it can't be drawn, or is too large for that.
    pub(crate) fn of(image: &ImageContent, canvas: Canvas, columns: usize) -> Option<Self> {
        if canvas == Canvas::None || image.data.len() > DRAWING_BYTES {
            return None;
        }
        let bytes = STANDARD.decode(&image.data).ok()?;
        let size = size_of_png(&bytes);
        let rows = size.map_or(DRAWING_ROWS, |size| rows_of(size, columns));
        let picture = match canvas {
            // It takes nothing else without decoding.
            Canvas::Kitty => size.map(|_| of_kitty(&STANDARD.encode(&bytes), rows)),
            Canvas::Iterm => Some(format!(
                "\x1b7\x1b]1337;File=inline=1;size={};height={rows};preserveAspectRatio=1:{}\x07\x1b8",
                bytes.len(),
                STANDARD.encode(&bytes)
            )),
            Canvas::Sixel => {
                sixel::of_picture(&bytes, rows, columns).map(|sixels| format!("\x1b7{sixels}\x1b8"))
            }
            Canvas::None => None,
        };
        picture.map(|picture| Self { rows, picture })
    }

    /// Reserves its rows, draws into them, and leaves the cursor below them.
    pub(crate) fn sequence(&self) -> String {
        let Self { rows, picture } = self;
        format!("{}\x1b[{rows}A\x1b[2C{picture}\r\x1b[{rows}B", "\r\n".repeat(*rows))
    }
}

fn of_kitty(data: &str, rows: usize) -> String {
    let count = data.len().div_ceil(PIECE);
    let pieces = (0..count).map(|index| &data[index * PIECE..data.len().min((index + 1) * PIECE)]);
    let mut text = String::new();
    for (index, piece) in pieces.enumerate() {
        let more = usize::from(index + 1 < count);
        let head = match index {
            0 => format!("a=T,f=100,r={rows},C=1,q=2,m={more}"),
            _ => format!("m={more}"),
        };
        text.push_str(&format!("\x1b_G{head};{piece}\x1b\\"));
    }
    text
}

/// Width and height, out of its first chunk.
fn size_of_png(bytes: &[u8]) -> Option<(usize, usize)> {
    if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") || bytes.get(12..16) != Some(b"IHDR") {
        return None;
    }
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    Some((number(16)?, number(20)?)).filter(|(width, height)| *width > 0 && *height > 0)
}

/// About its own size, a sign being twenty points high and ten wide; never wider than the screen.
fn rows_of((width, height): (usize, usize), columns: usize) -> usize {
    let own = height.div_ceil(20).min(DRAWING_ROWS);
    let most = columns.saturating_sub(4).saturating_mul(height) / width.saturating_mul(2).max(1);
    own.min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> ImageContent {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([0; 6000]);
        ImageContent::new(STANDARD.encode(bytes), "image/png")
    }

    fn canvas(pairs: &'static [(&'static str, &'static str)]) -> Canvas {
        Canvas::from_environment(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_terminals_that_can_get_pictures() {
        assert_eq!(canvas(&[("TERM", "xterm-kitty")]), Canvas::Kitty);
        assert_eq!(canvas(&[("TERM_PROGRAM", "WezTerm")]), Canvas::Iterm);
        assert_eq!(canvas(&[("TERM", "foot-extra")]), Canvas::Sixel);
        assert_eq!(canvas(&[("TERM", "xterm-kitty"), ("TMUX", "x")]), Canvas::None);
        assert_eq!(canvas(&[("TERM", "xterm-256color")]), Canvas::None);
    }

    #[test]
    fn a_picture_is_as_large_as_it_is_and_fits() {
        assert_eq!(rows_of((100, 100), 80), 5);
        assert_eq!(rows_of((100, 4000), 80), DRAWING_ROWS);
        assert_eq!(rows_of((4000, 400), 44), 2);
        assert_eq!(rows_of((1, 1), 8), 1);
    }

    #[test]
    fn kitty_gets_it_in_pieces_and_nothing_moves_but_by_its_rows() {
        let drawing = Drawing::of(&png(100, 60), Canvas::Kitty, 80).unwrap();
        let sequence = drawing.sequence();
        assert!(
            sequence.starts_with("\r\n\r\n\r\n\x1b[3A\x1b[2C\x1b_Ga=T,f=100,r=3,C=1,q=2,m=1;"),
            "{sequence:?}"
        );
        assert!(
            sequence.contains("\x1b_Gm=0;") && sequence.ends_with("\x1b\\\r\x1b[3B"),
            "{}",
            sequence.len()
        );
        let iterm = Drawing::of(&png(100, 60), Canvas::Iterm, 80).unwrap().sequence();
        assert!(
            iterm.contains("]1337;File=inline=1;size=6024;height=3;preserveAspectRatio=1:iVBOR"),
            "{}",
            &iterm[..90]
        );
    }

    #[test]
    fn what_is_no_picture_reaches_no_terminal() {
        let evil = ImageContent::new("\x1b]0;owned\x07", "image/png");
        assert_eq!(Drawing::of(&evil, Canvas::Iterm, 80), None);
        let jpeg = ImageContent::new(STANDARD.encode([0xff, 0xd8, 0xff]), "image/jpeg");
        assert_eq!(Drawing::of(&jpeg, Canvas::Kitty, 80), None);
        assert!(Drawing::of(&jpeg, Canvas::Iterm, 80).is_some());
        assert_eq!(Drawing::of(&png(9, 9), Canvas::None, 80), None);
    }
}
