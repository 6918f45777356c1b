//! Reads scenarios: Markdown to directives. Every mistake is named by file and line; nothing is played here.

use std::time::Duration;

use attache_acp::ClientFs;
use attache_core::hooks::{EventName, Hook, HookCommand, HookHold, HookMatcher, HookOwner};
use attache_core::limits::HOOK_TIME;
use attache_core::ports::mcp::{ArgumentNeed, PromptArgument, ServerPrompt};
use attache_core::watchdog::{Action, Approval, Rule};
use attache_models::ScriptModel;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::script::Script;

#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) title: String,
    /// Of its heading, from 1.
    pub(crate) line: usize,
    pub(crate) lines: Vec<Line>,
    pub(crate) options: Options,
    pub(crate) script: String,
}

#[derive(Debug)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// Lines of the file it takes, with its continuations.
    pub(crate) count: usize,
    pub(crate) directive: Directive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Client,
    Second,
}

#[derive(Debug)]
pub(crate) enum Directive {
    Make {
        path: String,
        content: String,
    },
    /// `None`: it is not there.
    Check {
        path: String,
        content: Option<String>,
    },
    Say {
        who: Who,
        saying: Saying,
    },
    Model,
    WaitFor {
        who: Who,
        item: String,
    },
    Pause(Duration),
    Host(HostEvent),
    Expect {
        who: Who,
        items: String,
    },
    /// What the model was sent.
    ExpectSent {
        items: String,
    },
    Setting,
}

#[derive(Debug)]
pub(crate) enum Saying {
    Request {
        method: String,
        params: Value,
        times: usize,
    },
    Prompt {
        params: Value,
        label: Option<String>,
    },
    Cancel(Value),
    Permission(Permission),
    Line(String),
    /// Goes away without a word.
    Leave,
}

#[derive(Clone, Debug)]
pub(crate) enum Permission {
    Choose(String),
    Cancelled,
    /// An option that was not offered.
    Unknown,
    Error,
    /// Exactly this result.
    Result(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEvent {
    /// Ends in order, as when its editor leaves; a new one takes its place.
    Restart,
    /// Ends in the middle of whatever it does; a new one takes its place.
    Kill,
}

/// What differs from an ordinary host and client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) max_steps: Option<u32>,
    pub(crate) drop_thoughts: bool,
    pub(crate) notices: bool,
    /// The host makes room in conversations, and the client wants to see how.
    pub(crate) compaction: bool,
    pub(crate) compaction_updates: bool,
    pub(crate) client_fs: ClientFs,
    pub(crate) headless: bool,
    /// Capabilities of the client, as JSON.
    pub(crate) capabilities: Vec<(String, Value)>,
    pub(crate) approval: Approval,
    /// Of the configuration.
    pub(crate) rules: Vec<Rule>,
    /// The same.
    pub(crate) hooks: Vec<Hook>,
    /// Of the agent that is used when none is chosen.
    pub(crate) pinned: Vec<Rule>,
    /// Files of agents: their names and texts.
    pub(crate) agents: Vec<(String, String)>,
    /// The user said that nothing shall hold commands.
    pub(crate) sandbox_off: bool,
    /// Skills and commands of user and project are looked for.
    pub(crate) knowledge: bool,
    /// What a search service of the host answers; without it there is none.
    pub(crate) search: Option<Value>,
    /// What a web server of this machine says, `$PAGE` is its address.
    pub(crate) page: Option<String>,
    /// The client's first words are in the transcript.
    pub(crate) silent_start: bool,
    /// What the small model says, and its header if it has one.
    pub(crate) small: Vec<String>,
    /// What a server of every session offers as commands.
    pub(crate) prompts: Vec<ServerPrompt>,
    /// Header lines of the script.
    pub(crate) models: Vec<(usize, String)>,
    pub(crate) shown: Vec<String>,
}

/// How an expectation of what the model was sent begins.
pub(crate) const MODEL: &str = "model: ";

const SHOWABLE: [&str; 6] = ["usage", "titles", "ids", "raw", "options", "commands"];

/// Reads a file; the error is `file:line: reason`.
pub(crate) fn scenarios(name: &str, text: &str) -> Result<Vec<Scenario>, String> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let fail = |reason: String| format!("{name}:{number}: {reason}");
        if let Some(title) = line.strip_prefix("## ").filter(|_| !inside) {
            scenarios.push(Scenario {
                title: title.to_owned(),
                line: number,
                lines: Vec::new(),
                options: Options::default(),
                script: String::new(),
            });
        } else if line.starts_with("```") {
            inside = !inside && line == "```text";
        } else if inside && !line.trim().is_empty() && !line.starts_with('#') {
            let scenario = scenarios.last_mut().ok_or_else(|| fail("a transcript without a title".into()))?;
            match line.starts_with(' ') {
                true => scenario.raw_continue(line).map_err(fail)?,
                false => scenario.lines.push(Line { number, count: 1, directive: Directive::Setting }),
            }
        }
    }
    let source: Vec<&str> = text.lines().collect();
    for scenario in &mut scenarios {
        scenario.understand(&source).map_err(|(line, reason)| format!("{name}:{line}: {reason}"))?;
    }
    scenarios.retain(|scenario| !scenario.lines.is_empty());
    Ok(scenarios)
}

