//! The table of attacks as data: one line each. Runs nothing.

use std::path::Path;

use super::world::Harm;
use crate::corpus_lines::unescaped;

pub(super) struct Attack {
    /// The row of the robustness list.
    pub(super) row: &'static str,
    pub(super) name: &'static str,
    /// What it does where nothing holds it; `None`: nothing that could be seen here.
    pub(super) reaches: Option<Harm>,
    /// What the watchdog says to it under the default rules.
    pub(super) verdict: &'static str,
    pub(super) tool: &'static str,
    /// A script that makes the place ready for it.
    given: String,
    /// A command for `bash`, the arguments of another tool in JSON.
    call: String,
    /// What its user does in the root when the command has ended, with nothing of ours around it. Then only
    /// what comes of that is harm: what the command left was theirs to undo.
    then: Option<String>,
}

/// What the table has for the places and sinks of one run.
pub(super) struct Names<'a> {
    pub(super) place: &'a Path,
    pub(super) tcp: u16,
    pub(super) udp: u16,
    pub(super) abstract_name: &'a str,
}

const REPOSITORY: &str = "git init -q -b main . && git add README.md && \
                          git -c user.name=a -c user.email=a@b commit -qm first";

pub(super) fn attacks() -> Vec<Attack> {
    let lines = include_str!("attacks.tsv").lines();
    lines.filter(|line| !line.starts_with('#')).map(attack).collect()
}

fn attack(line: &'static str) -> Attack {
    let columns: Vec<&str> = line.split('\t').collect();
    let [row, name, reaches, verdict, tool, given, call] = columns[..] else {
        panic!("seven columns: {line}")
    };
    let reaches = match reaches {
        "leak" => Some(Harm::Leak),
        "sink" => Some(Harm::Sink),
        "outside" => Some(Harm::Outside),
        "protected" => Some(Harm::Protected),
        "mode" => Some(Harm::Mode),
        "-" => None,
        other => panic!("{other} is nothing that an attack reaches: {line}"),
    };
    let given = if given == "-" { String::new() } else { unescaped(given) };
    let (call, then) = match call.split_once(" @THEN ") {
        Some((call, then)) => (call, Some(unescaped(then))),
        None => (call, None),
    };
    Attack { row, name, reaches, verdict, tool, given, call: unescaped(call), then }
}

impl Attack {
    pub(super) fn given(&self, names: &Names<'_>) -> String {
        names.fill(&self.given)
    }

    pub(super) fn then(&self, names: &Names<'_>) -> Option<String> {
        self.then.as_ref().map(|then| names.fill(then))
    }

    pub(super) fn call(&self, names: &Names<'_>) -> String {
        names.fill(&self.call)
    }
}

impl Names<'_> {
    fn fill(&self, text: &str) -> String {
        let at = |name: &str| self.place.join(name).to_str().unwrap().to_owned();
        text.replace("@REPOSITORY", REPOSITORY)
            .replace("@ROOT", &at("root"))
            .replace("@HOME", &at("home"))
            .replace("@OUT", &at("outside"))
            .replace("@OWN", &at("own"))
            .replace("@AGENT", &at("agent"))
            .replace("@SOCKET", &at("daemon.sock"))
            .replace("@MOVED", &at("moved"))
            .replace("@TCP", &self.tcp.to_string())
            .replace("@UDP", &self.udp.to_string())
            .replace("@ABSTRACT", self.abstract_name)
    }
}
