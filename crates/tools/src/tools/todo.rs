//! The `todo` tool: the session's task list, shown to clients as a plan. Keeps nothing itself.

use std::sync::LazyLock;

use attache_core::ports::tool::{Effect, Presentation, Site, ToolKind};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::work_state::TodoMark;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::{self, Visibility};
use crate::outcome::{RunningCall, refused};
use crate::text::counted;

/// Replaces the task list the user sees. Use it for work of three steps or more; send the whole list each time,
/// keep one task in_progress, and complete each as soon as it is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    todos: Vec<Task>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Task {
    content: String,
    status: TodoStatus,
    priority: Option<Priority>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

const EXAMPLE: &str = r#"{"todos":[{"content":"Write the test","status":"in_progress","priority":"high"}]}"#;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<Input>("todo", ToolKind::Other, Effect::SessionOnly, Visibility::Hidden)
});

#[derive(Debug)]
pub(crate) struct Todo;

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let tasks = parse(input);
        Box::pin(async move { tasks.map(|tasks| ToolPlan::new(Vec::new(), presentation(&tasks))) })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let tasks = match parse(&input) {
                Ok(tasks) => tasks,
                Err(text) => return refused(text),
            };
            let mut call = RunningCall::started(presentation(&tasks));
            let status = |task: &Task| json!(task.status).as_str().unwrap_or_default().to_owned();
            let mark = |task: &Task| TodoMark { content: task.content.clone(), status: status(task) };
            call.todos = Some(tasks.iter().map(mark).collect());
            let entries: Vec<Value> = tasks
                .iter()
                .map(|task| {
                    json!({
                        "content": task.content,
                        "priority": task.priority.unwrap_or_default(),
                        "status": task.status,
                    })
                })
                .collect();
            runtime.progress.data("plan", json!({ "entries": entries }));
            call.done(summary(&tasks))
        })
    }
}

fn parse(input: &Value) -> Result<Vec<Task>, String> {
    let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
    match input.todos.iter().position(|task| task.content.trim().is_empty()) {
        Some(index) => {
            let problem = format!("field `todos[{index}].content` must not be empty");
            Err(arguments::rejected(&SPEC, EXAMPLE, &problem))
        }
        None => Ok(input.todos),
    }
}

fn presentation(tasks: &[Task]) -> Presentation {
    Presentation {
        title: format!("Plan: {}", summary(tasks)),
        kind: Some(ToolKind::Other),
        hidden: true,
        ..Presentation::default()
    }
}

fn summary(tasks: &[Task]) -> String {
    let count = |status| tasks.iter().filter(|task| task.status == status).count();
    format!(
        "{}: {} completed, {} in progress, {} pending",
        counted(tasks.len(), "task"),
        count(TodoStatus::Completed),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    )
}
