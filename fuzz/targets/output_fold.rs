//! For any output of a command, what the model is told of it is the same in pieces of any size, never longer
//! than what was printed, without control characters but line ends, tabs and form feeds, and folded once and
//! for all.
#![no_main]

use attache_tools::folded;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|printed: &[u8]| {
    let whole = folded([printed]);
    assert!(whole.len() <= printed.len(), "it grew");
    for step in [1, 7] {
        assert_eq!(folded(printed.chunks(step)), whole, "in steps of {step}");
    }
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0d..=0x1f | 0x7f);
    assert!(!whole.iter().any(is_control), "a control character is left");
    assert_eq!(folded([whole.as_slice()]), whole, "folded again");
});
