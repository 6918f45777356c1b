//! No bytes make the Anthropic decoder panic or speak out of order.
#![no_main]

use attache_fuzz::check_decoder;
use attache_models::Dialect;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| check_decoder(Dialect::Anthropic, body));
