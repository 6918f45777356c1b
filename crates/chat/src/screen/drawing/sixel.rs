//! A picture in sixels: six rows of points at a time, in colours of a fixed cube. For terminals that take nothing
//! better.

use std::io::Cursor;

use image::{ImageReader, Limits, RgbaImage};

use crate::screen::limits::{DECODED_BYTES, DECODED_SIDE};

/// What one sign is at least, in points: how large it really is, few terminals say. A picture that is smaller than
/// its rows leaves some of them empty, a larger one would cover what follows.
const SIGN: (usize, usize) = (7, 14);

/// Shades of red, green and blue each.
const SHADES: u16 = 6;

/// Points that are less than half there are left out.
const OPAQUE: u8 = 128;

pub(super) fn of_picture(bytes: &[u8], rows: usize, columns: usize) -> Option<String> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(DECODED_SIDE);
    limits.max_image_height = Some(DECODED_SIDE);
    limits.max_alloc = Some(DECODED_BYTES);
    reader.limits(limits);
    let width = u32::try_from(columns.saturating_sub(4) * SIGN.0).ok()?;
    let height = u32::try_from(rows * SIGN.1).ok()?;
    let picture = reader.decode().ok()?.thumbnail(width.max(1), height.max(1));
    Some(encoded(&picture.to_rgba8()))
}

fn encoded(picture: &RgbaImage) -> String {
    let mut text = format!("\x1bP0;1q\"1;1;{};{}", picture.width(), picture.height());
    for colour in 0..SHADES * SHADES * SHADES {
        let share = |part: u16| part * 100 / (SHADES - 1);
        let (red, rest) = (colour / (SHADES * SHADES), colour % (SHADES * SHADES));
        text.push_str(&format!(
            "#{colour};2;{};{};{}",
            share(red),
            share(rest / SHADES),
            share(rest % SHADES)
        ));
    }
    for top in (0..picture.height()).step_by(6) {
        band(picture, top, &mut text);
        text.push('-');
    }
    text.push_str("\x1b\\");
    text
}

/// Six rows: one pass for each colour in them.
fn band(picture: &RgbaImage, top: u32, text: &mut String) {
    let rows = top..picture.height().min(top + 6);
    let colours: Vec<Vec<Option<u16>>> =
        rows.map(|y| (0..picture.width()).map(|x| colour_of(picture.get_pixel(x, y).0)).collect()).collect();
    let mut used: Vec<u16> = colours.iter().flatten().flatten().copied().collect();
    used.sort_unstable();
    used.dedup();
    for colour in used {
        text.push_str(&format!("#{colour}"));
        let signs = (0..picture.width() as usize).map(|x| {
            let bits = colours.iter().enumerate().filter(|(_, row)| row[x] == Some(colour));
            bits.fold(0_u8, |sign, (place, _)| sign | 1 << place)
        });
        run_lengths(signs, text);
        text.push('$');
    }
}

fn run_lengths(signs: impl Iterator<Item = u8>, text: &mut String) {
    let mut run: Option<(u8, usize)> = None;
    let write = |run: Option<(u8, usize)>, text: &mut String| {
        if let Some((sign, count)) = run {
            let sign = char::from(b'?' + sign);
            match count {
                1..4 => text.extend(std::iter::repeat_n(sign, count)),
                _ => text.push_str(&format!("!{count}{sign}")),
            }
        }
    };
    for sign in signs {
        run = match run {
            Some((last, count)) if last == sign => Some((last, count + 1)),
            other => {
                write(other, text);
                Some((sign, 1))
            }
        };
    }
    write(run, text);
}

fn colour_of([red, green, blue, alpha]: [u8; 4]) -> Option<u16> {
    let shade = |part: u8| (u16::from(part) * (SHADES - 1) + 127) / 255;
    (alpha >= OPAQUE).then(|| shade(red) * SHADES * SHADES + shade(green) * SHADES + shade(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn points_of_one_colour_are_one_run() {
        let mut picture = RgbaImage::from_pixel(8, 6, Rgba([255, 0, 0, 255]));
        picture.put_pixel(7, 0, Rgba([0, 0, 0, 0]));
        let text = encoded(&picture);
        assert!(text.starts_with("\x1bP0;1q\"1;1;8;6#0;2;0;0;0"), "{text:?}");
        // Six bits in seven columns, and five in the last.
        assert!(text.ends_with("#180!7~}$-\x1b\\"), "{text:?}");
    }

    #[test]
    fn what_is_no_picture_is_none() {
        assert_eq!(of_picture(b"\x1b]0;owned\x07", 5, 80), None);
        assert_eq!(of_picture(&[], 5, 80), None);
    }
}
