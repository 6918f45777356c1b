//! What the prompt says of commands and questions, for each kind of agent. `watchdog::judge` acts as the prompt
//! says; a test compares the two.

use super::Facts;
use crate::hub::People;
use crate::watchdog::{Approval, Commands, Containment};

/// What holds commands, and what a command may do.
pub(super) fn commands(facts: &Facts<'_>, agent: Commands) -> String {
    // Until it is probed, assume full containment.
    let containment = facts.containment.unwrap_or(Containment::Full);
    let (writes, reach) = match (agent, containment) {
        (Commands::Any, Containment::Full) => (
            "run in a sandbox. They write to the workspace, the other directories and `$TMPDIR`, the scratch directory, which \
             lasts for the session; all else is read-only; `/tmp` is each command's own. Those known to only read write to \
             `$TMPDIR` alone.",
            "Credentials can't be read; agents' and editors' configuration, `.git/config` and `.git/hooks` can't be changed.",
        ),
        (Commands::Any, Containment::Reduced) => (
            "run in a reduced sandbox. They write to the workspace, the other directories and `$TMPDIR`, the scratch directory, \
             which lasts for the session; all else, `/tmp` too, is read-only.",
            "Credentials are out of reach.",
        ),
        (Commands::Any, Containment::None | Containment::ExplicitlyOff) | (Commands::OnlyReading, _) => {
            return without_network_of_its_own(agent, containment).to_owned();
        }
    };
    format!("{writes} {} {reach}", network(facts))
}

/// How a command gets network access; says nothing helps if no person can grant it.
fn network(facts: &Facts<'_>) -> &'static str {
    match (facts.approval, facts.people) {
        (Approval::Ask | Approval::Edits, People::Present) => {
            "The network has to be granted: it is asked for where a program is known to need it (pip, npm, cargo, git fetch, \
             …), and with `network: true`."
        }
        (Approval::All, _) | (_, People::Absent | People::OnlyAProgram) => {
            "They have no network unless a rule grants it: start a server and what connects to it in one command."
        }
    }
}

/// The cases where the prompt says nothing of the network: it is always there, or never.
fn without_network_of_its_own(agent: Commands, containment: Containment) -> &'static str {
    match (agent, containment) {
        (Commands::Any, Containment::None | Containment::Full | Containment::Reduced) => {
            "run without a sandbox. `$TMPDIR` is the scratch directory and lasts for the session."
        }
        (Commands::Any, Containment::ExplicitlyOff) => {
            "run without a sandbox, with all rights of the user. `$TMPDIR` is the scratch directory and lasts for the \
             session."
        }
        (Commands::OnlyReading, Containment::Full) => {
            "run in a sandbox, without network and with the workspace read-only; redirections into files are refused. `/tmp` \
             is each command's own. Credentials can't be read."
        }
        (Commands::OnlyReading, Containment::Reduced) => {
            "run in a reduced sandbox, without network; redirections into files are refused. Credentials are out of reach."
        }
        (Commands::OnlyReading, Containment::None | Containment::ExplicitlyOff) => {
            "run without a sandbox; redirections into files are refused."
        }
    }
}

/// What runs, what asks, what is refused.
pub(super) fn questions(facts: &Facts<'_>, agent: Commands) -> String {
    let containment = facts.containment.unwrap_or(Containment::Full);
    let do_commands_pass = containment.wants_a_look().is_none();
    let of_workspace = match (facts.approval, agent) {
        (Approval::All, agent) => return under_all(containment, agent),
        (Approval::Edits, Commands::Any) => "reading and editing the workspace",
        (Approval::Ask, Commands::Any) | (_, Commands::OnlyReading) => "reading and searching the workspace",
    };
    let passes = match do_commands_pass {
        true => format!("{of_workspace} and commands known to only read pass"),
        false => format!("{of_workspace} passes"),
    };
    let others = match (facts.people, agent, do_commands_pass) {
        (People::Absent | People::OnlyAProgram, _, _) => "no one can be asked, so everything else is refused",
        (People::Present, Commands::Any, _) => {
            "all else asks the user first, and so does reading what looks like a secret"
        }
        (People::Present, Commands::OnlyReading, true) => {
            "edits and other commands are refused; paths outside, the web and what looks like a secret ask the user first"
        }
        (People::Present, Commands::OnlyReading, false) => {
            "edits and commands that may change something are refused; other commands, paths outside, the web and what \
             looks like a secret ask the user first"
        }
    };
    format!("{passes}; {others}.")
}

fn under_all(containment: Containment, agent: Commands) -> String {
    let outside = match containment {
        // The user wants no containment: then nothing beyond the roots is refused for lack of a grant either.
        Containment::ExplicitlyOff => "",
        Containment::Full | Containment::Reduced | Containment::None => "paths and hosts outside the grant",
    };
    let refused = match (agent, outside) {
        (Commands::Any, "") => {
            return "nothing asks, and nothing outside of the workspace is refused.".to_owned();
        }
        (Commands::Any, outside) => outside.to_owned(),
        (Commands::OnlyReading, "") => "edits and commands that may change something".to_owned(),
        (Commands::OnlyReading, outside) => {
            format!("edits, commands that may change something, and {outside}")
        }
    };
    format!("nothing asks; {refused} are refused.")
}
