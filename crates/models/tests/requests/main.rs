//! Request bodies: what each dialect sends for the same conversation of three steps.
//!
//! `requests/DIALECT/NAME.json` is a body, laid out for reading. `UPDATE_EXPECT=1` rewrites them; read them
//! before you commit them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod anthropic;
mod anthropic_property;
mod conversation;
mod gemini;
mod gemini_http;
mod openai_chat;
mod openai_responses;
mod pictures;

use std::path::Path;

use attache_core::ports::ModelRequest;
use attache_models::{BlobBytes, Compatibility, Dialect, Outgoing};
use attache_testkit::provider_rules;
use serde_json::Value;

fn body(dialect: Dialect, request: &ModelRequest) -> Vec<u8> {
    dialect.body(&Outgoing { request, blobs: &BlobBytes::new(), compatibility: &Compatibility::default() })
}

/// The body as a value; it must keep all of the provider's rules.
fn kept(dialect: Dialect, request: &ModelRequest) -> Value {
    let body: Value = serde_json::from_slice(&body(dialect, request)).unwrap();
    let violations = provider_rules::violations(dialect.as_str(), &body);
    assert!(violations.is_empty(), "{violations:#?}\n{body:#}");
    body
}

fn check_snapshot(dialect: Dialect, name: &str, body: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests").join(dialect.as_str());
    let path = folder.join(format!("{name}.json"));
    let shown = format!("{body:#}\n");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{}", path.display());
}
