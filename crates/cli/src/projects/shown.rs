//! Shows the user what a project's configuration would change, before they consent.

use std::path::Path;

use attache_core::legible::legible_line;
use attache_core::ports::projects::ConsentRequest;
use attache_core::trust::{TrustChange, TrustChangeKind};
use toml_edit::{Document, Item, TableLike};

use crate::mcp::told::{self, ToldServers};
use crate::project_files::{PROJECT_CONFIG, ProjectFiles};

/// Shows each file whole, because all of it takes effect. If the user trusted the project before, shows only
/// the changes, with the MCP servers as they were `before` beside the current ones.
pub(crate) fn shown(
    found: &ProjectFiles,
    changes: Option<&[TrustChange]>,
    before: Option<&ToldServers>,
) -> String {
    let mut text = match changes {
        None => format!("{} wants to change more than what the model reads:\n", found.project.display()),
        Some(_) => format!("Changed in {} since you trusted it:\n", found.project.display()),
    };
    if let (Some(_), Some(before)) = (changes, before) {
        let lines = told::changes(before, &told::servers_of(found));
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    for (path, bytes) in &found.files {
        let what = match changes.map(|changes| changes.iter().find(|change| change.path == *path)) {
            Some(None) => continue,
            Some(Some(TrustChange { kind: TrustChangeKind::Added, .. })) => " (new)",
            Some(Some(TrustChange { kind: TrustChangeKind::Changed, .. })) => " (changed)",
            Some(Some(TrustChange { kind: TrustChangeKind::Removed, .. })) | None => "",
        };
        text.push_str(&format!("\n--- {}{what}\n", path.display()));
        text.push_str(String::from_utf8_lossy(bytes).trim_end());
        text.push('\n');
    }
    let mut runs: Vec<String> =
        hooks_of(found).iter().map(|hook| format!("runs without asking at {hook}\n")).collect();
    // Changes of servers come first.
    if changes.is_none() {
        let servers = told::servers_of(found);
        let line = |(name, what): (&String, &String)| format!("MCP server {}: {what}\n", legible_line(name));
        runs.extend(servers.iter().map(line));
    }
    if !runs.is_empty() {
        text.push('\n');
        text.extend(runs);
    }
    let removed = changes.into_iter().flatten().filter(|change| change.kind == TrustChangeKind::Removed);
    removed.for_each(|change| text.push_str(&format!("\n--- {} (gone)\n", change.path.display())));
    text.push('\n');
    text
}

/// The event and command of each hook, which the configuration runs without asking.
fn hooks_of(found: &ProjectFiles) -> Vec<String> {
    let bytes = found.text_of(Path::new(PROJECT_CONFIG)).unwrap_or_default();
    let Ok(document) = Document::parse(String::from_utf8_lossy(bytes).into_owned()) else {
        return Vec::new();
    };
    let shown = |item: Option<&Item>| match item {
        None => "?".to_owned(),
        Some(item) => match item.as_str() {
            Some(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            None => item.to_string().trim().to_owned(),
        },
    };
    let one = |hook: &dyn TableLike| format!("{}: {}", shown(hook.get("event")), shown(hook.get("command")));
    match document.get("hooks") {
        Some(Item::ArrayOfTables(hooks)) => hooks.iter().map(|hook| one(hook)).collect(),
        // `hooks = [{ … }]` is the same list.
        Some(Item::Value(hooks)) => {
            let tables = hooks.as_array().into_iter().flatten().filter_map(|hook| hook.as_inline_table());
            tables.map(|hook| one(hook)).collect()
        }
        Some(Item::None | Item::Table(_)) | None => Vec::new(),
    }
}

/// A description of a project's servers, if they are still those that we showed.
pub(super) fn told_then(request: &ConsentRequest) -> ToldServers {
    let found = ProjectFiles::find(&request.project).ok().filter(|found| found.content() == request.content);
    found.map(|found| told::servers_of(&found)).unwrap_or_default()
}
