//! Reads the manifest of an agent: Markdown with front matter, whose text is the prompt. Pure; reads no file.
//! The built-in agents are such manifests, too.

mod rules;
mod tools;

use std::sync::Arc;

use serde_json::Value;

use super::{Agent, AgentMode, AgentRuntime, Agents, ToolOffer, Transcript, WhenDone, pinned};
use crate::front_matter::{FrontMatter, FrontMatterError, FrontNode, NodeValue};
use crate::json_schema::Schema;
use crate::nearest::meant;
use crate::ports::model::ThoughtLevel;
use crate::ports::store::ModelRef;
use crate::skills::{is_name, short_line};
use crate::watchdog::{Action, Commands, Firmness, ManifestRule};

/// Which program's vocabulary a manifest uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestDialect {
    /// Ours, in the program itself.
    BuiltIn,
    /// Ours.
    Own,
    /// Those of `.claude/agents`: subagents with other tool names, whose models are not ours.
    Claude,
}

/// A file that the host found.
#[derive(Clone, Copy)]
pub(super) struct AgentFile<'a> {
    /// Its file name without the ending: the id if the manifest names none.
    pub(super) stem: &'a str,
    pub(super) text: &'a str,
    pub(super) dialect: ManifestDialect,
    /// Gives the text of a file beside it, or says why there is none.
    pub(super) beside: &'a dyn Fn(&str) -> Result<String, String>,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadManifest {
    pub(super) agent: Agent,
    /// What was not understood and therefore left out, by its line.
    pub(super) notes: Vec<FrontMatterError>,
}

const KEYS: [&str; 14] = [
    "id",
    "name",
    "mode",
    "description",
    "model",
    "effort",
    "tools",
    "permissions",
    "read_only",
    "max_steps",
    "output_schema",
    "inspectable",
    "wake",
    "when_refused",
];

/// The keys of `.claude/agents` that mean something here, then those that are ignored without a note.
const CLAUDE_KEYS: [&str; 7] =
    ["name", "description", "tools", "disallowedTools", "permissionMode", "maxTurns", "effort"];
const PASSED_OVER: [&str; 4] = ["model", "color", "background", "initialPrompt"];

/// One file while it is read.
struct ManifestReader<'a> {
    file: &'a AgentFile<'a>,
    front: FrontMatter<'a>,
    /// The built-in agent of the same id: it fills in what the file does not say.
    base: Option<&'a Agent>,
    notes: Vec<FrontMatterError>,
}

/// Reads a file on top of the built-in agent of its id, if there is one.
pub(super) fn parse(file: &AgentFile<'_>, built_in: &Agents) -> Result<ReadManifest, FrontMatterError> {
    let front = FrontMatter::parse(file.text)?;
    let mut reader = ManifestReader { file, front, base: None, notes: Vec::new() };
    reader.note_unknown_keys();
    let id = reader.id()?;
    reader.base = built_in.get(&id);
    let agent = reader.agent(id)?;
    Ok(ReadManifest { agent, notes: reader.notes })
}

