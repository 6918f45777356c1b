//! The limit of the wire: one blocking loop that reads an answer from its socket, decodes it and shows it. It
//! stores nothing and waits for nothing.

use std::io::{BufRead, BufReader, Read, StdoutLock, Write};
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::{Context, Result};
use attache_acp::to_wire::{CompactionUpdates, Notices, ThoughtUpdates, WireView, write_updates};
use attache_core::choices::{Choices, CurrentChoices};
use attache_core::chunk::Chunk;
use attache_core::conversation::Conversation;
use attache_core::entry::Entry;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::Role;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelRequest, StepEvent};
use attache_models::{Decoder, Dialect, SseParser};

use crate::no_blobs::NoBlobs;

/// One connection, used again for every answer.
pub(crate) struct Limit {
    dialect: Dialect,
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    view: WireView,
    session_id: SessionId,
    message_id: MessageId,
}

impl Limit {
    pub(crate) fn connect(dialect: Dialect, address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let request =
            format!("POST / HTTP/1.1\r\nhost: {address}\r\ncontent-length: 2\r\n\r\n{{}}").into_bytes();
        let choices = CurrentChoices::new(Choices { models: Arc::new([]), foreign: Arc::new([]) });
        Ok(Self {
            dialect,
            stream: BufReader::with_capacity(super::super::aims::RAW_WRITE_BYTES, stream),
            request,
            view: WireView {
                choices,
                thoughts: ThoughtUpdates::Show,
                notices: Notices::Unwanted,
                compaction: CompactionUpdates::Unwanted,
            },
            session_id: SessionId::new("ses_019a2b3c4d5e6fAbCdEfGhIjKl"),
            message_id: MessageId::new("msg_019a2b3c4d5e6fAbCdEfGhIjKl"),
        })
    }

    /// Asks once and shows the whole answer.
    pub(crate) fn show_answer(&mut self, out: &mut StdoutLock<'_>) -> Result<()> {
        self.stream.get_mut().write_all(&self.request)?;
        while self.line()? != "\r\n" {}
        let mut parser = SseParser::default();
        let mut decoder = self.dialect.decoder(&request(self.dialect));
        let (mut events, mut lines, mut piece) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let size = usize::from_str_radix(self.line()?.trim(), 16).context("no size of a chunk")?;
            piece.resize(size + 2, 0);
            self.stream.read_exact(&mut piece)?;
            if size == 0 {
                break;
            }
            parser.feed(&piece[..size])?;
            self.decode(&mut parser, &mut *decoder, &mut events, &mut lines)?;
            out.write_all(&lines)?;
            out.flush()?;
            lines.clear();
        }
        Ok(())
    }

    fn decode(
        &self,
        parser: &mut SseParser,
        decoder: &mut dyn Decoder,
        events: &mut Vec<StepEvent>,
        lines: &mut Vec<u8>,
    ) -> Result<()> {
        while let Some(event) = parser.next() {
            decoder.event(&event, events)?;
        }
        for event in events.drain(..) {
            let StepEvent::Chunk(chunk) = &event else { continue };
            let entry = Entry {
                session_id: &self.session_id,
                message_id: &self.message_id,
                role: Role::Assistant,
                index: 0,
                step: 1,
                chunk,
            };
            write_updates(entry, &self.view, lines)?;
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(line)
    }
}

pub(crate) fn is_delta(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::TextDelta { .. })
}

/// What a decoder wants to know of the request it reads the answer to.
pub(crate) fn request(dialect: Dialect) -> ModelRequest {
    ModelRequest {
        session_id: SessionId::new("ses_1"),
        info: Arc::new(ModelInfo::undescribed(ModelRef::new(dialect.as_str(), "model-1"))),
        thought: None,
        system: "".into(),
        passages: Conversation::default(),
        runtime_context: Arc::new([]),
        tools: Arc::new([]),
        blobs: Arc::new(NoBlobs),
        parent_span: None,
    }
}
