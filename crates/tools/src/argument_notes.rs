//! Wraps a tool so that its results also tell which arguments it went without or lowered. Does nothing else.

use std::sync::Arc;

use attache_core::ids::SessionId;
use attache_core::ports::tool::Site;
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use serde_json::Value;

use crate::arguments::left_out;

#[derive(Debug)]
pub(crate) struct WithArgumentNotes<T>(pub(crate) T);

impl<T: Tool> Tool for WithArgumentNotes<T> {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn needs_person(&self) -> bool {
        self.0.needs_person()
    }

    fn without_person(&self) -> Option<&'static str> {
        self.0.without_person()
    }

    fn needs_images(&self) -> bool {
        self.0.needs_images()
    }

    fn needs_skills(&self) -> bool {
        self.0.needs_skills()
    }

    fn tells_changes(&self) -> bool {
        self.0.tells_changes()
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let (note, plan) = (left_out(self.spec(), input), self.0.plan(input, site));
        Box::pin(async move { Ok(ToolPlan { note, ..plan.await? }) })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        self.0.run(input, runtime)
    }

    fn news(&self, session: &SessionId) -> Option<String> {
        self.0.news(session)
    }

    fn session_ended<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        self.0.session_ended(session)
    }
}

/// The tool in the form that every session gets.
pub(crate) fn with_argument_notes(tool: impl Tool + 'static) -> Arc<dyn Tool> {
    Arc::new(WithArgumentNotes(tool))
}
