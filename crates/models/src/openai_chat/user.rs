//! The user's side as messages: texts, pictures, sound, documents.

use std::borrow::Cow;

use attache_core::part::Passage;
use serde::Serialize;

use super::encode::ChatWriter;
use crate::compose::{Fetches, Media, MediaKind, MediaSource, PromptPiece, pieces};
use crate::vendors::{PictureUrls, TextParts};
use crate::written::{EncodedPassage, write_json};

#[derive(Serialize)]
struct ChatUserMessage<'a> {
    role: &'static str,
    content: ChatContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChatContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatPart<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageUrl {
        image_url: ChatImageUrl<'a>,
    },
    InputAudio {
        input_audio: ChatAudio<'a>,
    },
    File {
        file: ChatFile<'a>,
    },
    /// What a Mistral model thought.
    Thinking {
        thinking: Vec<ChatPart<'a>>,
    },
}

#[derive(Serialize)]
pub(super) struct ChatImageUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct ChatAudio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct ChatFile<'a> {
    filename: Cow<'a, str>,
    file_data: String,
}

impl ChatWriter<'_> {
    pub(super) fn user(&self, passage: &Passage, encoded: &mut EncodedPassage) {
        let parts = self.user_parts(passage);
        if !parts.is_empty() {
            self.message("user", parts, encoded);
        }
    }

    pub(super) fn user_parts<'p>(&'p self, passage: &'p Passage) -> Vec<ChatPart<'p>> {
        let pictures = self.compatibility.picture_urls == PictureUrls::Fetched;
        let fetches = Fetches { images: pictures, pdf: false };
        let pieces = pieces(passage, self.info, self.blobs, fetches);
        // Servers refuse a text without a letter.
        let said = |piece: &PromptPiece<'_>| !matches!(piece, PromptPiece::Text(text) if text.is_empty());
        pieces.into_iter().filter(said).map(part).collect()
    }

    /// The last message of an encoded passage: a plain string if that says the same as the parts.
    pub(super) fn message<'a>(
        &self,
        role: &'static str,
        parts: Vec<ChatPart<'a>>,
        encoded: &mut EncodedPassage,
    ) {
        let content = if self.marks_cache() { ChatContent::Parts(parts) } else { self.plain(parts) };
        write_json(&mut encoded.json, &ChatUserMessage { role, content });
        self.remember_mark(encoded);
    }

    fn plain<'a>(&self, mut parts: Vec<ChatPart<'a>>) -> ChatContent<'a> {
        let all_text = parts.iter().all(|part| matches!(part, ChatPart::Text { .. }));
        let texts = parts
            .iter()
            .filter_map(|part| if let ChatPart::Text { text } = part { Some(&**text) } else { None });
        match self.compatibility.texts {
            TextParts::Joined if all_text => ChatContent::Text(texts.collect::<Vec<_>>().join("\n\n").into()),
            TextParts::Joined | TextParts::Parts => match parts.as_mut_slice() {
                [ChatPart::Text { text }] => ChatContent::Text(std::mem::take(text)),
                _ => ChatContent::Parts(parts),
            },
        }
    }
}

fn part(piece: PromptPiece<'_>) -> ChatPart<'_> {
    match piece {
        PromptPiece::Text(text) => ChatPart::Text { text },
        PromptPiece::Media(media) => {
            media_part(&media).unwrap_or_else(|| ChatPart::Text { text: media.descriptor().into() })
        }
    }
}

/// `None` if this dialect has no form for it.
pub(super) fn media_part<'a>(media: &Media<'a>) -> Option<ChatPart<'a>> {
    match (media.kind, media.source) {
        (MediaKind::Image, MediaSource::Url(url)) => {
            Some(ChatPart::ImageUrl { image_url: ChatImageUrl { url: url.into() } })
        }
        (MediaKind::Image, MediaSource::Base64(data)) => {
            Some(ChatPart::ImageUrl { image_url: ChatImageUrl { url: data_url(media.mime, data).into() } })
        }
        (MediaKind::Audio, MediaSource::Base64(data)) => {
            let format = audio_format(media.mime)?;
            Some(ChatPart::InputAudio { input_audio: ChatAudio { data, format } })
        }
        (MediaKind::Pdf, MediaSource::Base64(data)) => {
            let filename = media.name.clone().unwrap_or(Cow::Borrowed("document.pdf"));
            Some(ChatPart::File { file: ChatFile { filename, file_data: data_url(media.mime, data) } })
        }
        (MediaKind::Audio | MediaKind::Pdf, MediaSource::Url(_)) => None,
    }
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// The two formats that the dialect has.
pub(crate) fn audio_format(mime: &str) -> Option<&'static str> {
    match mime.split(';').next().unwrap_or_default().trim() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" | "audio/mpeg3" | "audio/x-mpeg-3" => Some("mp3"),
        _ => None,
    }
}
