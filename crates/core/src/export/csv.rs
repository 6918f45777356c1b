//! CSV: one line per part, quoted as RFC 4180 requires.

use std::io::{self, Write};

use crate::ports::store::{MessageRow, PartRow};

pub(super) fn begin(out: &mut dyn Write) -> io::Result<()> {
    write!(out, "seq,role,message_id,part_index,type,tool_state,created_at,data\r\n")
}

pub(super) fn part(out: &mut dyn Write, message: &MessageRow, part: &PartRow) -> io::Result<()> {
    let fields = [
        message.seq.map(|seq| seq.to_string()).unwrap_or_default(),
        message.role.as_str().to_string(),
        message.id.to_string(),
        part.index.to_string(),
        part.kind.clone(),
        part.tool_state.unwrap_or_default().to_string(),
        part.created_at.to_string(),
        part.data_json.clone(),
    ];
    let line: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
    write!(out, "{}\r\n", line.join(","))
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_quotes_and_lines_survives() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a \"b\",\nc"), "\"a \"\"b\"\",\nc\"");
    }
}
