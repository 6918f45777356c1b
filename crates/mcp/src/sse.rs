//! Server-sent events from the bytes of an HTTP answer, capped. Knows nothing of what they mean.

use attache_rpc::framing::{FramedLine, LineFramer};

use crate::limits::MESSAGE_BYTES;

/// One event; one without a name is a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: String,
    pub(crate) id: Option<String>,
}

/// Feed it bytes as they come, then take events until there is none. An event that is too long is passed over.
#[derive(Debug)]
pub(crate) struct EventReader {
    lines: LineFramer,
    event: ServerEvent,
    /// Also of an event without data: a server says so where to go on before it has anything to say.
    last_id: Option<String>,
    /// The event had a line, or lines together, above the cap.
    is_too_long: bool,
}

impl Default for EventReader {
    fn default() -> Self {
        Self {
            lines: LineFramer::new(MESSAGE_BYTES + 64),
            event: ServerEvent::default(),
            last_id: None,
            is_too_long: false,
        }
    }
}

impl EventReader {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    pub(crate) fn next(&mut self) -> Option<ServerEvent> {
        while self.lines.has_next() {
            let line = match self.lines.next()? {
                FramedLine::TooLong => {
                    self.is_too_long = true;
                    continue;
                }
                FramedLine::Text(line) => String::from_utf8_lossy(&line).into_owned(),
            };
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if !line.is_empty() {
                self.field(line);
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if event.id.is_some() {
                self.last_id.clone_from(&event.id);
            }
            if !std::mem::take(&mut self.is_too_long) && !event.data.is_empty() {
                return Some(event);
            }
        }
        None
    }

    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = Some(value.chars().take(1024).collect()),
            "data" if self.event.data.len() + value.len() > MESSAGE_BYTES => self.is_too_long = true,
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = ": hello\nevent: endpoint\ndata: /messages?x=1\n\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\n\nevent: x\n\ndata: last\n\ndata: cut";

    fn events(pieces: &[&[u8]]) -> Vec<ServerEvent> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            reader.feed(piece);
            events.extend(std::iter::from_fn(|| reader.next()));
        }
        events
    }

    fn event(name: &str, data: &str, id: Option<&str>) -> ServerEvent {
        ServerEvent { name: name.to_owned(), data: data.to_owned(), id: id.map(str::to_owned) }
    }

    #[test]
    fn events_are_read_as_browsers_do() {
        let expected = vec![
            event("endpoint", "/messages?x=1", None),
            event("", "{\"a\":\n1}", Some("7")),
            event("", "last", None),
        ];
        assert_eq!(events(&[STREAM.as_bytes()]), expected);
    }

    #[test]
    fn where_to_go_on_is_known_without_a_word() {
        let mut reader = EventReader::default();
        reader.feed(b"id: 5\ndata:\n\n");
        assert_eq!((reader.next(), reader.last_id()), (None, Some("5")));
        reader.feed(b"data: x\n\nid: 6\ndata: cut");
        assert_eq!(
            (reader.next().map(|event| event.data).as_deref(), reader.last_id()),
            (Some("x"), Some("5"))
        );
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_over() {
        let long = "x".repeat(MESSAGE_BYTES + 100);
        assert_eq!(events(&[format!("data: {long}\n\ndata: ok\n\n").as_bytes()]), [event("", "ok", None)]);
        let line = format!("data: {}\n", "x".repeat(1024 * 1024));
        assert_eq!(
            events(&[format!("{}\ndata: ok\n\n", line.repeat(9)).as_bytes()]),
            [event("", "ok", None)]
        );
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut pieces, mut start) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                pieces.push(&STREAM.as_bytes()[start..cut]);
                start = cut;
            }
            prop_assert_eq!(events(&pieces), events(&[STREAM.as_bytes()]));
        }
    }
}
