//! Attachments on their way in: detects their types from the content and fits pictures for providers. Refuses
//! what no provider would accept, with advice for the user.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::media::{self, Block, Fitted, Kind, Marks};
use super::{shelf, sniff};
use crate::hub::{self, HubError};
use crate::ids::SessionId;
use crate::part::Part;
use crate::ports::model::ModelInfo;
use crate::ports::pictures::Pictures;
use crate::ports::store::Blobs;

/// Checks attachments before anything is stored, and converts them to their stored form. The same prompt always
/// gives the same parts. Without a model, nothing says which files it would accept.
pub(crate) async fn take(
    hub: &hub::Shared,
    session: &SessionId,
    model: Option<&ModelInfo>,
    parts: &mut [Part],
) -> Result<(), HubError> {
    if let Some(model) = model {
        // Refuses most early, by the declared type, before looking at any content; the real type of a file
        // shows later.
        let by_kind =
            |info: &ModelInfo, mime: &str| Kind::of(mime).is_some_and(|kind| kind.is_taken_by(info));
        check_by(hub, parts, model, &by_kind)?;
    }
    let pictures = hub.ports.pictures.as_deref();
    Intake { session, blobs: &*hub.ports.blobs, pictures }.take(parts).await?;
    match model {
        Some(model) => check(hub, parts, model),
        None => Ok(()),
    }
}

/// Whether the model accepts every file of a prompt that is stored already.
pub(crate) fn check(hub: &hub::Shared, parts: &[Part], model: &ModelInfo) -> Result<(), HubError> {
    check_by(hub, parts, model, &|info, mime| match info.foreign_agent() {
        Some(_) => Kind::of(mime).is_some_and(|kind| kind.is_taken_by(info)),
        None => hub.ports.model.takes(info, mime),
    })
}

fn check_by(
    hub: &hub::Shared,
    parts: &[Part],
    model: &ModelInfo,
    takes: media::Takes<'_>,
) -> Result<(), HubError> {
    let models = &hub.choices.get().models;
    media::check(parts, model, models, takes).map_err(|error| HubError::Invalid(error.to_string()))
}

/// Stores and converts the attachments of one prompt.
#[derive(Clone, Copy, Debug)]
struct Intake<'a> {
    session: &'a SessionId,
    blobs: &'a dyn Blobs,
    /// `None`: pictures stay unchanged.
    pictures: Option<&'a dyn Pictures>,
}

impl Intake<'_> {
    async fn take(self, parts: &mut [Part]) -> Result<(), HubError> {
        for (index, part) in parts.iter_mut().enumerate() {
            let Part::File { media_type, url, provider_metadata, .. } = part else { continue };
            let refused = |reason: String| HubError::Invalid(format!("prompt[{index}]: {reason}"));
            let Some(data) = url.split_once(";base64,").map(|(_, data)| data) else { continue };
            let marks = Marks::of(provider_metadata.as_ref());
            let found = real_type(data, media_type, marks.block).map_err(refused)?;
            if let Some(found) = found.filter(|found| found != media_type) {
                *url = format!("data:{found};base64,{data}");
                *media_type = found.to_owned();
            }
            if Kind::of(media_type) == Some(Kind::Image) {
                let fitted = self.fit(url).await.map_err(|error| match error {
                    IntakeError::Picture(reason) => refused(reason),
                    IntakeError::Hub(error) => error,
                })?;
                if let Some((mime, digest, size)) = fitted {
                    let fitted = Some(Fitted { mime, digest: &digest, size });
                    *provider_metadata = Marks { fitted, ..Marks::of(provider_metadata.as_ref()) }
                        .within(provider_metadata.as_ref());
                }
            }
        }
        Ok(shelf::shelve(parts, self.session, self.blobs).await?)
    }

    async fn fit(self, url: &str) -> Result<Option<(&'static str, String, u64)>, IntakeError> {
        let Some(pictures) = self.pictures else { return Ok(None) };
        let bytes = url.split_once(";base64,").and_then(|(_, data)| STANDARD.decode(data).ok());
        let Some(bytes) = bytes else { return Ok(None) };
        let Some(fitted) = pictures.fit(bytes).await.map_err(IntakeError::Picture)? else { return Ok(None) };
        let size = fitted.bytes.len() as u64;
        let digest = self
            .blobs
            .put(self.session, fitted.bytes)
            .await
            .map_err(|error| IntakeError::Hub(error.into()))?;
        Ok(Some((fitted.mime, digest, size)))
    }
}

enum IntakeError {
    Picture(String),
    Hub(HubError),
}

/// The type of the content; `None`: the declared type holds. An error if the content can't be what the block
/// says.
fn real_type(data: &str, declared: &str, block: Option<Block>) -> Result<Option<&'static str>, String> {
    let found = sniff::media_type(&head(data));
    let kind = found.and_then(Kind::of);
    match (block, found) {
        (Some(Block::Image), Some(_)) if kind == Some(Kind::Image) => Ok(found),
        (Some(Block::Image), Some(other)) => Err(format!("is sent as an image, but it is {other}")),
        (Some(Block::Image), None) => {
            Err("is not an image type that attache supports; send PNG, JPEG, WebP, GIF or BMP".to_owned())
        }
        (Some(Block::Audio), Some(other)) if kind != Some(Kind::Audio) => {
            Err(format!("is sent as audio, but it is {other}"))
        }
        (Some(Block::Audio), _) => Ok(found),
        // An embedded file may be anything. Only look at one that claims to be a picture or a sound, or that
        // claims nothing.
        (None, _) if Kind::of(declared).is_some() || declared == "application/octet-stream" => Ok(found),
        (None, _) => Ok(None),
    }
}

/// The first bytes of a base64 text.
fn head(data: &str) -> Vec<u8> {
    const DIGITS: usize = sniff::HEAD_BYTES.div_ceil(3) * 4;
    let end = data.len().min(DIGITS);
    data.get(..end).and_then(|digits| STANDARD.decode(digits).ok()).unwrap_or_default()
}
