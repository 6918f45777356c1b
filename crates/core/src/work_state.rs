//! What a conversation says about the current work, whichever model summarises it: the files that tools
//! changed, the task list, the background commands. Derived from the results of calls, so that it survives a
//! restart and a summary. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data_name::DataName;
use crate::environment;
use crate::metadata::own;
use crate::part::{Part, Passage, ToolPart};
use crate::ports::tool::{Location, ToolKind};
use crate::snapshot::{CallSnapshot, FileSnapshot};

/// A background command that a call mentions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundMark {
    /// The name by which the model refers to it.
    pub name: String,
    /// The command line.
    pub command: String,
    /// Whether it still runs.
    pub life: BackgroundLife,
}

/// Whether a command still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundLife {
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// The changes made by a session that worked for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesMark {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The titles of calls that may have changed more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
}

/// One task of a list, as the tool understood it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoMark {
    /// What is to be done.
    pub content: String,
    /// Its status.
    pub status: String,
}

/// What is known of the current work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkState {
    changed: BTreeSet<PathBuf>,
    /// The titles of the last calls that may have changed more than is known.
    uncovered: Vec<String>,
    kept: SnapshotsKept,
    commands: CommandsRun,
    /// Lines of a Markdown list.
    todos: Vec<String>,
    /// Names of the skills that the model has loaded.
    skills: BTreeSet<String>,
    /// Command by name: background commands that the model started and does not know to have ended.
    background: BTreeMap<String, String>,
}

/// Whether the host kept snapshots: without them it is unknown what a command wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SnapshotsKept {
    #[default]
    Always,
    NotAlways,
}

/// Whether any command ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CommandsRun {
    #[default]
    None,
    Some,
}

/// The tool whose arguments are the task list.
const TASK_LIST: &str = "todo";

/// The beginning of the line of a completed task.
const TASK_DONE: &str = "[completed]";

/// The tool that returns the text of a skill.
const SKILL: &str = "skill";

/// The most files listed, calls listed that may have changed others, and bytes of a task or a command.
const FILES_MOST: usize = 300;
const UNCOVERED_MOST: usize = 20;
const LINE_BYTES: usize = 300;

impl WorkState {
    /// Whether a passage says anything about it: most do not, and cost only this check.
    pub(crate) fn is_told_by(passage: &Passage) -> bool {
        passage.parts.iter().any(|part| match part {
            Part::Tool(tool) if tool.output.is_some() => {
                let tells = |ours: &Value| {
                    is_edit(ours)
                        || is_of_kind(ours, ToolKind::Execute)
                        || metadata(ours).is_some_and(has_marks)
                };
                [TASK_LIST, SKILL].contains(&tool.tool_name.as_str()) || ours(tool).is_some_and(tells)
            }
            part => snapshot(part).is_some() || environment::ended_background(part).next().is_some(),
        })
    }

    pub(crate) fn take(&mut self, passage: &Passage) {
        let kept: BTreeSet<&str> = passage.parts.iter().filter_map(snapshot).map(|(call, _)| call).collect();
        let results = passage.parts.iter().filter_map(Part::tool).filter(|tool| tool.output.is_some());
        let results: BTreeSet<&str> = results.map(|tool| tool.call_id.as_str()).collect();
        for part in &passage.parts {
            if let Some((call, data)) = snapshot(part) {
                self.take_snapshot(call, data, &results);
            }
            match part {
                Part::Tool(tool) if tool.output.is_some() => {
                    self.take_call(tool);
                    if ours(tool).is_some_and(is_edit) && !kept.contains(&*tool.call_id.to_string()) {
                        self.kept = SnapshotsKept::NotAlways;
                    }
                }
                part => environment::ended_background(part).for_each(|name| {
                    self.background.remove(name);
                }),
            }
        }
    }

    /// Adds what a call changed, or that this is unknown. A subagent's changes are in its call's result.
    fn take_snapshot(&mut self, call: &str, data: &Value, results: &BTreeSet<&str>) {
        let Ok(CallSnapshot { title, files, uncovered, child }) = CallSnapshot::deserialize(data) else {
            return;
        };
        if uncovered.is_some() || (child.is_some() && !results.contains(call)) {
            self.not_covered(title);
        }
        let is_same =
            |file: &FileSnapshot| file.after.as_ref().is_some_and(|left| left.is_same(&file.before));
        self.changed.extend(files.into_iter().filter(|file| !is_same(file)).map(|file| file.path));
    }

