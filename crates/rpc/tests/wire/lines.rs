//! Framing does not depend on how the bytes were cut into pieces, and its memory is bounded.

use attache_rpc::framing::{FramedLine, LineFramer};
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
enum Seen {
    Text(Vec<u8>),
    TooLong,
}

fn seen(line: FramedLine<'_>) -> Seen {
    match line {
        FramedLine::Text(text) => Seen::Text(text.into_owned()),
        FramedLine::TooLong => Seen::TooLong,
    }
}

fn framed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, cap: usize) -> Vec<Seen> {
    let mut lines = LineFramer::new(cap);
    let mut found = Vec::new();
    for piece in pieces {
        lines.push(piece);
        while lines.has_next() {
            found.extend(lines.next().map(seen));
        }
        assert!(lines.next().is_none(), "it said that there was nothing");
    }
    found.extend(lines.finish().map(seen));
    found
}

/// The obvious way, for comparison.
fn expected(stream: &[u8], cap: usize) -> Vec<Seen> {
    let mut parts: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    if parts.last().is_some_and(|last| last.is_empty()) {
        parts.pop();
    }
    let clean = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).to_vec()
    };
    let judge = |line: &[u8]| match line.len() > cap {
        true => Seen::TooLong,
        false => Seen::Text(clean(line)),
    };
    parts.into_iter().map(judge).collect()
}

fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(b'\n'), 2 => Just(b'\r'), 1 => Just(0xEF), 1 => Just(0xBB), 1 => Just(0xBF), 8 => any::<u8>()]
}

proptest! {
    #[test]
    fn cuts_do_not_matter(
        stream in proptest::collection::vec(byte(), 0..400),
        sizes in proptest::collection::vec(1_usize..40, 1..400),
        cap in 1_usize..30,
    ) {
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        prop_assert_eq!(framed(pieces, cap), expected(&stream, cap));
        prop_assert_eq!(framed([stream.as_slice()], cap), expected(&stream, cap));
    }

    #[test]
    fn large_lines_are_cut_like_small_ones(
        lengths in proptest::collection::vec(
            prop_oneof![0_usize..10, 262_100_usize..262_200, 290_000_usize..310_000], 1..5),
        size in 1000_usize..100_000,
        marked in any::<bool>(),
    ) {
        let mut stream = Vec::new();
        for length in lengths {
            if marked { stream.extend_from_slice(b"\xEF\xBB\xBF"); }
            stream.extend(std::iter::repeat_n(b'a', length));
            stream.extend_from_slice(if marked { b"\r\n" } else { b"\n" });
        }
        prop_assert_eq!(framed(stream.chunks(size), 300_000), expected(&stream, 300_000));
    }
}

#[test]
fn an_endless_line_is_told_once_and_held_never() {
    let mut lines = LineFramer::new(1_000_000);
    let piece = [b'x'; 65_536];
    let (mut told, mut most) = (0, 0);
    for _ in 0..2000 {
        lines.push(&piece);
        most = most.max(lines.capacity());
        while let Some(line) = lines.next() {
            assert_eq!(line, FramedLine::TooLong);
            told += 1;
        }
    }
    assert_eq!(told, 1);
    assert!(most <= 1_000_000 + 65_536 + 65_536, "{most}");
    assert!(lines.capacity() <= 256 * 1024, "{}", lines.capacity());
    lines.push(b"\nok\n");
    assert_eq!(lines.next(), Some(FramedLine::Text(b"ok".as_slice().into())));
}

#[test]
fn the_buffer_of_a_large_line_is_given_back() {
    let mut lines = LineFramer::new(32 * 1024 * 1024);
    let large = vec![b'x'; 10 * 1024 * 1024];
    for piece in large.chunks(65_536) {
        lines.push(piece);
        assert_eq!(lines.next(), None);
    }
    lines.push(b"\nnext\n");
    match lines.next() {
        Some(FramedLine::Text(text)) => assert_eq!(text.len(), large.len()),
        other => panic!("{other:?}"),
    }
    assert!(lines.capacity() <= 256 * 1024, "{}", lines.capacity());
    assert_eq!(lines.next(), Some(FramedLine::Text(b"next".as_slice().into())));
}
