//! Reads the text of a script, line by line; the first wrong line is the error. Does not know how to play it.

use std::sync::Arc;

use attache_core::chunk::FinishReason;
use attache_core::ports::Usage;
use attache_core::ports::model::{Price, ThoughtLevel};

use super::line::{ScriptLine, duration};
use super::{
    Directive, ErrorKind, PromptPattern, Script, ScriptError, ScriptStep, ScriptedCall, ScriptedError,
    ScriptedModel, Section,
};
use crate::limits::{SCRIPT_CONTEXT, SCRIPT_MAX_OUTPUT};
use crate::script_model::ScriptModel;

const DIRECTIVES: &str =
    "on, reasoning, text, stream, delay, call, file, source, usage, finish, error, cut, panic, model or ---";

pub(super) fn script(text: &str) -> Result<Script, ScriptError> {
    let mut reader = ScriptReader::default();
    for (index, text) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let mut line = ScriptLine { number: index + 1, rest: text.trim_start() };
        if !line.at_end() {
            reader.line(&mut line)?;
        }
    }
    reader.close_section();
    Ok(reader.script)
}

/// What we have read so far; `open` is the section the next directive belongs to.
#[derive(Default)]
struct ScriptReader {
    script: Script,
    open: Option<OpenSection>,
}

struct OpenSection {
    prompt: PromptPattern,
    steps: Vec<Arc<ScriptStep>>,
    step: ScriptStep,
    /// The directive after which nothing else in this step can run.
    last_word: Option<&'static str>,
}

impl ScriptReader {
    fn line(&mut self, line: &mut ScriptLine<'_>) -> Result<(), ScriptError> {
        let start = line.rest;
        match line.word() {
            "on" => self.open_section(line)?,
            "model" => self.declare_model(line)?,
            "---" => {
                let section = self.section(line, start)?;
                section.steps.push(Arc::new(std::mem::take(&mut section.step)));
                section.last_word = None;
            }
            "usage" => {
                let usage = usage(line)?;
                self.section(line, start)?.step.usage = Some(usage);
            }
            "finish" => {
                let reason = finish(line)?;
                let section = self.reachable_section(line, start)?;
                section.step.finish = Some(reason);
                section.last_word = Some("finish");
            }
            word => {
                let directive = directive(word, start, line)?;
                let section = self.reachable_section(line, start)?;
                section.last_word = last_word(&directive);
                section.step.directives.push(directive);
            }
        }
        line.end()
    }

    fn open_section(&mut self, line: &mut ScriptLine<'_>) -> Result<(), ScriptError> {
        let prompt = if line.take("*") {
            PromptPattern::Any
        } else {
            let text = line.string("a JSON string or * after `on`")?;
            if line.rest.starts_with('*') && line.take("*") {
                PromptPattern::StartingWith(text)
            } else {
                PromptPattern::Exactly(text)
            }
        };
        self.close_section();
        self.open =
            Some(OpenSection { prompt, steps: Vec::new(), step: ScriptStep::default(), last_word: None });
        Ok(())
    }

    fn close_section(&mut self) {
        if let Some(OpenSection { prompt, mut steps, step, .. }) = self.open.take() {
            steps.push(Arc::new(step));
            self.script.sections.push(Section { prompt, steps });
        }
    }

    fn section(&mut self, line: &ScriptLine<'_>, found: &str) -> Result<&mut OpenSection, ScriptError> {
        self.open.as_mut().ok_or_else(|| line.error_at("`on` or `model` before any other directive", found))
    }

    fn reachable_section(
        &mut self,
        line: &ScriptLine<'_>,
        found: &str,
    ) -> Result<&mut OpenSection, ScriptError> {
        let section = self.section(line, found)?;
        match section.last_word {
            None => Ok(section),
            Some(word) => {
                Err(line.error_at(&format!("--- or `on` after `{word}`, which ends the step"), found))
            }
        }
    }