    fn not_covered(&mut self, title: String) {
        let line = one_line(&title);
        self.uncovered.retain(|known| *known != line);
        self.uncovered.push(line);
        let more = self.uncovered.len().saturating_sub(UNCOVERED_MOST);
        self.uncovered.drain(..more);
    }

    /// For the session that continues with another session's work.
    pub(crate) fn changes(&self) -> ChangesMark {
        let mut uncovered = self.uncovered.clone();
        if self.commands == CommandsRun::Some && self.kept == SnapshotsKept::NotAlways {
            uncovered.push("commands whose changes were not recorded".to_owned());
        }
        ChangesMark { files: self.changed.iter().cloned().collect(), uncovered }
    }

    fn take_call(&mut self, tool: &ToolPart) {
        let metadata = ours(tool).and_then(metadata);
        let todos = metadata.and_then(|metadata| metadata.get("todos")?.as_array());
        if let Some(todos) = todos {
            self.todos = todos.iter().filter_map(todo_line).collect();
        } else if tool.tool_name == TASK_LIST
            // The form in sessions from before the tool reported what it understood.
            && let Some(todos) = tool.input.as_ref().and_then(|input| input.get("todos")?.as_array())
        {
            self.todos = todos.iter().filter_map(todo_line).collect();
        }
        if tool.tool_name == SKILL
            && let Some(name) = tool.input.as_ref().and_then(|input| input.get("name")?.as_str())
        {
            self.skills.insert(one_line(name.trim_start_matches('/')));
        }
        let Some(ours) = ours(tool) else { return };
        if is_of_kind(ours, ToolKind::Execute) {
            self.commands = CommandsRun::Some;
        }
        let changes = metadata.and_then(|metadata| ChangesMark::deserialize(metadata.get("changes")?).ok());
        if let Some(ChangesMark { files, uncovered }) = changes {
            self.changed.extend(files);
            uncovered.into_iter().for_each(|title| self.not_covered(title));
        }
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

    /// The background commands that the model does not know to have ended: names and commands.
    pub fn background(&self) -> impl Iterator<Item = (&str, &str)> {
        self.background.iter().map(|(name, command)| (name.as_str(), command.as_str()))
    }

    /// Whether the task list has open tasks.
    pub(crate) fn has_open_tasks(&self) -> bool {
        self.todos.iter().any(|line| !line.starts_with(TASK_DONE))
    }

    /// Sections for a note; empty if there is nothing to tell. Files below the root have short names.
    pub(crate) fn sections(&self, root: &Path) -> String {
        let name = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).display().to_string();
        let mut files: Vec<_> = self.changed.iter().take(FILES_MOST).map(name).collect();
        if self.changed.len() > FILES_MOST {
            files.push(format!("({} more)", self.changed.len() - FILES_MOST));
        }
        let commands: Vec<_> = self.background().map(background_line).collect();
        let skills: Vec<_> = self.skills.iter().take(UNCOVERED_MOST).cloned().collect();
        let uncovered = self.changes().uncovered;
        let heading = match uncovered.is_empty() {
            true => "Changed files (complete, from the tools)",
            false => "Changed files (those that the tools know of)",
        };
        [
            (heading, files),
            ("May have changed other files (look before you rely on them)", uncovered),
            ("Task list (as the todo tool has it)", self.todos.clone()),
            ("Commands in the background (ask bash_background how they are)", commands),
            ("Skills that were loaded (load one again where you need it)", skills),
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
    is_of_kind(ours, ToolKind::Edit)
}

fn is_of_kind(ours: &Value, wanted: ToolKind) -> bool {
    ours.get("kind").and_then(|kind| ToolKind::deserialize(kind).ok()) == Some(wanted)
}

fn metadata(ours: &Value) -> Option<&Value> {
    ours.get("metadata")
}

fn has_marks(metadata: &Value) -> bool {
    ["background", "todos", "changes"].iter().any(|key| metadata.get(*key).is_some())
}

/// The call's id and the data of a snapshot.
fn snapshot(part: &Part) -> Option<(&str, &Value)> {
    let Part::Data { name, id, data } = part else { return None };
    (*name == DataName::Snapshot).then_some((id.as_deref()?, data))
}

fn marks(ours: &Value) -> impl Iterator<Item = BackgroundMark> {
    let marks = metadata(ours).and_then(|metadata| metadata.get("background")?.as_array());
    marks.into_iter().flatten().filter_map(|mark| BackgroundMark::deserialize(mark).ok())
}

/// A command with its name, in one line.
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
    use serde_json::json;

    use super::*;
    use crate::ids::{CallId, MessageId};
    use crate::part::Role;

    #[test]
    fn skills_and_open_tasks_outlive_a_summary() {
        let skill = after(vec![call("skill", json!({ "name": "/pdf" }), Value::Null)]);
        let told = skill.sections(Path::new("/w"));
        assert!(
            told.contains("## Skills that were loaded (load one again where you need it)\n- pdf"),
            "{told}"
        );
        let todos = |status: &str| json!({ "todos": [{ "content": "mend", "status": status }] });
        for (status, open) in [("pending", true), ("in_progress", true), ("completed", false)] {
            let state = after(vec![call("todo", todos(status), Value::Null)]);
            assert_eq!(state.has_open_tasks(), open, "{status}");
        }
    }

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
        // An outdated file has no sight; instructions found on the way do.
        let seen = json!([{ "path": "/w/AGENTS.md", "digest": "1" }]);
        let locations = json!([{ "path": "/w/a.rs", "line": 3 }, { "path": "/other/b.rs" }]);
        let edit = json!({ "kind": "edit", "locations": locations, "metadata": { "seen": seen } });
        let read = json!({ "kind": "read", "locations": [{ "path": "/w/c.rs" }] });
        let state = after(vec![call("edit", json!({}), edit), call("read", json!({}), read)]);
        let sections = state.sections(Path::new("/w"));
        assert_eq!(sections, "\n\n## Changed files (complete, from the tools)\n- /other/b.rs\n- a.rs");
    }