type Mistake = (usize, String);

impl Scenario {
    fn raw_continue(&mut self, line: &str) -> Result<(), String> {
        match self.lines.last_mut() {
            Some(last) => {
                last.count += 1;
                Ok(())
            }
            None => Err(format!("nothing to continue with {:?}", line.trim())),
        }
    }

    fn understand(&mut self, source: &[&str]) -> Result<(), Mistake> {
        let mut script = Script::default();
        for line in &mut self.lines {
            let text = source[line.number - 1..][..line.count].iter().map(|text| text.trim());
            let text = text.collect::<Vec<_>>().join(" ");
            let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
            let fail = |reason: String| (line.number, reason);
            line.directive = match word {
                "with" => {
                    self.options.set(line.number, rest.trim()).map_err(fail)?;
                    Directive::Setting
                }
                "model" => {
                    script.say(line.number, rest.trim())?;
                    Directive::Model
                }
                "show" => {
                    self.options.show(rest.trim()).map_err(fail)?;
                    Directive::Setting
                }
                _ => directive(word, rest.trim()).map_err(fail)?,
            };
            if let Directive::Say { saying, .. } = &line.directive {
                script.heard(line.number, saying);
            }
        }
        let (text, origins) = script.text(&self.options.models);
        if let Err(error) = ScriptModel::parse("script", &text) {
            let line = origins.get(error.line - 1).copied().unwrap_or(self.line);
            return Err((line, format!("expected {}, found {}", error.expected, error.found)));
        }
        self.script = text;
        Ok(())
    }
}

impl Options {
    fn set(&mut self, line: usize, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        match (name, value) {
            ("max_steps", steps) => {
                self.max_steps = Some(steps.parse().map_err(|_| format!("`{steps}` is no number"))?);
            }
            ("thoughts", "dropped") => self.drop_thoughts = true,
            ("notices", "") => self.notices = true,
            ("compaction", "") => self.compaction = true,
            ("compaction", "updates") => (self.compaction, self.compaction_updates) = (true, true),
            ("client_fs", "never") => self.client_fs = ClientFs::Never,
            ("headless", "") => self.headless = true,
            ("texts", "") => {
                self.can("fs", serde_json::json!({ "readTextFile": true, "writeTextFile": true }));
            }
            ("terminals", "") => self.can("terminal", Value::Bool(true)),
            ("forms", "") => self.can("elicitation", serde_json::json!({ "form": {} })),
            ("nothing", "") => self.silent_start = true,
            ("approval", approval) => {
                let unknown = || format!("there is no approval `{approval}`");
                self.approval = Approval::parse(approval).ok_or_else(unknown)?;
            }
            ("rule", rule) => self.rules.push(read_rule(rule)?),
            ("hook", hook) => self.hooks.push(read_hook(hook)?),
            ("pinned", rule) => self.pinned.push(read_rule(rule)?),
            ("agent", file) => {
                let (name, text) = file.split_once(' ').unwrap_or((file, ""));
                let wrong = |error| format!("the text of an agent must be a string: {error}");
                self.agents.push((name.to_owned(), serde_json::from_str(text).map_err(wrong)?));
            }
            ("prompt", prompt) => self.prompts.push(read_prompt(prompt)),
            ("small", words) => self.small.push(words.to_owned()),
            ("search", answer) => {
                let wrong = |error| format!("what a search answers must be JSON: {error}");
                self.search = Some(serde_json::from_str(answer).map_err(wrong)?);
            }
            ("page", text) => {
                let wrong = |error| format!("a page must be a string: {error}");
                self.page = Some(serde_json::from_str(text).map_err(wrong)?);
            }
            ("knowledge", "") => self.knowledge = true,
            ("sandbox", "off") => self.sandbox_off = true,
            ("model", header) => self.models.push((line, format!("model {header}"))),
            _ => return Err(format!("there is no option `{option}`")),
        }
        Ok(())
    }

