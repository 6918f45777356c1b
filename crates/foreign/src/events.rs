//! Server-sent events from the bytes of an answer, capped. Knows nothing of what they mean.

use attache_rpc::framing::{FramedLine, LineFramer};

use crate::limits::EVENT_BYTES;

/// One event. `name` is empty where the server gave none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) id: Option<String>,
}

/// An event that is longer than what is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Feed it bytes as they come, then take events until there is none.
#[derive(Debug)]
pub(crate) struct SseReader {
    lines: LineFramer,
    event: Event,
    has_data: bool,
}

impl Default for SseReader {
    fn default() -> Self {
        Self { lines: LineFramer::new(EVENT_BYTES), event: Event::default(), has_data: false }
    }
}

impl SseReader {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next whole event; comments and events without data are passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        while self.lines.has_next() {
            let line = match self.lines.next() {
                Some(FramedLine::Text(line)) => String::from_utf8_lossy(&line).into_owned(),
                Some(FramedLine::TooLong) => return Err(TooLong),
                None => return Ok(None),
            };
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if !line.is_empty() {
                self.field(line)?;
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn field(&mut self, line: &str) -> Result<(), TooLong> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = Some(value.to_owned()),
            // `retry`, and comments, which begin with the colon.
            _ => {}
        }
        if self.event.data.len() > EVENT_BYTES { Err(TooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<Event> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            reader.feed(piece.as_bytes());
            while let Ok(Some(event)) = reader.next() {
                events.push(event);
            }
        }
        events
    }

    #[test]
    fn events_are_read_whatever_the_pieces_are() {
        let text = ": hello\r\n\r\nevent: messages\r\nid: 7\r\ndata: [1,\r\ndata: 2]\r\n\r\ndata:x\n\n";
        let expected = [
            Event { name: "messages".into(), data: "[1,\n2]".into(), id: Some("7".into()) },
            Event { data: "x".into(), ..Event::default() },
        ];
        assert_eq!(read(&[text]), expected);
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(read(&single.iter().map(String::as_str).collect::<Vec<_>>()), expected);
    }
}
