//! Code that the API ran, as text.

use super::wire::{CodeExecutionResult, ExecutableCode};

/// Code that the API ran is part of what the model says: as text, people and any other model can read it.
pub(super) fn run(code: &ExecutableCode<'_>) -> String {
    let language = code.language.as_ref().map(|language| language.0.to_lowercase()).unwrap_or_default();
    fenced(&language, &code.code.0)
}

pub(super) fn result(result: &CodeExecutionResult<'_>) -> String {
    let output = result.output.as_ref().map(|output| &*output.0).unwrap_or_default();
    match result.outcome.as_ref().map(|outcome| &*outcome.0) {
        None | Some("OUTCOME_OK") => fenced("", output),
        Some(outcome) => fenced("", &format!("{outcome}\n{output}")),
    }
}

fn fenced(language: &str, text: &str) -> String {
    let (longest, _) = text.bytes().fold((0, 0), |(longest, run): (usize, usize), byte| match byte {
        b'`' => (longest.max(run + 1), run + 1),
        _ => (longest, 0),
    });
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