impl ManifestReader<'_> {
    fn agent(&mut self, id: String) -> Result<Agent, FrontMatterError> {
        let mode = self.mode()?;
        let commands = self.commands()?;
        let offer = self.offer(commands)?;
        let base = self.base;
        Ok(Agent {
            name: self.name(&id)?.into(),
            description: self.description()?.into(),
            system_prompt: self.prompt()?,
            instead: self
                .front
                .text("when_refused")?
                .map(Arc::from)
                .or_else(|| base.and_then(|base| base.instead.clone())),
            permissions: self.permissions(commands)?,
            model: self.model()?.or_else(|| base.and_then(|base| base.model.clone())),
            thought: self.thought()?.or_else(|| base.and_then(|base| base.thought)),
            max_steps: self.max_steps()?.or_else(|| base.and_then(|base| base.max_steps)),
            output_schema: self.output_schema()?.or_else(|| base.and_then(|base| base.output_schema.clone())),
            transcript: match self.flag("inspectable")? {
                Some(true) => Transcript::OwnSession,
                Some(false) => Transcript::Nested,
                None => base.map(|base| base.transcript).unwrap_or_default(),
            },
            when_done: match self.flag("wake")? {
                Some(true) => WhenDone::WakeParent,
                Some(false) => WhenDone::TellOnly,
                None => base.map(|base| base.when_done).unwrap_or_default(),
            },
            runtime: AgentRuntime::Native,
            id: id.into(),
            mode,
            offer,
            commands,
        })
    }

    fn note(&mut self, line: usize, problem: String) {
        self.notes.push(FrontMatterError::new(line, problem));
    }

    fn note_unknown_keys(&mut self) {
        let (known, passed_over): (&[&str], &[&str]) = match self.file.dialect {
            ManifestDialect::BuiltIn | ManifestDialect::Own => (&KEYS, &[]),
            ManifestDialect::Claude => (&CLAUDE_KEYS, &PASSED_OVER),
        };
        let is_known = |key: &str| known.contains(&key) || passed_over.contains(&key);
        let unknown = self.front.fields().iter().filter(|field| !is_known(&field.key));
        let note = |key: &str| format!("there is no key `{key}`{}", meant(key, known.iter().copied()));
        self.notes = unknown.map(|field| FrontMatterError::new(field.line, note(&field.key))).collect();
    }

    /// The line of a key; if the key is missing, the line of the block.
    fn line(&self, key: &str) -> usize {
        self.front.field(key).map_or(1, |field| field.line)
    }

    fn id(&self) -> Result<String, FrontMatterError> {
        let key = match self.file.dialect {
            ManifestDialect::BuiltIn | ManifestDialect::Own => "id",
            ManifestDialect::Claude => "name",
        };
        let id = self.front.text(key)?.unwrap_or(self.file.stem);
        match is_name(id) && !id.contains(':') {
            true => Ok(id.to_owned()),
            false => Err(FrontMatterError::new(
                self.line(key),
                "its id can't be typed: letters, digits, `-`, `_` and `.` make one, 64 at most",
            )),
        }
    }

    fn name(&self, id: &str) -> Result<String, FrontMatterError> {
        let said = match self.file.dialect {
            ManifestDialect::BuiltIn | ManifestDialect::Own => self.front.text("name")?,
            ManifestDialect::Claude => None,
        };
        let of_id = || {
            let mut letters = id.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            first + letters.as_str()
        };
        let of_base = || self.base.map(|base| base.name.to_string());
        Ok(said.map(short_line).or_else(of_base).unwrap_or_else(of_id))
    }

    fn description(&self) -> Result<String, FrontMatterError> {
        let said = self.front.text("description")?.map(short_line).filter(|line| !line.is_empty());
        let known = said.or_else(|| self.base.map(|base| base.description.to_string()));
        known.ok_or_else(|| self.front.missing("description", "what the agent is for"))
    }

    fn prompt(&self) -> Result<Arc<str>, FrontMatterError> {
        let body = self.front.body.trim();
        match (body.is_empty(), self.base) {
            (false, _) => Ok(body.into()),
            (true, Some(base)) => Ok(base.system_prompt.clone()),
            (true, None) => {
                let last = self.file.text.lines().count().max(1);
                Err(FrontMatterError::new(last, "the prompt is missing: write it after the front matter"))
            }
        }
    }

    /// A file can't change the mode of a built-in agent.
    fn mode(&self) -> Result<AgentMode, FrontMatterError> {
        let line = self.line("mode");
        let said = match (self.file.dialect, self.front.text("mode")?) {
            (ManifestDialect::Claude, _) => Some(AgentMode::Subagent),
            (_, Some("primary")) => Some(AgentMode::Primary),
            (_, Some("subagent")) => Some(AgentMode::Subagent),
            (_, Some("all")) => Some(AgentMode::All),
            (ManifestDialect::BuiltIn, Some("hidden")) => Some(AgentMode::Hidden),
            (_, Some(other)) => {
                let near = meant(other, ["primary", "subagent", "all"]);
                let problem = format!("`mode` must be primary, subagent or all, not `{other}`{near}");
                return Err(FrontMatterError::new(line, problem));
            }
            (_, None) => None,
        };
        let Some(base) = self.base else {
            return said.ok_or_else(|| self.front.missing("mode", "primary, subagent or all"));
        };
        let stays = |mode: AgentMode| match base.mode {
            AgentMode::Primary => matches!(mode, AgentMode::Primary | AgentMode::All),
            AgentMode::Subagent => matches!(mode, AgentMode::Subagent | AgentMode::All),
            AgentMode::All | AgentMode::Hidden => mode == base.mode,
        };
        match said.unwrap_or(base.mode) {
            mode if stays(mode) => Ok(mode),
            _ => Err(FrontMatterError::new(
                line,
                format!("`{}` is built in and used another way; choose another id", base.id),
            )),
        }
    }

    /// A file can't allow what the built-in agent forbids.
    fn commands(&self) -> Result<Commands, FrontMatterError> {
        let plans = match self.file.dialect {
            ManifestDialect::BuiltIn | ManifestDialect::Own => false,
            ManifestDialect::Claude => self.front.text("permissionMode")? == Some("plan"),
        };
        let reads = self.flag("read_only")? == Some(true) || plans;
        match self.base.map(|base| base.commands) {
            Some(Commands::OnlyReading) => Ok(Commands::OnlyReading),
            Some(Commands::Any) | None if reads => Ok(Commands::OnlyReading),
            Some(Commands::Any) | None => Ok(Commands::Any),
        }
    }

    fn offer(&mut self, commands: Commands) -> Result<ToolOffer, FrontMatterError> {
        let all = match commands {
            Commands::Any => ToolOffer::everything(),
            Commands::OnlyReading => ToolOffer::without_mutations(),
        };
        Ok(match (self.tools()?, self.base) {
            (Some(named), _) => all.named(named),
            (None, Some(base)) => all.named_like(&base.offer),
            (None, None) => all,
        })
    }

    fn permissions(&self, commands: Commands) -> Result<Vec<ManifestRule>, FrontMatterError> {
        let of_base = self.base.into_iter().flat_map(|base| &base.permissions);
        let mut all: Vec<ManifestRule> =
            of_base.filter(|rule| rule.firmness == Firmness::Pinned).cloned().collect();
        // Denied here as well as left out of the offer: a model can call a tool that it was not offered.
        let nothing = pinned("edit", "*", Action::Deny);
        if commands == Commands::OnlyReading && !all.contains(&nothing) {
            all.push(nothing);
        }
        if let Some(node) = self.front.node("permissions")? {
            all.extend(rules::rules(&node)?);
        }
        Ok(all)
    }

    /// A model name of another program's list names none of our models.
    fn model(&self) -> Result<Option<ModelRef>, FrontMatterError> {
        let Some(model) = self.front.text("model")? else { return Ok(None) };
        match (model.split_once('/'), self.file.dialect) {
            (Some((provider, model)), _) if !provider.is_empty() && !model.is_empty() => {
                Ok(Some(ModelRef::new(provider, model)))
            }
            (_, ManifestDialect::Claude) => Ok(None),
            (_, ManifestDialect::BuiltIn | ManifestDialect::Own) => Err(FrontMatterError::new(
                self.line("model"),
                format!("a model is written PROVIDER/NAME, not `{model}`"),
            )),
        }
    }

    fn thought(&mut self) -> Result<Option<ThoughtLevel>, FrontMatterError> {
        let Some(effort) = self.front.text("effort")?.map(str::to_owned) else { return Ok(None) };
        if let Some(level) = ThoughtLevel::parse(&effort) {
            return Ok(Some(level));
        }
        let known = ThoughtLevel::ALL.map(ThoughtLevel::as_str);
        let problem = format!("`effort` must be one of {}, not `{effort}`", known.join(", "));
        let line = self.line("effort");
        match self.file.dialect {
            ManifestDialect::Claude => {
                self.note(line, problem);
                Ok(None)
            }
            ManifestDialect::BuiltIn | ManifestDialect::Own => Err(FrontMatterError::new(line, problem)),
        }
    }

    fn max_steps(&self) -> Result<Option<u32>, FrontMatterError> {
        let key = match self.file.dialect {
            ManifestDialect::BuiltIn | ManifestDialect::Own => "max_steps",
            ManifestDialect::Claude => "maxTurns",
        };
        let Some(steps) = self.front.text(key)? else { return Ok(None) };
        match steps.parse::<u32>() {
            Ok(steps) if steps > 0 => Ok(Some(steps)),
            Ok(_) | Err(_) => Err(FrontMatterError::new(
                self.line(key),
                format!("`{key}` must be a whole number of at least 1, not `{steps}`"),
            )),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, FrontMatterError> {
        match self.front.text(key)? {
            None => Ok(None),
            Some("true" | "yes") => Ok(Some(true)),
            Some("false" | "no") => Ok(Some(false)),
            Some(other) => Err(FrontMatterError::new(
                self.line(key),
                format!("`{key}` must be true or false, not `{other}`"),
            )),
        }
    }

    /// A schema in the file, or the name of a file beside it that holds one.
    fn output_schema(&self) -> Result<Option<Arc<Value>>, FrontMatterError> {
        let Some(node) = self.front.node("output_schema")? else { return Ok(None) };
        let wrong = |problem: String| FrontMatterError::new(node.line, problem);
        let schema = match &node.value {
            NodeValue::Map(_) => node.to_json(),
            NodeValue::Plain(path) | NodeValue::Quoted(path) if !path.is_empty() => {
                let text = (self.file.beside)(path).map_err(|reason| wrong(format!("`{path}`: {reason}")))?;
                serde_json::from_str(&text).map_err(|error| wrong(format!("`{path}`: {error}")))?
            }
            NodeValue::Plain(_) | NodeValue::Quoted(_) | NodeValue::List(_) => Value::Null,
        };
        if !schema.is_object() {
            return Err(wrong(
                "`output_schema` must be a JSON Schema, or the name of a file with one".into(),
            ));
        }
        // A schema that we can't check is refused now, while its author reads the error and can correct it.
        Schema::read(&schema).map_err(|problem| wrong(format!("`output_schema`: {problem}")))?;
        Ok(Some(Arc::new(schema)))
    }
}

/// An unknown key below another.
fn unknown_key(key: &str, node: &FrontNode, known: &[&str]) -> FrontMatterError {
    let near = meant(key, known.iter().copied());
    FrontMatterError::new(node.line, format!("there is no key `{key}` here{near}"))
}

#[cfg(test)]
mod tests;