    fn declare_model(&mut self, line: &mut ScriptLine<'_>) -> Result<(), ScriptError> {
        if self.open.is_some() {
            return Err(line.error_at("`model` lines only before the first `on`", "model"));
        }
        let name = line.required_word("a model name after `model`")?;
        let mut model = ScriptedModel {
            name: name.to_owned(),
            context: SCRIPT_CONTEXT,
            max_output: SCRIPT_MAX_OUTPUT,
            images: false,
            audio: false,
            pdf: false,
            price: None,
            thought_levels: Vec::new(),
        };
        if name == ScriptModel::DEFAULT_MODEL || self.script.models.iter().any(|known| known.name == name) {
            return Err(line.error_at("a model name that is not declared yet", name));
        }
        let mut prices = Prices::default();
        while let Some((key, value)) = line.option()? {
            match key {
                "context" => model.context = line.value(value, "a number of tokens as context=")?,
                "max_output" => model.max_output = line.value(value, "a number of tokens as max_output=")?,
                "images" => model.images = line.value(value, "images=true or images=false")?,
                "audio" => model.audio = line.value(value, "audio=true or audio=false")?,
                "pdf" => model.pdf = line.value(value, "pdf=true or pdf=false")?,
                _ if key.starts_with("price_") => prices.set(line, key, value)?,
                "thought" => model.thought_levels = thought_levels(line, value)?,
                _ => {
                    let known = "context=, max_output=, images=, audio=, pdf=, thought= or price_…=";
                    return Err(line.error_at(known, key));
                }
            }
        }
        model.price = prices.price();
        self.script.models.push(model);
        Ok(())
    }
}

/// The prices on a `model` line.
#[derive(Default)]
struct Prices {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Prices {
    fn set(&mut self, line: &ScriptLine<'_>, key: &str, value: &str) -> Result<(), ScriptError> {
        let slot = match key {
            "price_input" => &mut self.input,
            "price_output" => &mut self.output,
            "price_cache_read" => &mut self.cache_read,
            "price_cache_write" => &mut self.cache_write,
            _ => {
                let known = "price_input=, price_output=, price_cache_read= or price_cache_write=";
                return Err(line.error_at(known, key));
            }
        };
        const EXPECTED: &str = "dollars per million tokens";
        let price: f64 = line.value(value, EXPECTED)?;
        if !price.is_finite() || price < 0.0 {
            return Err(line.error_at(EXPECTED, value));
        }
        *slot = Some(price);
        Ok(())
    }

    /// A price left out means free; without a cache price, cached tokens cost as much as any input.
    fn price(&self) -> Option<Price> {
        let stated = [self.input, self.output, self.cache_read, self.cache_write];
        stated.iter().any(Option::is_some).then(|| {
            let input = self.input.unwrap_or_default();
            Price {
                input,
                output: self.output.unwrap_or_default(),
                cache_read: self.cache_read.unwrap_or(input),
                cache_write: self.cache_write.unwrap_or(input),
            }
        })
    }
}

/// Directives after which nothing in a step can run; an error with `times=` lets a later attempt pass.
fn last_word(directive: &Directive) -> Option<&'static str> {
    match directive {
        Directive::Cut => Some("cut"),
        Directive::Panic => Some("panic"),
        Directive::Error(ScriptedError { times: None, .. }) => Some("error"),
        Directive::Error(ScriptedError { times: Some(_), .. })
        | Directive::Reasoning(_)
        | Directive::Text(_)
        | Directive::Stream { .. }
        | Directive::Delay(_)
        | Directive::Call(_)
        | Directive::File { .. }
        | Directive::Source { .. } => None,
    }
}

