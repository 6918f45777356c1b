//! The `skill` tool: returns the text of a skill to the model, which knows from its prompt what skills there
//! are.

use std::sync::{Arc, LazyLock};

use attache_core::arguments::aliases::plain;
use attache_core::legible::visible;
use attache_core::ports::tool::{Effect, Location, Presentation, Site, ToolKind, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::skills::Skill;
use attache_sandbox::limits::ERROR_BYTES;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::bounded::Bounded;
use crate::outcome::{RunningCall, refused};
use crate::paths::nearest_names;
use crate::skills;

/// Loads a skill: instructions for a task of its kind, and where the files are that go with them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// As the list of skills has it.
    name: String,
}

/// How many names an error lists: if there are more, the nearest ones are more useful.
const LISTED_SKILLS: usize = 20;

const EXAMPLE: &str = r#"{"name":"release-notes"}"#;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| arguments::spec::<Input>("skill", ToolKind::Think, Effect::ReadOnly, Visibility::Shown));

#[derive(Debug)]
pub(crate) struct SkillTool;

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn needs_skills(&self) -> bool {
        true
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let skill = find(input, &site.workspace);
        Box::pin(async move { skill.map(|skill| ToolPlan::new(Vec::new(), presentation(&skill))) })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let skill = match find(&input, &runtime.site.workspace) {
                Ok(skill) => skill,
                Err(text) => return refused(text),
            };
            let mut call = RunningCall::started(presentation(&skill));
            match skills::body(Arc::clone(&skill)).await {
                Ok(body) => {
                    let text = Bounded::head(skill.block(&body), runtime.result_bytes);
                    call.truncated = text.is_cut();
                    call.done(text.into_text())
                }
                Err(problem) => call.failed(format!("skill: {problem}")),
            }
        })
    }
}

fn find(input: &Value, workspace: &Workspace) -> Result<Arc<Skill>, String> {
    let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
    let skills = &workspace.skills;
    // Some models add the slash of the command.
    let name = input.name.trim().trim_start_matches('/');
    let mut alike = skills.list.iter().filter(|skill| plain(&skill.name) == plain(name));
    let meant = alike.next().filter(|_| alike.next().is_none());
    skills.find(name).or(meant).cloned().ok_or_else(|| {
        let names = || skills.list.iter().map(|skill| skill.name.to_string());
        let all: Vec<String> = names().take(LISTED_SKILLS).collect();
        let there_are = match skills.list.len() {
            0 => "; there are none".to_owned(),
            count if count > all.len() => nearest_names(name, names()),
            _ => format!("; there are {}", all.join(", ")),
        };
        // No example, because any name in it could be one that does not exist.
        Bounded::whole(format!("skill: there is no skill `{}`{there_are}", visible(name)), ERROR_BYTES)
            .into_text()
    })
}

fn presentation(skill: &Skill) -> Presentation {
    Presentation {
        title: format!("Skill `{}`", skill.name),
        kind: Some(ToolKind::Think),
        locations: vec![Location { path: skill.path.clone(), line: None }],
        ..Presentation::default()
    }
}