    fn can(&mut self, capability: &str, value: Value) {
        self.capabilities.push((capability.to_owned(), value));
    }

    /// The script of the small model, which answers everything alike.
    pub(crate) fn small_script(&self) -> Option<String> {
        let (headers, words): (Vec<&String>, _) =
            self.small.iter().partition(|line| line.starts_with("model "));
        let lines = headers
            .into_iter()
            .map(String::as_str)
            .chain(["on *"])
            .chain(words.into_iter().map(String::as_str));
        (!self.small.is_empty()).then(|| lines.collect::<Vec<_>>().join("\n"))
    }

    /// The name in its header.
    pub(crate) fn small_model(&self) -> Option<&str> {
        let named = self.small.iter().find_map(|line| line.strip_prefix("model ")?.split(' ').next());
        named.or((!self.small.is_empty()).then_some(ScriptModel::DEFAULT_MODEL))
    }

    fn show(&mut self, names: &str) -> Result<(), String> {
        for name in names.split_whitespace() {
            if !SHOWABLE.contains(&name) {
                return Err(format!("there is nothing called `{name}` to show"));
            }
            self.shown.push(name.to_owned());
        }
        Ok(())
    }
}

/// `SERVER:PROMPT ARGUMENT [ARGUMENT]`, the second one not required.
fn read_prompt(text: &str) -> ServerPrompt {
    let mut words = text.split_whitespace();
    let command = words.next().unwrap_or_default();
    let argument = |word: &str| match word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
        Some(name) => PromptArgument { name: name.to_owned(), need: ArgumentNeed::Optional },
        None => PromptArgument { name: word.to_owned(), need: ArgumentNeed::Required },
    };
    let description = format!("says {command}").into();
    ServerPrompt { command: command.into(), description, arguments: words.map(argument).collect() }
}

/// `deny edit src/*`
/// `EVENT COMMAND`, or `EVENT "MATCHER" COMMAND`. Nothing holds commands in scenarios.
fn read_hook(text: &str) -> Result<Hook, String> {
    let wrong = || format!("`{text}` is no hook: EVENT [\"MATCHER\"] COMMAND");
    let (event, rest) = text.split_once(' ').ok_or_else(wrong)?;
    let (matcher, command) = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((matcher, command)) => (matcher, command.trim_start()),
        None => ("", rest),
    };
    Ok(Hook {
        on: EventName::parse(event).ok_or_else(wrong)?,
        matcher: HookMatcher::parse(matcher).map_err(|bad| bad.to_string())?,
        command: HookCommand::Shell(command.to_owned()),
        time: HOOK_TIME,
        hold: HookHold::Off,
        owner: HookOwner::User,
    })
}

fn read_rule(text: &str) -> Result<Rule, String> {
    let mut words = text.splitn(3, ' ');
    let (Some(action), Some(permission), Some(pattern)) = (words.next(), words.next(), words.next()) else {
        return Err(format!("`{text}` is no rule: ACTION PERMISSION PATTERN"));
    };
    let action = Action::parse(action).ok_or_else(|| format!("there is no action `{action}`"))?;
    Ok(Rule::new(permission, pattern, action))
}

fn directive(word: &str, rest: &str) -> Result<Directive, String> {
    match word {
        "files" => files(rest),
        "client" => Ok(Directive::Say { who: Who::Client, saying: saying(rest)? }),
        "second" => Ok(Directive::Say { who: Who::Second, saying: saying(rest)? }),
        "wait" => match duration(rest) {
            Some(duration) => Ok(Directive::Pause(duration)),
            None => {
                let (who, item) = speaker(rest);
                Ok(Directive::WaitFor { who, item })
            }
        },
        "host" => match rest {
            "restarts" => Ok(Directive::Host(HostEvent::Restart)),
            "is killed" => Ok(Directive::Host(HostEvent::Kill)),
            _ => Err(format!("a host does not `{rest}`")),
        },
        "=>" if rest.starts_with(MODEL) => {
            Ok(Directive::ExpectSent { items: rest[MODEL.len()..].to_owned() })
        }
        "=>" => {
            let (who, items) = speaker(rest);
            Ok(Directive::Expect { who, items })
        }
        _ => Err(format!("there is no directive `{word}`")),
    }
}

