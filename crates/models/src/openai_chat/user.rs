//! The user's side as messages: texts, pictures, sound, documents.

use std::borrow::Cow;

use attache_core::part::Passage;
use serde::Serialize;

use super::encode::Writer;
use crate::compose::{Fetches, Media, MediaKind, Piece, Source, pieces};
use crate::vendors::{PictureUrls, Texts};
use crate::written::{EncodedPassage, write_json};

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageUrl {
        image_url: Address<'a>,
    },
    InputAudio {
        input_audio: Audio<'a>,
    },
    File {
        file: File<'a>,
    },
    /// What a model of Mistral's had thought.
    Thinking {
        thinking: Vec<Part<'a>>,
    },
}

#[derive(Serialize)]
pub(super) struct Address<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: Cow<'a, str>,
    file_data: String,
}

impl Writer<'_> {
    pub(super) fn user(&self, passage: &Passage, encoded: &mut EncodedPassage) {
        let parts = self.user_parts(passage);
        if !parts.is_empty() {
            self.message("user", parts, encoded);
        }
    }

    pub(super) fn user_parts<'p>(&'p self, passage: &'p Passage) -> Vec<Part<'p>> {
        let pictures = self.compatibility.picture_urls == PictureUrls::Fetched;
        let fetches = Fetches { images: pictures, pdf: false };
        let pieces = pieces(passage, self.info, self.blobs, fetches);
        // A text without a letter is refused.
        let said = |piece: &Piece<'_>| !matches!(piece, Piece::Text(text) if text.is_empty());
        pieces.into_iter().filter(said).map(part).collect()
    }

    /// The last message of an encoded passage: a plain string where that says the same as the parts.
    pub(super) fn message<'a>(&self, role: &'static str, parts: Vec<Part<'a>>, encoded: &mut EncodedPassage) {
        let content = if self.marks_cache() { Content::Parts(parts) } else { self.plain(parts) };
        write_json(&mut encoded.json, &Message { role, content });
        self.remember_mark(encoded);
    }

    fn plain<'a>(&self, mut parts: Vec<Part<'a>>) -> Content<'a> {
        let all_text = parts.iter().all(|part| matches!(part, Part::Text { .. }));
        let texts =
            parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(&**text) } else { None });
        match self.compatibility.texts {
            Texts::Joined if all_text => Content::Text(texts.collect::<Vec<_>>().join("\n\n").into()),
            Texts::Joined | Texts::Parts => match parts.as_mut_slice() {
                [Part::Text { text }] => Content::Text(std::mem::take(text)),
                _ => Content::Parts(parts),
            },
        }
    }
}

fn part(piece: Piece<'_>) -> Part<'_> {
    match piece {
        Piece::Text(text) => Part::Text { text },
        Piece::Media(media) => {
            media_part(&media).unwrap_or_else(|| Part::Text { text: media.descriptor().into() })
        }
    }
}

/// `None` for what this dialect has no form for.
pub(super) fn media_part<'a>(media: &Media<'a>) -> Option<Part<'a>> {
    match (media.kind, media.source) {
        (MediaKind::Image, Source::Url(url)) => {
            Some(Part::ImageUrl { image_url: Address { url: url.into() } })
        }
        (MediaKind::Image, Source::Base64(data)) => {
            Some(Part::ImageUrl { image_url: Address { url: data_url(media.mime, data).into() } })
        }
        (MediaKind::Audio, Source::Base64(data)) => {
            let format = audio_format(media.mime)?;
            Some(Part::InputAudio { input_audio: Audio { data, format } })
        }
        (MediaKind::Pdf, Source::Base64(data)) => {
            let filename = media.name.clone().unwrap_or(Cow::Borrowed("document.pdf"));
            Some(Part::File { file: File { filename, file_data: data_url(media.mime, data) } })
        }
        (MediaKind::Audio | MediaKind::Pdf, Source::Url(_)) => None,
    }
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// The two formats there are.
pub(crate) fn audio_format(mime: &str) -> Option<&'static str> {
    match mime.split(';').next().unwrap_or_default().trim() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" | "audio/mpeg3" | "audio/x-mpeg-3" => Some("mp3"),
        _ => None,
    }
}
