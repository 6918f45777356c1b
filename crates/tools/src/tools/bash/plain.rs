//! A command's output for people outside of a terminal: without escape sequences, each redraw on a line of its
//! own. Loses no text.

/// Changes only escape sequences and carriage returns that redraw.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\x1b', '\r']) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let behind = match rest.strip_prefix('\r') {
            // A redraw; a `\r` at the beginning of a line has nothing to redraw.
            Some(behind) => {
                let is_redraw =
                    !behind.starts_with(['\n', '\r']) && !shown.is_empty() && !shown.ends_with('\n');
                shown.push_str(if is_redraw && !behind.is_empty() { "\n" } else { "" });
                behind
            }
            // An ESC without a sequence stays, and is made visible.
            None => {
                &rest[sequence(rest).unwrap_or_else(|| {
                    shown.push('\x1b');
                    1
                })..]
            }
        };
        rest = behind;
    }
    shown + rest
}

/// The length of the escape sequence at the beginning of the text, if it is complete.
fn sequence(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.get(1)? {
        // Parameters, intermediate bytes, and a final byte.
        b'[' => {
            let length = bytes[2..].iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
            bytes.get(2 + length).filter(|end| matches!(end, 0x40..=0x7e)).map(|_| length + 3)
        }
        // Titles and links: up to BEL or ESC \ on the same line.
        b']' | b'P' | b'_' | b'^' => {
            let line = text.split('\n').next().unwrap_or(text);
            let bell = line.find('\x07').map(|at| at + 1);
            let end = line[2..].find("\x1b\\").map(|at| at + 4);
            [bell, end].into_iter().flatten().min()
        }
        b'(' | b')' | b'#' => bytes.get(2).filter(|byte| byte.is_ascii()).map(|_| 3),
        b'0'..=b'9' | b'=' | b'>' | b'A'..=b'Z' | b'a'..=b'z' => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_are_gone_and_redraws_are_lines() {
        for (printed, shown) in [
            ("\x1b[1;31merror\x1b[0m: no\x1b[K\n", "error: no\n"),
            ("\r\x1b[32m10%\x1b[0m\r\x1b[32m20%\x1b[0m\n", "10%\n20%\n"),
            ("a\r\nb\r", "a\nb"),
            ("\x1b]0;title\x07x \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "x link"),
            ("\x1b(Bx\x1b7y\x1b=", "xy"),
            ("a\x1b", "a\x1b"),
            ("a\x1b[12", "a\x1b[12"),
            ("\x1b]0;no end\nb", "\x1b]0;no end\nb"),
            ("é\x1b[é", "é\x1b[é"),
        ] {
            assert_eq!(plain(printed), shown, "{printed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_either_stays(text in "[^\x1b\r]{0,60}") {
            prop_assert_eq!(plain(&text), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\x1b\r\n\\[\\]();0-9mKé\x07\\\\]{0,40}") {
            prop_assert!(!plain(&text).contains('\r'));
        }
    }
}
