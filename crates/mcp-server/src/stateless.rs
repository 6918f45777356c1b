//! Requests of clients without a hello (revision 2026-07-28): each says of itself which revision it is of and
//! what its client can, over HTTP in headers as well.

use attache_rpc::ErrorObject;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::person::FormSupport;
use crate::revision::{REVISIONS, Revision};

/// Those without a hello that this server speaks, the newest first.
pub(crate) const STATELESS_REVISIONS: [&str; 1] = ["2026-07-28"];

/// Codes of the protocol.
const HEADERS_DIFFER: i32 = -32020;
const OTHER_REVISION: i32 = -32022;

/// What a request counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStyle {
    /// A hello before it.
    Greeted,
    /// Nothing.
    Stateless,
}

impl RequestStyle {
    /// A result as such a client wants it; `version`: of this program.
    pub(crate) fn result(self, mut result: Value, version: &str) -> Value {
        if self == Self::Stateless {
            result["resultType"] = "complete".into();
            result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info(version) });
        }
        result
    }
}

pub(crate) fn server_info(version: &str) -> Value {
    json!({ "name": "attache", "title": "attache", "version": version })
}

/// Whether its client puts forms to its user, when it is asked for that in an answer.
pub(crate) fn forms(params: Option<&RawValue>) -> FormSupport {
    let capabilities = meta(params).and_then(|meta| meta.capabilities).unwrap_or_default();
    FormSupport::of(&capabilities, Revision::newest())
}

/// What a request says of itself, or why it can't be taken.
pub(crate) fn style(method: &str, params: Option<&RawValue>) -> Result<RequestStyle, ErrorObject> {
    let Some(Meta { version: Some(version), capabilities }) = meta(params) else {
        return Ok(RequestStyle::Greeted);
    };
    let known = version.as_str().is_some_and(|version| STATELESS_REVISIONS.contains(&version));
    match (method, known, capabilities) {
        // A hello is one, whatever else it says.
        ("initialize", ..) => Ok(RequestStyle::Greeted),
        (_, false, _) => Err(other_revision(&version)),
        (_, true, Some(Value::Object(_))) => Ok(RequestStyle::Stateless),
        (_, true, _) => Err(ErrorObject::invalid_params(format!(
            "{method}: `_meta` must have `io.modelcontextprotocol/clientCapabilities`, an object"
        ))),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
}

fn meta(params: Option<&RawValue>) -> Option<Meta> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    let params: Params = serde_json::from_str(params?.get()).ok()?;
    Some(params.meta)
}

fn other_revision(wanted: &Value) -> ErrorObject {
    let supported: Vec<&str> = STATELESS_REVISIONS.into_iter().chain(REVISIONS).collect();
    let wanted: String = wanted.as_str().unwrap_or_default().chars().take(40).collect();
    let message = format!("this revision is not known; there are {}", supported.join(", "));
    ErrorObject::new(OTHER_REVISION, message)
        .with_data(json!({ "supported": supported, "requested": wanted }))
}

/// For a revision that only a header names.
pub(crate) fn unknown_revision(header: &str) -> ErrorObject {
    other_revision(&header.into())
}

/// What headers say of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaidInHeaders<'a> {
    pub(crate) revision: &'a str,
    pub(crate) method: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

/// Headers must agree with the body: a proxy that reads headers only must see the same request.
pub(crate) fn check_headers(
    said: SaidInHeaders<'_>,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), ErrorObject> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ToolName {
        name: Option<String>,
    }
    let differs = |header: &str| {
        Err(ErrorObject::new(HEADERS_DIFFER, format!("the header {header} does not say what the body says")))
    };
    let version = meta(params).and_then(|meta| meta.version);
    if version.is_some_and(|version| version != said.revision) {
        return differs("MCP-Protocol-Version");
    }
    if said.method != Some(method) {
        return differs("Mcp-Method");
    }
    let named: ToolName =
        params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    match (method, named.name) {
        ("tools/call", Some(name)) if said.name.map(decoded).as_deref() != Some(name.as_str()) => {
            differs("Mcp-Name")
        }
        (_, _) => Ok(()),
    }
}

/// Values that no header can hold are written in another way.
fn decoded(value: &str) -> String {
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

/// The code of the error that an answer is, if it is one.
pub(crate) fn error_code(answer: &[u8]) -> Option<i32> {
    #[derive(Deserialize)]
    struct ErrorAnswer {
        error: Option<ErrorObject>,
    }
    Some(serde_json::from_slice::<ErrorAnswer>(answer).ok()?.error?.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    fn of(version: &str) -> Box<RawValue> {
        raw(json!({ "name": "ask", "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        } }))
    }

    #[test]
    fn a_request_says_what_it_counts_on() {
        assert_eq!(style("tools/list", None), Ok(RequestStyle::Greeted));
        assert_eq!(
            style("tools/list", Some(&raw(json!({ "_meta": { "progressToken": 1 } })))),
            Ok(RequestStyle::Greeted)
        );
        assert_eq!(style("tools/list", Some(&of("2026-07-28"))), Ok(RequestStyle::Stateless));
        assert_eq!(style("initialize", Some(&of("2026-07-28"))), Ok(RequestStyle::Greeted));
        let error = style("tools/list", Some(&of("1900-01-01"))).unwrap_err();
        assert_eq!(
            (error.code, &error.data.unwrap()["supported"][0]),
            (OTHER_REVISION, &json!("2026-07-28"))
        );
        assert_eq!(forms(Some(&of("2026-07-28"))), FormSupport::None);
        let shown =
            json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } } });
        assert_eq!(forms(Some(&raw(shown))), FormSupport::Shown(Revision::newest()));
        let bare = raw(json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } }));
        assert_eq!(style("tools/list", Some(&bare)).unwrap_err().code, -32602);
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let check = |revision, method, name| {
            let said = SaidInHeaders { revision, method, name };
            check_headers(said, "tools/call", Some(&of("2026-07-28"))).map_err(|error| error.code)
        };
        assert_eq!(check("2026-07-28", Some("tools/call"), Some("ask")), Ok(()));
        assert_eq!(check("2026-07-28", Some("tools/call"), Some("=?base64?YXNr?=")), Ok(()));
        for (revision, method, name) in [
            ("2027-01-01", Some("tools/call"), Some("ask")),
            ("2026-07-28", None, Some("ask")),
            ("2026-07-28", Some("tools/list"), Some("ask")),
            ("2026-07-28", Some("tools/call"), None),
            ("2026-07-28", Some("tools/call"), Some("session_read")),
        ] {
            assert_eq!(check(revision, method, name), Err(HEADERS_DIFFER), "{revision} {method:?} {name:?}");
        }
    }
}
