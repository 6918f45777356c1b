//! `attache acp` in a home of its own with a scripted model, driven as an editor would. Measures nothing
//! itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::aims::{
    DELTA, LARGE_ANSWER_DELTA, LARGE_ANSWER_DELTAS, LONG_SESSION_DELTAS, LONG_STREAM, PARTS_PER_TURN,
    SHORT_STREAM, TOOL_ROUNDS, WRITTEN_DELTAS,
};
use super::driven::{Driven, Exchange, Until};
use super::tools::{NEEDLE, SAMPLE};
use super::usage::Usage;

/// Settings, database and workspace of the agents that are measured.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    binary: PathBuf,
}

/// One running agent, initialized.
#[derive(Debug)]
pub(crate) struct Agent {
    process: Driven,
    workspace: PathBuf,
    requests: u64,
}

/// A prompt the script knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prompt {
    OneToken,
    Deltas(u64),
    /// The same, and then the model goes silent with the turn still open.
    DeltasThenSilence(u64),
    ToolRounds,
    Parts,
    /// An answer as long as a large file.
    LargeAnswer,
    /// One of some pages.
    LongAnswer,
    Glob,
    Grep,
    Read,
    /// There and back: the file is as it was.
    Edit,
    /// One that does nothing.
    Command,
    /// How the servers of MCP are.
    Servers,
}

impl Prompt {
    pub(crate) fn text(self) -> String {
        match self {
            Self::OneToken => "one token".to_owned(),
            Self::Deltas(count) => format!("{count} deltas"),
            Self::DeltasThenSilence(count) => format!("{count} deltas, then silence"),
            Self::ToolRounds => "rounds of tools".to_owned(),
            Self::Parts => "many parts".to_owned(),
            Self::LargeAnswer => "a large answer".to_owned(),
            Self::LongAnswer => "a long answer".to_owned(),
            Self::Glob => "list files".to_owned(),
            Self::Grep => "search files".to_owned(),
            Self::Read => "read a file".to_owned(),
            Self::Edit => "edit a file".to_owned(),
            Self::Command => "run a command".to_owned(),
            Self::Servers => "/mcp".to_owned(),
        }
    }
}

impl Home {
    /// Below the build directory: the same disk as the repository, where a temporary one may be memory.
    pub(crate) fn new(binary: &Path, target: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(target)?;
        let home = Self { directory, binary: binary.to_path_buf() };
        fs::create_dir(home.path("home"))?;
        fs::create_dir(home.path("work"))?;
        fs::write(home.path("work/a.txt"), "a line to read\n")?;
        fs::write(home.path("home/bench.script"), script())?;
        fs::write(
            home.path("home/config.toml"),
            "model = \"bench/default\"\n\n[providers.bench]\ndialect = \"script\"\nscript = \"bench.script\"\n",
        )?;
        Ok(home)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("home/sessions.db")
    }

    pub(crate) fn start(&self) -> Result<Agent> {
        let errors = fs::File::options().create(true).append(true).open(self.path("stderr.log"))?;
        let mut command = Command::new(&self.binary);
        // What a developer has configured must not decide a figure.
        command.arg("acp").env_clear().env("ATTACHE_HOME", self.path("home")).stderr(errors);
        if let Some(search) = std::env::var_os("PATH") {
            command.env("PATH", search);
        }
        Agent::of(&mut command, self.path("work")).with_context(|| self.errors())
    }

    /// Instructions at three levels, and so many skills in the workspace.
    pub(crate) fn write_skills(&self, count: usize) -> Result<()> {
        let work = self.path("work");
        for directory in [self.path("home"), work.clone(), work.join("app")] {
            fs::create_dir_all(&directory)?;
            fs::write(directory.join("AGENTS.md"), "Use tabs.\n".repeat(50))?;
        }
        for number in 0..count {
            let directory = work.join(format!(".agents/skills/skill-{number}"));
            fs::create_dir_all(&directory)?;
            let text = format!(
                "---\nname: skill-{number}\ndescription: Does {number}.\n---\n{}",
                "A step.\n".repeat(200)
            );
            fs::write(directory.join("SKILL.md"), text)?;
        }
        Ok(())
    }

    /// What the agents said besides the protocol.
    pub(crate) fn errors(&self) -> String {
        let text = fs::read_to_string(self.path("stderr.log")).unwrap_or_default();
        format!("stderr of the agent: {:?}", text.lines().last().unwrap_or("(nothing)"))
    }
}

impl Agent {
    /// Any program that speaks the protocol.
    pub(crate) fn of(command: &mut Command, workspace: PathBuf) -> Result<Self> {
        let mut agent = Self { process: Driven::start(command)?, workspace, requests: 0 };
        let parameters = json!({"protocolVersion": 1, "clientCapabilities": {}});
        agent.request("initialize", &parameters)?;
        Ok(agent)
    }

    pub(crate) fn process(&self) -> &Driven {
        &self.process
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        self.process.usage()
    }

    pub(crate) fn new_session(&mut self) -> Result<(String, Exchange)> {
        self.new_session_with(&[])
    }

    pub(crate) fn new_session_with(&mut self, servers: &[Value]) -> Result<(String, Exchange)> {
        let parameters = json!({"cwd": self.workspace, "mcpServers": servers});
        let exchange = self.request("session/new", &parameters)?;
        let answer: Value = serde_json::from_slice(&exchange.last_line)?;
        let session = answer["result"]["sessionId"].as_str().context("no sessionId")?;
        Ok((session.to_owned(), exchange))
    }

