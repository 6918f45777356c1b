//! Writes messages as lines into a buffer that the caller owns. Sends nothing.

use crate::error::ErrorObject;
use crate::id::RequestId;
use serde::Serialize;

/// Appends one notification line; on failure the buffer is as it was. No allocation beyond the buffer's growth.
pub fn encode_notification<P: Serialize>(
    out: &mut Vec<u8>,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    line(out, |out| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
        serde_json::to_writer(&mut *out, method)?;
        write_params(out, params)
    })
}

pub(crate) fn encode_request<P: Serialize>(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    params: &P,
) -> Result<(), serde_json::Error> {
    line(out, |out| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        serde_json::to_writer(&mut *out, &id)?;
        out.extend_from_slice(b",\"method\":");
        serde_json::to_writer(&mut *out, method)?;
        write_params(out, params)
    })
}

pub(crate) fn encode_result<R: Serialize>(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &R,
) -> Result<(), serde_json::Error> {
    line(out, |out| {
        write_answer_head(out, Some(id));
        out.extend_from_slice(b",\"result\":");
        serde_json::to_writer(out, result)
    })
}

pub(crate) fn encode_error(
    out: &mut Vec<u8>,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Result<(), serde_json::Error> {
    line(out, |out| {
        write_answer_head(out, id);
        out.extend_from_slice(b",\"error\":");
        serde_json::to_writer(out, error)
    })
}

fn line(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = body(out);
    if written.is_err() {
        out.truncate(start);
        return written;
    }
    put_on_one_line(&mut out[start..]);
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Raw JSON inside a value may have been formatted over several lines. A newline in valid JSON is always white
/// space, so a blank in its place changes nothing but keeps the framing whole.
fn put_on_one_line(mut bytes: &mut [u8]) {
    while let Some(index) = memchr::memchr(b'\n', bytes) {
        bytes[index] = b' ';
        bytes = &mut bytes[index + 1..];
    }
}

fn write_params<P: Serialize>(out: &mut Vec<u8>, params: &P) -> Result<(), serde_json::Error> {
    let before = out.len();
    out.extend_from_slice(b",\"params\":");
    let start = out.len();
    serde_json::to_writer(&mut *out, params)?;
    // JSON-RPC allows structured parameters or none, not null.
    if &out[start..] == b"null" {
        out.truncate(before);
    }
    Ok(())
}

fn write_answer_head(out: &mut Vec<u8>, id: Option<&RequestId>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.map_or("null", RequestId::as_json).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn raw_json_over_several_lines_stays_one_line() {
        let raw = RawValue::from_string("{\n  \"a\": \"x\\ny\"\r\n}".to_owned()).unwrap();
        let mut out = Vec::new();
        encode_notification(&mut out, "m", &raw).unwrap();
        assert_eq!(memchr::memchr_iter(b'\n', &out).collect::<Vec<_>>(), [out.len() - 1]);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["params"]["a"], "x\ny");
    }

    #[test]
    fn what_cannot_be_encoded_leaves_no_trace() {
        let mut out = b"before\n".to_vec();
        let bad = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(encode_notification(&mut out, "m", &bad).is_err());
        assert_eq!(out, b"before\n");
    }

    #[test]
    fn unit_parameters_are_left_out() {
        let mut out = Vec::new();
        encode_notification(&mut out, "m", &()).unwrap();
        assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n");
    }
}
