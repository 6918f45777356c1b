//! Writes a run's answer in the form that was asked for.

use std::io;

use super::collected::Collected;
use super::end::Stopped;
use super::{RunConsole, RunOutput};

/// How text reaches its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    /// While it is said.
    Live,
    /// Only what fits is an answer: at the end.
    Withheld,
}

#[derive(Debug)]
pub(super) struct PrintedAnswer {
    output: RunOutput,
    streaming: Streaming,
    /// Text was written, and its last line is not ended.
    line_is_open: bool,
    unflushed: bool,
}

impl PrintedAnswer {
    pub(super) fn new(output: RunOutput, streaming: Streaming) -> Self {
        Self { output, streaming, line_is_open: false, unflushed: false }
    }

    /// A piece of the agent's answer.
    pub(super) fn words(&mut self, text: &str, console: &mut dyn RunConsole) -> Result<(), Stopped> {
        match (self.output, self.streaming) {
            (RunOutput::Text, Streaming::Live) if !text.is_empty() => {
                self.line_is_open = !text.ends_with('\n');
                self.unflushed = true;
                written(console.answer().write_all(text.as_bytes()))
            }
            (RunOutput::Text | RunOutput::Json | RunOutput::JsonLines, _) => Ok(()),
        }
    }

    /// An update as it came.
    pub(super) fn update(&mut self, raw: &str, console: &mut dyn RunConsole) -> Result<(), Stopped> {
        match self.output {
            RunOutput::JsonLines => {
                self.unflushed = true;
                written(writeln!(console.answer(), "{raw}"))
            }
            RunOutput::Text | RunOutput::Json => Ok(()),
        }
    }

    /// Nothing more is there right now.
    pub(super) fn flush(&mut self, console: &mut dyn RunConsole) -> Result<(), Stopped> {
        match std::mem::take(&mut self.unflushed) {
            true => written(console.answer().flush()),
            false => Ok(()),
        }
    }

    /// The end of the answer.
    pub(super) fn finish(
        &mut self,
        collected: &Collected,
        error: Option<&str>,
        console: &mut dyn RunConsole,
    ) -> Result<(), Stopped> {
        let answer = console.answer();
        let ended = match (self.output, self.streaming, &collected.value) {
            (RunOutput::Json | RunOutput::JsonLines, ..) => writeln!(answer, "{}", collected.object(error)),
            (RunOutput::Text, Streaming::Withheld, Some(value)) => writeln!(answer, "{value}"),
            (RunOutput::Text, Streaming::Withheld, None) => Ok(()),
            (RunOutput::Text, Streaming::Live, _) => match self.line_is_open {
                true => writeln!(answer),
                false => Ok(()),
            },
        };
        written(ended.and_then(|()| console.answer().flush()))
    }
}

fn written(result: io::Result<()>) -> Result<(), Stopped> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Stopped::ReaderGone,
        _ => Stopped::Output(error.to_string()),
    })
}
