//! PictureWay on their way into a prompt: a file whose path was pasted or dropped, or what the clipboard holds.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::process::Command;

use super::EventLoop;
use super::connect::LoopEvent;
use crate::screen::composer::{PastedPicture, file_uri};
use crate::screen::limits::{CLIPBOARD_TIME, PASTE_MOST};
use attache_acp_client::words_of;

/// The picture whose whole path this is, as terminals paste what is dropped on them: quoted, escaped, or as a
/// URI. Everything else is text.
pub(super) fn of_path(pasted: &str) -> Option<PastedPicture> {
    let line = pasted.trim();
    if line.is_empty() || line.contains('\n') || line.len() > 4096 {
        return None;
    }
    let path = match line.strip_prefix("file://") {
        Some(encoded) => PathBuf::from(decoded(encoded)?),
        None => match words_of(line).ok()?.as_slice() {
            [path] => PathBuf::from(path),
            _ => return None,
        },
    };
    // A name alone is more likely meant as a word.
    if !path.is_absolute() {
        return None;
    }
    let mut bytes = Vec::new();
    let metadata = std::fs::metadata(&path).ok()?;
    if !metadata.is_file() || metadata.len() > PASTE_MOST as u64 {
        return None;
    }
    File::open(&path).ok()?.take(PASTE_MOST as u64).read_to_end(&mut bytes).ok()?;
    let mime = picture_type(&bytes)?;
    Some(PastedPicture {
        name: path.file_name()?.to_string_lossy().into_owned(),
        mime: mime.to_owned(),
        data: STANDARD.encode(&bytes),
        uri: Some(file_uri(&path)),
    })
}

/// The type by its first bytes, never by its name.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Percent signs of a URI.
fn decoded(encoded: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = encoded.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let (digits, behind) = rest.split_at_checked(2)?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = behind;
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).ok()
}

impl EventLoop<'_> {
    /// Keys are taken meanwhile.
    pub(super) fn paste_from_clipboard(&self) {
        let news = self.news.clone();
        tokio::spawn(async move {
            drop(news.send(LoopEvent::Clipboard(from_clipboard().await)));
        });
    }
}

/// Programs that write a picture of the clipboard to their output, with the variable that says that they can.
const READERS: [(&str, &[&str], Option<&str>); 3] = [
    ("wl-paste", &["--no-newline", "--type", "image/png"], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"], Some("DISPLAY")),
    ("pngpaste", &["-"], None),
];

async fn from_clipboard() -> Result<PastedPicture, String> {
    let mut is_asked = false;
    for (program, arguments, variable) in READERS {
        if variable.is_some_and(|variable| std::env::var_os(variable).is_none_or(|value| value.is_empty())) {
            continue;
        }
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let Ok(Ok(output)) = tokio::time::timeout(CLIPBOARD_TIME, command.output()).await else { continue };
        is_asked = true;
        if let Some(mime) = picture_type(&output.stdout).filter(|_| output.stdout.len() <= PASTE_MOST) {
            let data = STANDARD.encode(&output.stdout);
            return Ok(PastedPicture {
                name: "clipboard".to_owned(),
                mime: mime.to_owned(),
                data,
                uri: None,
            });
        }
    }
    Err(match is_asked {
        true => "the clipboard holds no picture".to_owned(),
        false => "the clipboard can't be read here: it needs wl-paste, xclip or pngpaste; or paste the path of a file".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = &[0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', 0];

    #[test]
    fn the_path_of_a_picture_is_the_picture_however_it_is_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a shot.png");
        std::fs::write(&file, PNG).unwrap();
        std::fs::write(directory.path().join("text.png"), "no picture").unwrap();
        let shown = file.display().to_string();
        for pasted in [
            format!("'{shown}'"),
            shown.replace(' ', "\\ "),
            format!("file://{}\n", shown.replace(' ', "%20")),
        ] {
            let picture = of_path(&pasted).unwrap_or_else(|| panic!("{pasted}"));
            assert_eq!((picture.name.as_str(), picture.mime.as_str()), ("a shot.png", "image/png"));
            assert!(picture.uri.unwrap().ends_with("/a%20shot.png"));
        }
        let no_picture = directory.path().join("text.png").display().to_string();
        for text in [&no_picture, "a shot.png", "nowhere.png", "two words", "", "a\nb", "'open", "file://%zz"]
        {
            assert_eq!(of_path(text), None, "{text:?}");
        }
    }
}
