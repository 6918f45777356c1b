//! The agents of Python that are measured, and what serves them: attache, or a package of PyPI that `peers/`
//! pins. Measures nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::agent::{Agent, Home};
use crate::aims::{FOREIGN_DELTAS, FOREIGN_GRAPH_DELTAS};
use crate::driven::{Driven, Until};

/// As `peers/python-agents/bench.py` says it.
pub(crate) const DELTA: &str = "lorem ipsum ";

/// The last line of a run on the pipe of an agent's process.
pub(crate) const PIPE_MARK: Until<'static> = Until::Line(b"\"ended\"");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    PydanticAi,
    LangGraph,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedBy {
    Attache,
    Rival,
}

impl Framework {
    pub(crate) const ALL: [Self; 2] = [Self::PydanticAi, Self::LangGraph];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PydanticAi => "pydantic-ai",
            Self::LangGraph => "LangGraph",
        }
    }

    pub(crate) fn rival(self) -> &'static str {
        match self {
            Self::PydanticAi => "pydantic-acp",
            Self::LangGraph => "langchain-acp",
        }
    }

    /// In one answer.
    pub(crate) fn deltas(self) -> u64 {
        match self {
            Self::PydanticAi => FOREIGN_DELTAS,
            Self::LangGraph => FOREIGN_GRAPH_DELTAS,
        }
    }

    /// The function of `bench.py` that makes the agent.
    fn module(self) -> &'static str {
        match self {
            Self::PydanticAi => "bench:pydantic",
            Self::LangGraph => "bench:graph",
        }
    }
}

/// Where the packages are.
#[derive(Debug)]
pub(crate) struct Packages(PathBuf);

impl Packages {
    /// `None` where they are not installed.
    pub(crate) fn find(target: &Path) -> Option<Self> {
        let folder = target.join("peers/python-agents");
        let is_there = |name: &str| folder.join("python").join(name).is_dir();
        let all = folder.join("bench.py").is_file() && is_there("pydantic_acp") && is_there("langchain_acp");
        all.then_some(Self(folder))
    }

    fn packages(&self) -> PathBuf {
        self.0.join("python")
    }

    /// Of attache, with the agent as the one of every session.
    pub(crate) fn configuration(&self, framework: Framework) -> String {
        format!(
            "agent = \"measured\"\n\n[agents.measured]\nbackend = \"python\"\nmodule = \"{}\"\ndirectory = {}\n\
             python = \"python3\"\nenv = {{ PYTHONPATH = {} }}\n",
            framework.module(),
            json!(self.0),
            json!(self.packages()),
        )
    }

    pub(crate) fn start(&self, home: &Home, framework: Framework, by: ServedBy) -> Result<Agent> {
        match by {
            ServedBy::Attache => home.start(),
            ServedBy::Rival => {
                let mut command = Command::new("python3");
                command.arg(self.0.join("bench.py")).arg(framework.rival());
                clean(&mut command).env("PYTHONPATH", self.packages()).env("HOME", home.path("home"));
                Agent::of(&mut command, home.path("work"))
            }
        }
    }

    /// The agent's process without attache, once its agent is loaded.
    pub(crate) fn start_bare(&self, home: &Home, framework: Framework) -> Result<Driven> {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
        ensure!(ours.join("attache_agents").is_dir(), "{} is not there", ours.display());
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "attache_agents"]).current_dir(home.path("work"));
        clean(&mut command).env("PYTHONPATH", std::env::join_paths([ours, self.packages()])?);
        let mut process = Driven::start(&mut command)?;
        let hello = json!({
            "type": "hello", "protocol": 1, "module": framework.module(), "directory": self.0, "watch": false,
        });
        process.exchange(format!("{hello}\n").as_bytes(), Until::Line(b"\"ready\""))?;
        Ok(process)
    }

    /// The long answer, on the pipe of that process.
    pub(crate) fn bare_run(&self, home: &Home, framework: Framework, number: u32) -> String {
        let run = json!({
            "type": "run",
            "session": format!("s{number}"),
            "run": format!("r{number}"),
            "answer": format!("m{number}"),
            "previous": null,
            "context": [],
            "directory": home.path("work"),
            "mcp_servers": [],
            "prompt": [{ "type": "text", "text": format!("{} deltas", framework.deltas()) }],
        });
        format!("{run}\n")
    }
}

/// What a developer has configured must not decide a figure.
fn clean(command: &mut Command) -> &mut Command {
    command.env_clear().stderr(Stdio::null());
    if let Some(search) = std::env::var_os("PATH") {
        command.env("PATH", search);
    }
    command
}
