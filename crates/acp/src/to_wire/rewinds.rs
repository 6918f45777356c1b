//! The results of a rewind and of an unrewind.

use attache_core::rewind::{MovedFiles, Rewound, Unrewound};
use serde_json::{Value, json};

use super::content;

/// The prompt as the client sent it, what is hidden now, and what happened to files.
pub fn rewind_result(rewound: &Rewound) -> Value {
    let prompt: Vec<_> = rewound.parts.iter().filter_map(content::user_block).collect();
    let mut result = json!({ "prompt": prompt, "hidden": rewound.hidden });
    add_files(&mut result, rewound.files.as_ref());
    result
}

/// The answer to `_attache/session/unrewind`.
pub fn unrewind_result(unrewound: &Unrewound) -> Value {
    let mut result = json!({ "restored": unrewound.restored });
    add_files(&mut result, unrewound.files.as_ref());
    result
}

/// Adds nothing if this host keeps no snapshots.
fn add_files(result: &mut Value, files: Option<&MovedFiles>) {
    let Some(MovedFiles { restored, conflicts, not_covered }) = files else { return };
    let restored: Vec<_> = restored.iter().map(|path| path.to_string_lossy()).collect();
    let conflicts: Vec<_> = conflicts
        .iter()
        .map(|left| json!({ "path": left.path.to_string_lossy(), "reason": left.reason }))
        .collect();
    let not_covered: Vec<_> =
        not_covered.iter().map(|left| json!({ "what": left.what, "reason": left.reason })).collect();
    result["files"] = json!({ "restored": restored, "conflicts": conflicts, "notCovered": not_covered });
}
