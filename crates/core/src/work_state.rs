//! What a conversation says of the work under way, whoever summarises it: the files that tools changed, the
//! task list, the commands in the background. It is derived from the results of calls, so that it holds after a
//! restart and a summary as well. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::environment;
use crate::metadata::own;
use crate::part::{Part, Passage, ToolPart};
use crate::ports::tool::{Location, ToolKind};

/// A command in the background as a call told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundMark {
    pub name: String,
    pub command: String,
    pub life: BackgroundLife,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundLife {
    Running,
    Ended,
}

/// What is known of the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkState {
    changed: BTreeSet<PathBuf>,
    /// Lines of a Markdown list.
    todos: Vec<String>,
    /// Command by name: those that were started, and that the model does not know to have ended.
    background: BTreeMap<String, String>,
}

/// The tool whose arguments are the task list.
const TASK_LIST: &str = "todo";

/// Files that are listed, and bytes of a task or a command.
const FILES_MOST: usize = 300;
const LINE_BYTES: usize = 300;

impl WorkState {
    /// Whether a passage says something of it: most say nothing, and cost no more than this look.
    pub(crate) fn is_told_by(passage: &Passage) -> bool {
        passage.parts.iter().any(|part| match part {
            Part::Tool(tool) if tool.output.is_some() => {
                let tells = |ours: &Value| is_edit(ours) || marks(ours).next().is_some();
                tool.tool_name == TASK_LIST || ours(tool).is_some_and(tells)
            }
            part => environment::ended_background(part).next().is_some(),
        })
    }

    pub(crate) fn take(&mut self, passage: &Passage) {
        for part in &passage.parts {
            match part {
                Part::Tool(tool) if tool.output.is_some() => self.take_call(tool),
                part => environment::ended_background(part).for_each(|name| {
                    self.background.remove(name);
                }),
            }
        }
    }

    fn take_call(&mut self, tool: &ToolPart) {
        if tool.tool_name == TASK_LIST
            && let Some(todos) = tool.input.as_ref().and_then(|input| input.get("todos")?.as_array())
        {
            self.todos = todos.iter().filter_map(todo_line).collect();
        }
        let Some(ours) = ours(tool) else { return };
        if is_edit(ours) {
            let locations = ours.get("locations").and_then(Value::as_array).into_iter().flatten();
            let locations = locations.filter_map(|location| Location::deserialize(location).ok());
            self.changed.extend(locations.map(|location| location.path));
        }
        for BackgroundMark { name, command, life } in marks(ours) {
            match life {
                BackgroundLife::Running => self.background.insert(name, command),
                BackgroundLife::Ended => self.background.remove(&name),
            };
        }
    }

    /// The commands in the background that the model does not know to have ended: names and commands.
    pub fn background(&self) -> impl Iterator<Item = (&str, &str)> {
        self.background.iter().map(|(name, command)| (name.as_str(), command.as_str()))
    }

    /// Sections for a note; empty where there is nothing to tell. Files below the root by their names there.
    pub(crate) fn sections(&self, root: &Path) -> String {
        let name = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).display().to_string();
        let mut files: Vec<_> = self.changed.iter().take(FILES_MOST).map(name).collect();
        if self.changed.len() > FILES_MOST {
            files.push(format!("({} more)", self.changed.len() - FILES_MOST));
        }
        let commands: Vec<_> = self.background().map(background_line).collect();
        [
            ("Changed files (complete, from the tools)", files),
            ("Task list (as the todo tool has it)", self.todos.clone()),
            ("Commands in the background (ask bash_background how they are)", commands),
        ]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(heading, lines)| {
            let lines: Vec<_> = lines.into_iter().map(|line| format!("- {line}")).collect();
            format!("\n\n## {heading}\n{}", lines.join("\n"))
        })
        .collect()
    }
}

fn ours(tool: &ToolPart) -> Option<&Value> {
    tool.tool_metadata.as_ref().and_then(own)
}

fn is_edit(ours: &Value) -> bool {
    ours.get("kind").and_then(|kind| ToolKind::deserialize(kind).ok()) == Some(ToolKind::Edit)
}

fn marks(ours: &Value) -> impl Iterator<Item = BackgroundMark> {
    let marks = ours.get("metadata").and_then(|metadata| metadata.get("background")?.as_array());
    marks.into_iter().flatten().filter_map(|mark| BackgroundMark::deserialize(mark).ok())
}

/// A command by its name, in one line.
pub(crate) fn background_line((name, command): (&str, &str)) -> String {
    format!("{name}: {}", one_line(command))
}

fn todo_line(todo: &Value) -> Option<String> {
    let text = |key: &str| todo.get(key).and_then(Value::as_str);
    Some(format!("[{}] {}", text("status").unwrap_or("pending"), one_line(text("content")?)))
}

fn one_line(text: &str) -> String {
    let end = text.floor_char_boundary(LINE_BYTES);
    let cut = if end < text.len() { " …" } else { "" };
    format!("{}{cut}", text[..end].replace(char::is_control, " ").trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CallId, MessageId};
    use crate::part::Role;
    use serde_json::json;

    fn call(name: &str, input: Value, ours: Value) -> Part {
        let mut tool = ToolPart::new(CallId::new("c"), name);
        tool.input = Some(input);
        tool.output = Some(json!("done"));
        tool.tool_metadata = Some(json!({ "attache": ours }));
        Part::Tool(Box::new(tool))
    }

    fn after(parts: Vec<Part>) -> WorkState {
        let passage = Passage::new(MessageId::new("a"), Role::Assistant, parts);
        assert!(WorkState::is_told_by(&passage));
        let mut state = WorkState::default();
        state.take(&passage);
        state
    }

    fn background(life: &str) -> Part {
        let mark = json!({ "name": "bg_1", "command": "npm run\ndev", "life": life });
        call("bash", json!({}), json!({ "metadata": { "background": [mark] } }))
    }

    #[test]
    fn what_was_changed_is_listed_and_what_was_read_beside_it_is_not() {
        // An outdated file has no sight, and instructions that were found on the way have one.
        let seen = json!([{ "path": "/w/AGENTS.md", "digest": "1" }]);
        let locations = json!([{ "path": "/w/a.rs", "line": 3 }, { "path": "/other/b.rs" }]);
        let edit = json!({ "kind": "edit", "locations": locations, "metadata": { "seen": seen } });
        let read = json!({ "kind": "read", "locations": [{ "path": "/w/c.rs" }] });
        let state = after(vec![call("edit", json!({}), edit), call("read", json!({}), read)]);
        let sections = state.sections(Path::new("/w"));
        assert_eq!(sections, "\n\n## Changed files (complete, from the tools)\n- /other/b.rs\n- a.rs");
    }

    #[test]
    fn the_last_task_list_counts() {
        let list = |status: &str| json!({ "todos": [{ "content": "Write it", "status": status }] });
        let state = after(vec![
            call("todo", list("pending"), json!({})),
            call("todo", list("in_progress"), json!({})),
        ]);
        assert!(state.sections(Path::new("/")).ends_with("tool has it)\n- [in_progress] Write it"));
    }

    #[test]
    fn a_command_in_the_background_is_known_until_its_end_was_told() {
        let running = after(vec![background("running")]);
        assert!(running.sections(Path::new("/")).ends_with("- bg_1: npm run dev"));
        assert_eq!(after(vec![background("running"), background("ended")]), WorkState::default());
        let told = environment::news_part("…", &["bg_1".to_owned()], None);
        assert_eq!(after(vec![background("running"), told]), WorkState::default());
    }
}
