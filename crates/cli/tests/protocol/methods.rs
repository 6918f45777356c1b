//! Every method a client may call, with parameters that are right and what is known of each field.

use std::path::Path;

use attache_testkit::schema::{Side, Validator};
use serde_json::{Value, json};

/// What a field must be; everything else has to be refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    /// May be left out or null.
    Optional,
}

pub(crate) struct Sample {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) fields: &'static [(&'static str, Kind, Presence)],
}

/// Described by the schema for later versions; refused as unknown until then.
pub(crate) const LATER: &[&str] = &[];

use Kind::{List, Number, Text};
use Presence::{Optional, Required};

const SESSION: (&str, Kind, Presence) = ("sessionId", Text, Required);
const CWD: (&str, Kind, Presence) = ("cwd", Text, Required);
const DIRECTORIES: (&str, Kind, Presence) = ("additionalDirectories", List, Optional);

pub(crate) fn samples(cwd: &Path, session: &str) -> Vec<Sample> {
    let prompt = json!([{"type": "text", "text": "hi"}]);
    let sample = |method, params, fields| Sample { method, params, fields };
    vec![
        sample("initialize", json!({"protocolVersion": 1}), &[("protocolVersion", Number, Required)]),
        sample("authenticate", json!({"methodId": "none"}), &[("methodId", Text, Required)]),
        sample("logout", json!({}), &[]),
        sample(
            "session/new",
            json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": []}),
            &[CWD, ("mcpServers", List, Required), DIRECTORIES],
        ),
        sample(
            "session/load",
            json!({"sessionId": session, "cwd": cwd, "mcpServers": []}),
            &[SESSION, CWD, ("mcpServers", List, Required), DIRECTORIES],
        ),
        sample(
            "session/resume",
            json!({"sessionId": session, "cwd": cwd}),
            &[SESSION, CWD, ("mcpServers", List, Optional), DIRECTORIES],
        ),
        sample(
            "session/fork",
            json!({"sessionId": session, "cwd": cwd}),
            &[SESSION, CWD, ("mcpServers", List, Optional), DIRECTORIES],
        ),
        sample("session/list", json!({}), &[("cwd", Text, Optional), ("cursor", Text, Optional)]),
        sample("session/delete", json!({"sessionId": session}), &[SESSION]),
        sample("session/close", json!({"sessionId": session}), &[SESSION]),
        sample(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
            &[SESSION, ("prompt", List, Required), ("runtimeContext", List, Optional)],
        ),
        sample(
            "session/set_mode",
            json!({"sessionId": session, "modeId": "build"}),
            &[SESSION, ("modeId", Text, Required)],
        ),
        sample(
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "value": "build"}),
            &[SESSION, ("configId", Text, Required), ("value", Text, Required)],
        ),
        sample("_attache/session/status", json!({"sessionId": session}), &[SESSION]),
        sample(
            "_attache/session/export",
            json!({"sessionId": session, "format": "json"}),
            &[SESSION, ("format", Text, Optional)],
        ),
        sample(
            "_attache/session/compact",
            json!({"sessionId": session, "keep": "names"}),
            &[SESSION, ("keep", Text, Optional)],
        ),
        sample(
            "_attache/session/rewind",
            json!({"sessionId": session, "messageId": "none"}),
            &[SESSION, ("messageId", Text, Required)],
        ),
        sample("_attache/session/unrewind", json!({"sessionId": session}), &[SESSION]),
        sample(
            "_attache/commands/complete",
            json!({"sessionId": session, "text": "/a b"}),
            &[SESSION, ("text", Text, Required)],
        ),
        sample("_attache/queue/list", json!({"sessionId": session}), &[SESSION]),
        sample(
            "_attache/queue/cancel",
            json!({"sessionId": session, "messageId": "msg_1"}),
            &[SESSION, ("messageId", Text, Required)],
        ),
        sample(
            "_attache/queue/edit",
            json!({"sessionId": session, "messageId": "msg_1", "prompt": prompt}),
            &[SESSION, ("messageId", Text, Required), ("prompt", List, Required)],
        ),
    ]
}

#[test]
fn no_method_is_left_out() {
    let validator = Validator::shared();
    let sampled = samples(Path::new("/w"), "ses_x");
    let mut missing: Vec<&str> = validator
        .methods()
        .filter(|method| validator.side(method) == Some(Side::Agent))
        // A notification has no answer that could name a field.
        .filter(|method| *method != "session/cancel")
        .filter(|method| !LATER.contains(method))
        .filter(|method| sampled.iter().all(|sample| sample.method != *method))
        .collect();
    missing.sort_unstable();
    assert_eq!(missing, [] as [&str; 0]);
}
