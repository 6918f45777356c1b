//! The presentation of a call that can't be read or understood.

use super::Turn;
use crate::legible::legible_line;
use crate::limits::CALL_TITLE_CHARACTERS;
use crate::ports::tool::Presentation;
use crate::toolbox::NO_SUCH_TOOL;

impl Turn {
    /// The presentation of a call whose arguments can't be read.
    pub(super) fn unreadable_shown(&self, tool_name: &str, why: &str) -> Presentation {
        let bare = self
            .setup
            .tools
            .find(tool_name)
            .map_or_else(Presentation::default, |tool| tool.spec().presentation());
        Presentation { title: failed_title(tool_name, why), ..bare }
    }
}

/// The title of a call that was not understood: the tool and the reason.
pub(super) fn failed_title(tool_name: &str, why: &str) -> String {
    if why.starts_with(NO_SUCH_TOOL) {
        // Its result lists the known tools.
        return format!("{} (unknown tool)", legible_line(tool_name));
    }
    let why = why.strip_prefix(tool_name).and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
    // The example is only for the model.
    let why = why.split(", for example ").next().unwrap_or(why);
    let line = legible_line(why.lines().next().unwrap_or_default());
    let mut shown: String = line.chars().take(CALL_TITLE_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    format!("{}: {shown}", legible_line(tool_name))
}

/// A call of an unknown tool.
pub(super) fn bare(tool_name: &str) -> Presentation {
    Presentation { title: tool_name.to_owned(), ..Presentation::default() }
}