    pub(crate) fn load_session(&mut self, session: &str, record: &mut Vec<u8>) -> Result<Exchange> {
        let parameters = json!({"sessionId": session, "cwd": self.workspace, "mcpServers": []});
        let (line, mark) = self.line("session/load", &parameters);
        answered(self.process.exchange_recorded(&line, Until::Line(&mark), record)?)
    }

    pub(crate) fn prompt(&mut self, session: &str, prompt: Prompt) -> Result<Exchange> {
        self.request("session/prompt", &prompt_parameters(session, prompt))
    }

    /// For turns that are not timed: keeps all that came.
    pub(crate) fn prompt_recorded(
        &mut self,
        session: &str,
        prompt: Prompt,
        record: &mut Vec<u8>,
    ) -> Result<Exchange> {
        let (line, mark) = self.line("session/prompt", &prompt_parameters(session, prompt));
        answered(self.process.exchange_recorded(&line, Until::Line(&mark), record)?)
    }

    /// Comes back after so many updates; the turn stays open.
    pub(crate) fn prompt_unanswered(&mut self, session: &str, prompt: Prompt, updates: u64) -> Result<()> {
        let (line, _) = self.line("session/prompt", &prompt_parameters(session, prompt));
        self.process.exchange(&line, Until::Count(updates)).map(drop)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.process.finish()
    }

    /// As `finish`; gives the bytes written until the very end.
    pub(crate) fn finish_measured(self) -> Result<u64> {
        self.process.finish_measured()
    }

    pub(crate) fn kill(self) -> Result<()> {
        self.process.kill()
    }

    /// Lets it end; how it does is its own business.
    pub(crate) fn end(self) -> Result<()> {
        self.process.end()
    }

    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Exchange> {
        let (line, mark) = self.line(method, parameters);
        answered(self.process.exchange(&line, Until::Line(&mark))?)
    }

    /// The request, and what only its answer can hold.
    fn line(&mut self, method: &str, parameters: &Value) -> (Vec<u8>, Vec<u8>) {
        self.requests += 1;
        let id = format!("bench-{}-", self.requests);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        ((message.to_string() + "\n").into_bytes(), id.into_bytes())
    }
}

fn prompt_parameters(session: &str, prompt: Prompt) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt.text()}]})
}

fn answered(exchange: Exchange) -> Result<Exchange> {
    match memchr::memmem::find(&exchange.last_line, b"\"result\":") {
        Some(_) => Ok(exchange),
        None => bail!("answered with an error: {}", String::from_utf8_lossy(&exchange.last_line).trim_end()),
    }
}

fn script() -> String {
    let mut text = format!("on \"{}\"\n  text \"ok\"\n", Prompt::OneToken.text());
    for count in [SHORT_STREAM.deltas, WRITTEN_DELTAS, LONG_STREAM.deltas] {
        text += &format!("on \"{}\"\n  stream {count} \"{DELTA}\"\n", Prompt::Deltas(count).text());
        text += &format!("on \"{}\"\n", Prompt::DeltasThenSilence(count).text());
        text += &format!("  stream {count} \"{DELTA}\"\n  delay 60m\n");
    }
    text += &format!("on \"{}\"\n", Prompt::ToolRounds.text());
    for round in 1..=TOOL_ROUNDS {
        // A different limit each time: the same call over and over would be stopped as a loop.
        text += &format!("  call read {{\"path\":\"a.txt\",\"limit\":{round}}}\n  ---\n");
    }
    text += "  text \"read\"\n";
    text += &tool_calls();
    text += &format!("on \"{}\"\n", Prompt::LargeAnswer.text());
    text += &format!("  stream {LARGE_ANSWER_DELTAS} \"{LARGE_ANSWER_DELTA}\"\n");
    text += &format!("on \"{}\"\n", Prompt::LongAnswer.text());
    text += &format!("  stream {LONG_SESSION_DELTAS} \"{LARGE_ANSWER_DELTA}\"\n");
    text += &format!("on \"{}\"\n", Prompt::Parts.text());
    for pair in 1..=PARTS_PER_TURN / 2 {
        text += &format!(
            "  reasoning \"thought {pair} about what to say next\"\n  text \"sentence {pair} of an answer\"\n"
        );
    }
    text
}

fn tool_calls() -> String {
    let edit = |old: &str, new: &str| {
        format!(
            "  call edit {{\"path\":\"{SAMPLE}\",\"old_string\":\"{old}\",\"new_string\":\"{new}\"}}\n  ---\n"
        )
    };
    let (there, back) = (edit("unique_word", "other_word"), edit("other_word", "unique_word"));
    [
        (Prompt::Glob, "  call glob {\"pattern\":\"**\"}\n  ---\n".to_owned()),
        (Prompt::Grep, format!("  call grep {{\"pattern\":\"{NEEDLE}\"}}\n  ---\n")),
        (Prompt::Read, format!("  call read {{\"path\":\"{SAMPLE}\"}}\n  ---\n")),
        (Prompt::Edit, there + &back),
        (Prompt::Command, "  call bash {\"command\":\"true\"}\n  ---\n".to_owned()),
    ]
    .into_iter()
    .map(|(prompt, calls)| format!("on \"{}\"\n{calls}  text \"done\"\n", prompt.text()))
    .collect()
}
