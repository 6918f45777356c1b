//! Recorded wires: each fixture is the body of one answer, byte for byte, beside the events it must become.
//!
//! `fixtures/DIALECT/NAME.sse` is the body, `NAME.events` what comes out, one line per event. `UPDATE_EXPECT=1`
//! rewrites the expected lines; read them before you commit them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fixtures;

use attache_models::Dialect;
use fixtures::Fixture;

/// Cases every dialect has to show.
const NEEDED: [&str; 8] = [
    "text",
    "reasoning",
    "tool_call",
    "parallel_tool_calls",
    "usage_with_cache",
    "refusal",
    "length",
    "error_event",
];

fn check(dialect: Dialect) {
    let fixtures = Fixture::all(dialect);
    for needed in NEEDED {
        assert!(
            fixtures.iter().any(|fixture| fixture.name == needed),
            "{}: no {needed}.sse",
            dialect.as_str()
        );
    }
    for fixture in &fixtures {
        fixture.becomes_its_events();
        fixture.is_the_same_in_any_pieces();
        fixture.may_be_cut_anywhere();
    }
}

#[test]
fn anthropic() {
    check(Dialect::Anthropic);
}

#[test]
fn openai_chat() {
    check(Dialect::OpenAiChat);
}

#[test]
fn openai_responses() {
    check(Dialect::OpenAiResponses);
}

#[test]
fn gemini() {
    check(Dialect::Gemini);
}
