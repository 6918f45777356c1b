//! No parameters of any method make the adapter panic, and a refusal names the field.
//!
//! The input is one line with the method, then the JSON of its parameters.
#![no_main]

use attache_acp::from_wire;
use attache_rpc::code;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

fuzz_target!(|input: &str| {
    let Some((method, params)) = input.split_once('\n') else { return };
    // What is no JSON never gets this far: the envelope is read first.
    let params = match params.is_empty() {
        true => None,
        false => match serde_json::from_str::<Box<RawValue>>(params) {
            Ok(params) => Some(params),
            Err(_) => return,
        },
    };
    if method == "session/cancel" {
        if let Err(invalid) = from_wire::cancel(params) {
            assert!(!invalid.to_string().is_empty());
        }
        return;
    }
    if let Err(error) = from_wire::request(method, params) {
        match error.code {
            code::INVALID_PARAMS => assert_names_field(&error),
            code::METHOD_NOT_FOUND | code::INVALID_REQUEST | code::RESOURCE_NOT_FOUND => {}
            other => panic!("{method} was refused with {other}: {}", error.message),
        }
    }
});

/// `path: reason`, the path made of our own names, and nothing of the input repeated beyond its limit.
fn assert_names_field(error: &attache_rpc::ErrorObject) {
    let message = &error.message;
    let path = message.split_once(": ").map(|(path, _)| path).unwrap_or_default();
    let of_a_path = |c: char| c.is_ascii_alphanumeric() || "._/[]\"".contains(c);
    assert!(!path.is_empty() && path.chars().all(of_a_path), "names no field: {message}");
    assert!(message.len() <= 1024, "{} bytes", message.len());
}
