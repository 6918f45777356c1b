//! Why a call is refused to an agent whose commands only read. Judges nothing else.

use super::judge::ANY_HOST;
use super::rule::BASH;
use crate::legible::legible_path;
use crate::limits::REFUSED_COMMAND_CHARACTERS;
use crate::ports::tool::{Access, CommandNature};

/// What a command does beyond reading, for agents whose commands only read. Accesses of other tools are judged
/// as usual.
pub(super) fn more_than_reads(access: &Access, tool: &str) -> Option<String> {
    match access {
        Access::Command(command) => {
            let line = shortened(&command.line());
            match (&command.nature, &command.why) {
                (CommandNature::ReadOnly, _) => None,
                (CommandNature::Unclear(why), _) => Some(format!("`{line}` is unclear: {why}")),
                (CommandNature::Effects, Some(why)) => Some(format!("`{line}` may change something: {why}")),
                (CommandNature::Effects, None) => Some(format!("`{line}` may change something")),
            }
        }
        Access::WritePath(path) if tool == BASH => Some(format!("it writes {}", legible_path(path))),
        Access::Network { host } if tool == BASH && host == ANY_HOST => {
            Some("it needs the network".to_owned())
        }
        Access::Network { host } if tool == BASH => Some(format!("it reaches {host}")),
        Access::WritePath(_) | Access::Network { .. } | Access::ReadPath(_) => None,
    }
}

/// The beginning of a line, which shows what it is about.
fn shortened(line: &str) -> String {
    let mut shown: String = line.chars().take(REFUSED_COMMAND_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}