    fn kept(call: &str, data: Value) -> Part {
        Part::Data { name: DataName::Snapshot.into(), id: Some(call.into()), data }
    }

    #[test]
    fn what_commands_and_children_changed_is_listed_and_what_nobody_knows_is_named() {
        let file = |path: &str, before: &str, after: &str| json!({ "path": path, "before": { "is": before }, "after": { "is": after } });
        let moved = [file("/w/old", "absent", "link"), file("/w/same", "absent", "absent")];
        let mut moved = json!({ "title": "mv", "files": moved });
        moved["files"][0]["after"]["target"] = json!("x");
        let command = || call("bash", json!({}), json!({ "kind": "execute" }));
        let known = after(vec![command(), kept("c", moved.clone())]);
        assert_eq!(known.sections(Path::new("/w")), "\n\n## Changed files (complete, from the tools)\n- old");
        let unknown = json!({ "title": "make\nall", "uncovered": "nobody knows" });
        let told = after(vec![command(), kept("c", moved), kept("d", unknown.clone()), kept("e", unknown)]);
        let unsaid = "\n\n## Changed files (those that the tools know of)\n- old\n\n\
                      ## May have changed other files (look before you rely on them)\n- make all";
        assert_eq!(told.sections(Path::new("/w")), unsaid);
        let child = json!({ "metadata": { "changes": told.changes() } });
        assert_eq!(after(vec![call("task", json!({}), child)]).sections(Path::new("/w")), unsaid);
    }

    #[test]
    fn without_snapshots_a_list_with_commands_is_not_complete() {
        let edit = json!({ "kind": "edit", "locations": [{ "path": "/w/a" }] });
        let edit = call("edit", json!({}), edit);
        let alone = after(vec![edit.clone()]).sections(Path::new("/w"));
        assert!(alone.contains("(complete, from the tools)"), "{alone}");
        let both = after(vec![edit, call("bash", json!({}), json!({ "kind": "execute" }))]);
        let both = both.sections(Path::new("/w"));
        assert!(
            both.contains("(those that the tools know of)") && both.contains("- commands whose"),
            "{both}"
        );
    }

    #[test]
    fn the_task_list_is_what_the_tool_understood() {
        let todos = json!([{ "content": "Write it", "status": "completed" }]);
        let understood = json!({ "metadata": { "todos": todos } });
        let state = after(vec![call("Todo", json!("{\"todos\": 1}"), understood)]);
        assert!(state.sections(Path::new("/")).ends_with("tool has it)\n- [completed] Write it"));
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
