//! Arguments of calls under a tool's schema, for the tools of every room: corrects near misses of names and
//! types whose meaning is plain, and tells the model what a call goes without. Knows no tool by name; pure.

pub mod aliases;
pub mod bounds;
pub mod check;
mod command_line;
mod ranges;
pub mod repair;
pub mod understood;
pub mod unknown;

use serde_json::Value;

use crate::ports::tool::ToolSpec;

use bounds::lowered;
use check::check;
use understood::{Understood, understood};
use unknown::{may_be_left_out, refusal};

/// The arguments as the schema wants them.
pub fn accepted(spec: &ToolSpec, input: &Value) -> Result<Value, String> {
    let Understood { arguments, unknown } = understood(&spec.parameters, input)?;
    if !may_be_left_out(spec, &unknown) {
        return Err(refusal(&unknown));
    }
    let (arguments, _) = lowered(&spec.parameters, arguments);
    check(&spec.parameters, &arguments, "").map_err(|problem| match unknown.is_empty() {
        true => problem,
        // An unknown field may hold the value of the missing one.
        false => format!("{problem}; {}", refusal(&unknown)),
    })?;
    Ok(arguments)
}

/// What the model is told about a call that runs with less than the model gave: without a field, or with a
/// smaller number. Its length has no limit, because it repeats names that the model wrote.
pub fn left_out(spec: &ToolSpec, input: &Value) -> Option<String> {
    let Understood { arguments, unknown } = understood(&spec.parameters, input).ok()?;
    let (_, lowered) = lowered(&spec.parameters, arguments);
    let unknown = (!unknown.is_empty()).then(|| unknown::note(spec, &unknown));
    let lowered = (!lowered.is_empty()).then(|| bounds::note(&lowered));
    let notes: Vec<String> = unknown.into_iter().chain(lowered).collect();
    (!notes.is_empty()).then(|| notes.join("\n"))
}
