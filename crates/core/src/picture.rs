//! A picture as the result of a call: what the call's output holds, and what clients are shown of it. The
//! bytes are in the blob store, never in a row.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::limits::SHOWN_PICTURE_BYTES;
use crate::ports::tool::{FoundPicture, Shown};
use crate::prompt::BLOB_SCHEME;

/// The output of a call that returned a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    /// Its path on disk.
    pub path: &'a str,
    /// Detected from its content.
    pub mime: &'a str,
    /// In bytes.
    pub size: u64,
    /// The content id of its bytes.
    pub digest: &'a str,
    /// Why a provider refused it; from then on requests only describe it.
    pub rejected: Option<&'a str>,
    /// The tool's text for the model.
    pub text: Option<&'a str>,
    /// The loop's own warning to the model.
    pub warning: Option<&'a str>,
}

impl<'a> Picture<'a> {
    /// `None` for every other output.
    pub fn of(output: &'a Value) -> Option<Self> {
        let text = |key: &str| output.get(key).and_then(Value::as_str);
        if text("type") != Some("image") {
            return None;
        }
        Some(Self {
            path: text("path")?,
            mime: text("mime")?,
            size: output.get("size")?.as_u64()?,
            digest: text("url")?.strip_prefix(BLOB_SCHEME)?,
            rejected: text("rejected"),
            text: text("text"),
            warning: text("warning"),
        })
    }

    /// The file's name without its directories.
    pub fn name(self) -> &'a str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// What clients get as the call's result.
    pub fn about(self) -> Value {
        let mut about = json!({ "path": self.path, "mime": self.mime, "size": self.size });
        if let Some(text) = self.text {
            about["text"] = text.into();
        }
        about
    }
}

/// The output of a call whose picture is in the blob store under this digest.
pub(crate) fn output(path: &Path, mime: &str, size: usize, digest: &str, text: &str) -> Value {
    let mut output = json!({
        "type": "image",
        "path": path.to_string_lossy(),
        "mime": mime,
        "size": size,
        "url": format!("{BLOB_SCHEME}{digest}"),
    });
    if !text.is_empty() {
        output["text"] = text.into();
    }
    output
}

/// The same output, marked as refused by a provider.
pub(crate) fn rejected(mut output: Value, reason: &str) -> Value {
    output["rejected"] = reason.into();
    output
}

/// What a client sees: a small picture itself, the path of a larger one.
pub(crate) fn shown(found: &FoundPicture) -> Shown {
    let mime = found.mime.to_owned();
    match found.bytes.len() {
        size if size <= SHOWN_PICTURE_BYTES => Shown::Image { mime, data: STANDARD.encode(&found.bytes) },
        size => Shown::Link { path: found.path.clone(), mime, size: size as u64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_read_as_it_was_written() {
        let written = output(Path::new("/p/a b.png"), "image/png", 7, "00ff", "");
        let said = output(Path::new("/p"), "image/png", 7, "00ff", "two words");
        assert_eq!(Picture::of(&said).and_then(|picture| picture.text), Some("two words"));
        let picture = Picture::of(&written).unwrap_or_else(|| panic!("{written}"));
        assert_eq!((picture.path, picture.name()), ("/p/a b.png", "a b.png"));
        assert_eq!((picture.mime, picture.size, picture.digest), ("image/png", 7, "00ff"));
        assert_eq!(picture.rejected, None);
        assert_eq!(picture.about(), json!({ "path": "/p/a b.png", "mime": "image/png", "size": 7 }));
        let marked = rejected(written, "too large");
        assert_eq!(Picture::of(&marked).and_then(|picture| picture.rejected), Some("too large"));
    }

    #[test]
    fn what_other_tools_say_is_no_picture() {
        for other in [
            json!("image"),
            json!(null),
            json!({ "type": "image" }),
            json!({ "type": "image", "path": "a", "mime": "image/png", "size": 1, "url": "data:image/png;base64,AA==" }),
            json!({ "type": "text", "path": "a", "mime": "image/png", "size": 1, "url": "attache-blob:00" }),
        ] {
            assert_eq!(Picture::of(&other), None, "{other}");
        }
    }

    #[test]
    fn only_small_pictures_are_stored_with_the_call() {
        let found = |size| FoundPicture {
            path: "/p/a.png".into(),
            mime: "image/png",
            bytes: vec![0; size],
            text: String::new(),
        };
        assert!(matches!(shown(&found(SHOWN_PICTURE_BYTES)), Shown::Image { .. }));
        assert!(
            matches!(shown(&found(SHOWN_PICTURE_BYTES + 1)), Shown::Link { size, .. } if size as usize == SHOWN_PICTURE_BYTES + 1)
        );
    }
}
