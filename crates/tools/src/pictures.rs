//! Pictures in a form that every provider accepts: PNG, JPEG or WebP, not animated, small enough. Converts or
//! scales others once, when they come in. Opens no file.

use std::io::Cursor;
use std::sync::Arc;

use attache_core::ports::{BoxFuture, FittedPicture, Pictures};
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPDecoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use tokio::sync::Semaphore;

use crate::limits::{PICTURE_BYTES, PICTURE_MEMORY, PICTURE_PIXELS, PICTURE_SIDE, PICTURE_TIME};

/// Converts pictures to the form and size that providers accept.
#[derive(Clone, Debug)]
pub struct PictureFitter {
    /// Why only one at a time: each may take `PICTURE_MEMORY`.
    turn: Arc<Semaphore>,
}

impl Default for PictureFitter {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Pictures for PictureFitter {
    fn fit(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<Option<FittedPicture>, String>> {
        let turn = Arc::clone(&self.turn);
        Box::pin(async move {
            let fitting = async move {
                // The work itself holds it, because it continues when its caller is gone.
                let turn = turn.acquire_owned().await.map_err(|error| error.to_string())?;
                let work = tokio::task::spawn_blocking(move || {
                    let fitted = fit(&bytes);
                    drop(turn);
                    fitted
                });
                work.await.map_err(|error| format!("this image could not be read: {error}"))?
            };
            let late = |_| format!("this image took longer than {} s to scale", PICTURE_TIME.as_secs());
            tokio::time::timeout(PICTURE_TIME, fitting).await.map_err(late)?
        })
    }
}

fn fit(bytes: &[u8]) -> Result<Option<FittedPicture>, String> {
    let format = image::guess_format(bytes).map_err(|_| unknown(bytes))?;
    let Ok((width, height)) = reader(bytes, format).into_dimensions() else {
        // Its head is cut off or unusual; let the provider decide.
        return match is_taken(format) {
            true => Ok(None),
            false => Err("this image can't be read; send it as PNG or JPEG".to_owned()),
        };
    };
    let is_small = bytes.len() <= PICTURE_BYTES && width.max(height) <= PICTURE_SIDE;
    if is_small && is_taken(format) && !is_animated(bytes, format) {
        return Ok(None);
    }
    if u64::from(width) * u64::from(height) > PICTURE_PIXELS {
        return Err(format!(
            "this image has {width} × {height} pixels; {} million are the most: scale it down",
            PICTURE_PIXELS / 1_000_000
        ));
    }
    let picture = decode(bytes, format).map_err(|error| match error {
        ImageError::Limits(_) => "this image takes too much memory to be scaled; scale it down".to_owned(),
        other => format!("this image can't be read ({other}); send it as PNG or JPEG"),
    })?;
    encode(scaled(picture, PICTURE_SIDE)).map(Some)
}

/// Whether every provider accepts the format.
fn is_taken(format: ImageFormat) -> bool {
    matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP)
}

fn unknown(bytes: &[u8]) -> String {
    let found =
        attache_core::prompt::sniff::media_type(bytes).unwrap_or("of a type that attache does not know");
    format!("this image is {found}; no provider takes it and attache can't convert it: send PNG or JPEG")
}

fn reader(bytes: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits());
    reader
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(PICTURE_MEMORY);
    limits
}

/// Providers refuse animated pictures, or see only the first frame.
fn is_animated(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        // `acTL` precedes the first data of an animated PNG.
        ImageFormat::Png => {
            let data = memchr::memmem::find(bytes, b"IDAT").unwrap_or(bytes.len());
            memchr::memmem::find(&bytes[..data], b"acTL").is_some()
        }
        _ => false,
    }
}

/// The first frame, with the orientation applied.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, ImageError> {
    if format == ImageFormat::Gif {
        let mut decoder = GifDecoder::new(Cursor::new(bytes))?;
        decoder.set_limits(limits())?;
        return DynamicImage::from_decoder(decoder);
    }
    let mut decoder = reader(bytes, format).into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

fn scaled(picture: DynamicImage, side: u32) -> DynamicImage {
    match picture.width().max(picture.height()) > side {
        true => picture.thumbnail(side, side),
        false => picture,
    }
}

/// Lossless if that is small enough, else as JPEG, and finally smaller.
fn encode(mut picture: DynamicImage) -> Result<FittedPicture, String> {
    let failed = |error: ImageError| format!("this image could not be converted: {error}");
    let mut png = Vec::new();
    // Sixteen bits per channel tell a model nothing and double the size.
    picture = match picture.color().has_alpha() {
        true => DynamicImage::ImageRgba8(picture.into_rgba8()),
        false => DynamicImage::ImageRgb8(picture.into_rgb8()),
    };
    picture.write_to(&mut Cursor::new(&mut png), ImageFormat::Png).map_err(failed)?;
    if png.len() <= PICTURE_BYTES {
        return Ok(FittedPicture { mime: "image/png", bytes: png });
    }
    drop(png);
    let mut side = PICTURE_SIDE;
    loop {
        let mut bytes = Vec::new();
        let plain = DynamicImage::ImageRgb8(picture.to_rgb8());
        JpegEncoder::new_with_quality(&mut bytes, 85).encode_image(&plain).map_err(failed)?;
        if bytes.len() <= PICTURE_BYTES {
            return Ok(FittedPicture { mime: "image/jpeg", bytes });
        }
        side /= 2;
        picture = scaled(picture, side);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail loudly")]

    use super::*;

    fn picture(width: u32, height: u32) -> DynamicImage {
        DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
            // Hardly compressible, but always the same.
            let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)).to_le_bytes();
            image::Rgb([noise[0], noise[1], noise[2]])
        }))
    }

    fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    fn dimensions(fitted: &FittedPicture) -> (u32, u32) {
        let picture = image::load_from_memory(&fitted.bytes).unwrap();
        (picture.width(), picture.height())
    }

    #[test]
    fn what_every_provider_takes_stays_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            assert_eq!(fit(&encoded(&picture(20, 10), format)), Ok(None), "{format:?}");
        }
    }

    #[test]
    fn other_formats_become_png() {
        for format in [ImageFormat::Bmp, ImageFormat::Gif] {
            let fitted = fit(&encoded(&picture(20, 10), format)).unwrap().unwrap();
            assert_eq!((fitted.mime, dimensions(&fitted)), ("image/png", (20, 10)), "{format:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_scaled_and_the_same_every_time() {
        let wide = encoded(&picture(2_500, 50), ImageFormat::Png);
        let fitted = fit(&wide).unwrap().unwrap();
        assert_eq!(dimensions(&fitted), (2_000, 40));
        assert!(fitted.bytes.len() <= PICTURE_BYTES);
        assert_eq!(fit(&wide).unwrap().unwrap(), fitted);
    }

    #[test]
    fn what_can_not_be_sent_says_why() {
        let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic";
        assert!(fit(heic).unwrap_err().contains("image/heic"), "{:?}", fit(heic));
        // A head that promises more pixels than any memory holds is refused before decoding.
        let mut bomb = encoded(&picture(1, 1), ImageFormat::Bmp);
        bomb[18..22].copy_from_slice(&30_000_u32.to_le_bytes());
        bomb[22..26].copy_from_slice(&30_000_u32.to_le_bytes());
        assert!(fit(&bomb).unwrap_err().contains("64 million"), "{:?}", fit(&bomb));
        let cut = &encoded(&picture(20, 10), ImageFormat::Bmp)[..80];
        assert!(fit(cut).unwrap_err().contains("send it as PNG or JPEG"), "{:?}", fit(cut));
    }
}