fn speaker(rest: &str) -> (Who, String) {
    match rest.strip_prefix("second: ") {
        Some(rest) => (Who::Second, rest.to_owned()),
        None => (Who::Client, rest.to_owned()),
    }
}

fn duration(text: &str) -> Option<Duration> {
    text.strip_suffix("ms").and_then(|number| number.parse().ok()).map(Duration::from_millis)
}

fn files(rest: &str) -> Result<Directive, String> {
    let (path, content) = rest.split_once(' ').ok_or("a file needs its content")?;
    let (path, content) = (path.to_owned(), content.trim());
    if let Some(count) = content.strip_prefix("of ").and_then(|rest| rest.strip_suffix(" lines")) {
        let count: usize = count.parse().map_err(|_| format!("`{count}` is no number"))?;
        let content = (1..=count).map(|number| format!("line {number}\n")).collect();
        return Ok(Directive::Make { path, content });
    }
    if content == "is missing" {
        return Ok(Directive::Check { path, content: None });
    }
    let text = |text: &str| serde_json::from_str(text).map_err(|error| format!("{text}: {error}"));
    match content.strip_prefix("is ") {
        Some(content) => Ok(Directive::Check { path, content: Some(text(content)?) }),
        None => Ok(Directive::Make { path, content: text(content)? }),
    }
}

fn saying(rest: &str) -> Result<Saying, String> {
    let (method, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let arguments = arguments.trim();
    match method {
        "permission" => permission(arguments).map(Saying::Permission),
        "result" => match serde_json::from_str(arguments) {
            Ok(result) => Ok(Saying::Permission(Permission::Result(result))),
            Err(error) => Err(format!("{arguments}: {error}")),
        },
        "option" => Ok(Saying::Permission(Permission::Result(
            serde_json::json!({ "outcome": { "outcome": "selected", "optionId": arguments } }),
        ))),
        "line" => Ok(Saying::Line(arguments.to_owned())),
        "leaves" => Ok(Saying::Leave),
        "session/cancel" => Ok(Saying::Cancel(Arguments::read(arguments)?.params("session/cancel")?)),
        "session/prompt" => prompt(Arguments::read(arguments)?),
        _ if method == "initialize"
            || method == "authenticate"
            || method == "logout"
            || method.starts_with("session/")
            || method.starts_with('_') =>
        {
            let mut arguments = Arguments::read(arguments)?;
            let times = arguments.take_times()?;
            Ok(Saying::Request { method: method.to_owned(), params: arguments.params(method)?, times })
        }
        _ => Err(format!("there is no request `{method}`")),
    }
}

fn permission(answer: &str) -> Result<Permission, String> {
    match answer {
        "allow_once" | "allow_always" | "reject_once" | "reject_always" => {
            Ok(Permission::Choose(answer.to_owned()))
        }
        "cancelled" => Ok(Permission::Cancelled),
        "unknown" => Ok(Permission::Unknown),
        "error" => Ok(Permission::Error),
        _ => Err(format!("there is no answer `{answer}`")),
    }
}

fn prompt(mut arguments: Arguments) -> Result<Saying, String> {
    let label = arguments.label.take();
    let written = arguments.json.take().ok_or("a prompt needs its words")?;
    let mut params = match written {
        Value::String(text) => serde_json::json!({ "prompt": [{ "type": "text", "text": text }] }),
        blocks @ Value::Array(_) => serde_json::json!({ "prompt": blocks }),
        params => params,
    };
    if let Some(label) = &label {
        params["_meta"]["attache/messageId"] = serde_json::json!(label);
    }
    arguments.json = Some(params);
    Ok(Saying::Prompt { params: arguments.params("session/prompt")?, label })
}

/// What the model gets to see as the words of a prompt.
pub(crate) fn words_of(params: &Value) -> String {
    let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str()).collect()
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
