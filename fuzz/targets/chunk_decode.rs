//! No text makes the chunk decoder panic, and what it accepts comes back the same after a round trip.
#![no_main]

use attache_core::chunk::json::{decode, encode_into};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(chunk) = decode(text) else { return };
    let mut encoded = String::new();
    encode_into(&chunk, &mut encoded).expect("a chunk has a JSON form");
    assert!(!encoded.contains('\n'), "one line");
    let again = decode(&encoded).unwrap_or_else(|error| panic!("{error}: {encoded}"));
    assert_eq!(chunk, again, "{encoded}");
});
