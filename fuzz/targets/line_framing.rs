//! Lines come out the same however the bytes were cut, and none is longer than the cap.
//!
//! The first byte chooses the cap, the second seeds the cuts, the rest is the stream.
#![no_main]

use attache_rpc::framing::{FramedLine, LineFramer};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, PartialEq)]
enum Told {
    Text(Vec<u8>),
    TooLong,
}

fuzz_target!(|input: &[u8]| {
    let [cap, seed, stream @ ..] = input else { return };
    let cap = usize::from(*cap);
    let whole = lines(cap, std::iter::once(stream));
    assert_eq!(whole, lines(cap, stream.chunks(1)), "byte by byte");
    assert_eq!(whole, lines(cap, cuts(stream, *seed).into_iter()), "cut by seed {seed}");
    for line in &whole {
        if let Told::Text(text) = line {
            assert!(text.len() <= cap && !text.contains(&b'\n'));
        }
    }
});

fn lines<'a>(cap: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Told> {
    let mut framing = LineFramer::new(cap);
    let mut told = Vec::new();
    for piece in pieces {
        framing.push(piece);
        while let Some(line) = framing.next() {
            told.push(owned(line));
        }
    }
    told.extend(framing.finish().map(owned));
    told
}

fn owned(line: FramedLine<'_>) -> Told {
    match line {
        FramedLine::Text(text) => Told::Text(text.into_owned()),
        FramedLine::TooLong => Told::TooLong,
    }
}

/// Pieces of changing length, empty ones among them.
fn cuts(mut stream: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u32::from(seed) + 1;
    let mut pieces = Vec::new();
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = (state >> 24) as usize % 23;
        let (piece, rest) = stream.split_at(length.min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}