fn directive(word: &str, start: &str, line: &mut ScriptLine<'_>) -> Result<Directive, ScriptError> {
    Ok(match word {
        "reasoning" => Directive::Reasoning(line.string("a JSON string after `reasoning`")?),
        "text" => Directive::Text(line.string("a JSON string after `text`")?),
        "stream" => {
            let count = line.number("a number of deltas after `stream`")?;
            let text = line.string("a JSON string after the number of deltas")?;
            let every =
                if line.take("every") { Some(line.duration("a duration after `every`")?) } else { None };
            Directive::Stream { count, text, every }
        }
        "delay" => Directive::Delay(line.duration("a duration after `delay`")?),
        "call" => Directive::Call(call(line)?),
        "file" => Directive::File {
            media_type: line.required_word("a media type after `file`")?.to_owned(),
            url: line.string("the URL as a JSON string after the media type")?,
        },
        "source" => {
            let url = line.string("a URL as a JSON string after `source`")?;
            let title = if line.at_end() { None } else { Some(line.string("the title as a JSON string")?) };
            Directive::Source { url, title }
        }
        "error" => Directive::Error(error(line)?),
        "cut" => Directive::Cut,
        "panic" => Directive::Panic,
        _ => return Err(line.error_at(DIRECTIVES, start)),
    })
}

fn call(line: &mut ScriptLine<'_>) -> Result<ScriptedCall, ScriptError> {
    let mut tool_name = line.required_word("a tool name after `call`")?;
    let mut id = None;
    if let Some(given) = tool_name.strip_prefix("id=") {
        if given.is_empty() {
            return Err(line.error_at("an id after `id=`", tool_name));
        }
        id = Some(given.to_owned());
        tool_name = line.required_word("a tool name after the id")?;
    }
    let (arguments, input) = line.arguments();
    Ok(ScriptedCall { id, tool_name: tool_name.to_owned(), arguments, input })
}

fn error(line: &mut ScriptLine<'_>) -> Result<ScriptedError, ScriptError> {
    const KINDS: &str = "transient, permanent, auth, refused, overflow or attachment after `error`";
    let kind = match line.required_word(KINDS)? {
        "transient" => ErrorKind::Transient,
        "permanent" => ErrorKind::Permanent,
        "auth" => ErrorKind::Auth,
        "refused" => ErrorKind::Refused,
        "overflow" => ErrorKind::Overflow,
        "attachment" => ErrorKind::Attachment,
        "unreadable" => ErrorKind::Unreadable,
        other => return Err(line.error_at(KINDS, other)),
    };
    let message = line.string("the message as a JSON string")?;
    let mut error = ScriptedError { kind, message, retry_after: None, times: None };
    while let Some((key, value)) = line.option()? {
        match key {
            "retry_after" if kind == ErrorKind::Transient => {
                error.retry_after =
                    Some(duration(value).ok_or_else(|| line.error_at("a duration as retry_after=", value))?);
            }
            "retry_after" => return Err(line.error_at("retry_after= only with `transient`", key)),
            "times" => error.times = Some(line.value(value, "a number of attempts as times=")?),
            _ => return Err(line.error_at("retry_after= or times=", key)),
        }
    }
    Ok(error)
}

fn thought_levels(line: &ScriptLine<'_>, value: &str) -> Result<Vec<ThoughtLevel>, ScriptError> {
    let level =
        |text| ThoughtLevel::parse(text).ok_or_else(|| line.error_at("off, low, medium, high or max", text));
    value.split(',').map(level).collect()
}

fn usage(line: &mut ScriptLine<'_>) -> Result<Usage, ScriptError> {
    let mut usage = Usage::default();
    while let Some((key, value)) = line.option()? {
        let tokens = match key {
            "input" => &mut usage.input,
            "output" => &mut usage.output,
            "reasoning" => &mut usage.reasoning,
            "cache_read" => &mut usage.cache_read,
            "cache_write" => &mut usage.cache_write,
            _ => return Err(line.error_at("input=, output=, reasoning=, cache_read= or cache_write=", key)),
        };
        // 32 bits, so that sums over a session can't overflow.
        *tokens = line.value::<u32>(value, "a number of tokens")?.into();
    }
    Ok(usage)
}

fn finish(line: &mut ScriptLine<'_>) -> Result<FinishReason, ScriptError> {
    const REASONS: &str = "stop, length, content-filter, tool-calls or other after `finish`";
    Ok(match line.required_word(REASONS)? {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content-filter" => FinishReason::ContentFilter,
        "tool-calls" => FinishReason::ToolCalls,
        "other" => FinishReason::Other,
        other => return Err(line.error_at(REASONS, other)),
    })
}
