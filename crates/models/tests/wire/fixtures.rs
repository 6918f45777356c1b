//! One recorded answer and everything that must hold of it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use attache_core::chunk::order::OrderChecker;
use attache_core::chunk::{Chunk, Rest};
use attache_core::ports::store::ModelRef;
use attache_core::ports::{ModelError, StepEvent};
use attache_models::{Decoder, Dialect, SseParser};

pub(crate) struct Fixture {
    pub(crate) name: String,
    dialect: Dialect,
    body: Vec<u8>,
    expected: PathBuf,
}

/// What a body became: its events, and the error if it ended in one.
#[derive(Clone, Debug, PartialEq)]
struct Heard {
    events: Vec<StepEvent>,
    error: Option<ModelError>,
}

impl Fixture {
    pub(crate) fn all(dialect: Dialect) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(dialect.as_str());
        let mut found: Vec<Self> = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
            .map(|path| Self {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                dialect,
                body: std::fs::read(&path).unwrap(),
                expected: path.with_extension("events"),
            })
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    pub(crate) fn becomes_its_events(&self) {
        let shown = shown(&self.decode(&self.body, usize::MAX));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&self.expected, &shown).unwrap();
        }
        let expected = std::fs::read_to_string(&self.expected).unwrap_or_default();
        assert_eq!(shown, expected, "{} of {}", self.name, self.dialect.as_str());
    }

    pub(crate) fn is_the_same_in_any_pieces(&self) {
        let whole = self.decode(&self.body, usize::MAX);
        for step in [1, 2, 3, 7, 64] {
            assert_eq!(self.decode(&self.body, step), whole, "{} in steps of {step}", self.name);
        }
    }

    /// Cut after every byte: what was said is in order, nothing is made up, no call is whole that was not.
    pub(crate) fn may_be_cut_anywhere(&self) {
        let whole = self.decode(&self.body, usize::MAX);
        for length in 0..self.body.len() {
            let cut = self.decode(&self.body[..length], usize::MAX);
            let at = format!("{} cut after {length} bytes", self.name);
            in_order(&cut.events, &at);
            let same = cut.events.iter().zip(&whole.events).take_while(|(one, other)| one == other).count();
            // Only the end may differ: a body that ends early may be complete by then, without its last word.
            for event in &cut.events[same..] {
                let is_end = matches!(event, StepEvent::End { .. });
                let closes = matches!(
                    event,
                    StepEvent::Chunk(
                        Chunk::TextEnd { .. } | Chunk::ReasoningEnd { .. } | Chunk::ToolInputAvailable { .. }
                    )
                );
                assert!(is_end || closes, "{at}: {event:?}");
            }
            for event in &cut.events {
                if let StepEvent::Chunk(Chunk::ToolInputAvailable { call_id, input, .. }) = event {
                    let told = whole.events.iter().any(|event| {
                        matches!(event, StepEvent::Chunk(Chunk::ToolInputAvailable { call_id: id, input: told, .. })
                            if id == call_id && told == input)
                    });
                    assert!(told, "{at}: a call became whole that was not: {input}");
                }
            }
        }
    }

    fn decode(&self, body: &[u8], step: usize) -> Heard {
        let request = attache_testkit::fakes::request(ModelRef::new("acme", "model-1"), Vec::new());
        let mut decoder = self.dialect.decoder(&request);
        let mut events = Vec::new();
        let error = feed(&mut *decoder, body, step, &mut events).err();
        in_order(&events, &self.name);
        Heard { events, error }
    }
}

fn feed(
    decoder: &mut dyn Decoder,
    body: &[u8],
    step: usize,
    events: &mut Vec<StepEvent>,
) -> Result<(), ModelError> {
    let mut parser = SseParser::default();
    for piece in body.chunks(step) {
        parser.feed(piece).unwrap();
        while let Some(event) = parser.next() {
            decoder.event(&event, events)?;
            if matches!(events.last(), Some(StepEvent::End { .. })) {
                return Ok(());
            }
        }
    }
    decoder.body_ended(events);
    Ok(())
}

/// The chunks of a step come in an order the loop takes, and nothing follows the end.
fn in_order(events: &[StepEvent], at: &str) {
    let mut order = OrderChecker::default();
    let begun = [
        Chunk::Start { message_id: None, message_metadata: None, rest: Rest::none() },
        Chunk::StartStep { rest: Rest::none() },
    ];
    for chunk in &begun {
        order.check(chunk).unwrap();
    }
    for (index, event) in events.iter().enumerate() {
        match event {
            StepEvent::Chunk(chunk) => {
                assert!(!chunk.is_terminal(), "{at}: {chunk:?}");
                order.check(chunk).unwrap_or_else(|error| panic!("{at}: {error}: {chunk:?}"));
            }
            StepEvent::End { .. } => assert_eq!(index + 1, events.len(), "{at}: something after the end"),
        }
    }
}

fn shown(heard: &Heard) -> String {
    let mut text = String::new();
    for event in &heard.events {
        match event {
            StepEvent::Chunk(chunk) => writeln!(text, "{}", serde_json::to_string(chunk).unwrap()).unwrap(),
            StepEvent::End { reason, usage } => {
                let (input, output, reasoning) = (usage.input, usage.output, usage.reasoning);
                let (read, write) = (usage.cache_read, usage.cache_write);
                writeln!(
                    text,
                    "end {} input={input} output={output} reasoning={reasoning} cache_read={read} cache_write={write}",
                    reason.as_str()
                )
                .unwrap();
            }
        }
    }
    if let Some(error) = &heard.error {
        writeln!(text, "error {error:?}").unwrap();
    }
    text
}
