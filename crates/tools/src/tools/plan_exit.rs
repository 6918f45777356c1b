//! The `plan_exit` tool: gives a plan to the core, which shows it to the user and asks whether to carry it out.
//! The tool itself runs only if no user can answer.

use std::sync::LazyLock;

use attache_core::agents::DEFAULT_AGENT;
use attache_core::legible::visible_block;
use attache_core::ports::tool::{Effect, Presentation, Shown, Site, ToolKind};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::tool_names::PLAN_EXIT;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::outcome::{RunningCall, refused};

/// Shows the finished plan to the user and asks to leave plan mode for build mode, where you carry it out. Not
/// for questions: ask those before.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FinishedPlan {
    /// The whole plan, in Markdown.
    plan: String,
}

const EXAMPLE: &str = r#"{"plan":"1. Add a test to `src/a.rs`.\n2. …"}"#;

const REFUSAL: &str = "plan_exit: no connected person can switch the mode. End your turn with the plan.";

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<FinishedPlan>(PLAN_EXIT, ToolKind::SwitchMode, Effect::SessionOnly, Visibility::Shown)
});

#[derive(Debug)]
pub(crate) struct PlanExitTool;

impl Tool for PlanExitTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn without_person(&self) -> Option<&'static str> {
        Some(REFUSAL)
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let planned = parse(input).map(|plan| ToolPlan::proposing(DEFAULT_AGENT, presentation(&plan)));
        Box::pin(std::future::ready(planned))
    }

    fn run(&self, input: Value, _runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            match parse(&input) {
                Ok(plan) => RunningCall::started(presentation(&plan)).failed(REFUSAL),
                Err(text) => refused(text),
            }
        })
    }
}

fn parse(input: &Value) -> Result<String, String> {
    let FinishedPlan { plan } = arguments::parse(&SPEC, EXAMPLE, input)?;
    match plan.trim() {
        "" => Err(arguments::rejected(&SPEC, EXAMPLE, "field `plan` must not be empty")),
        plan => Ok(visible_block(plan)),
    }
}

fn presentation(plan: &str) -> Presentation {
    Presentation {
        title: format!("Leave plan mode for {DEFAULT_AGENT} mode?"),
        kind: Some(ToolKind::SwitchMode),
        content: vec![Shown::Text { text: plan.to_owned() }],
        ..Presentation::default()
    }
}
