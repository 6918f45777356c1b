//! What all tools that change one file have in common: a preview, a turn at the path, one attempt off the runtime's threads.

use std::path::Path;

use attache_core::ports::tool::{Presentation, Site};
use attache_core::ports::{BoxFuture, ToolOutcome, ToolPlan, ToolRuntime};

use crate::files;
use crate::locks::PathLocks;
use crate::outcome::{Call, refused};
use crate::reach::Reach;

/// One change of one file, understood and not yet made. Errors are the answer to the model.
pub(crate) trait Mutation: Send + 'static {
    /// The tool's id, which every error begins with.
    const TOOL: &'static str;

    fn path(&self) -> &Path;
    fn presentation(&self) -> Presentation;
    /// What the change would look like against the file as it is now.
    fn preview(&self, reach: &Reach) -> Result<ToolPlan, String>;
    /// Makes the change, completes what is shown of it, and gives what the model is told.
    fn make(&self, reach: &Reach, shown: &mut Presentation) -> Result<String, String>;
}

pub(crate) fn plan<M: Mutation>(
    mutation: Result<M, String>,
    site: &Site,
) -> BoxFuture<'static, Result<ToolPlan, String>> {
    let reach = Reach::new(&site.workspace, &site.granted);
    Box::pin(async move {
        let mutation = mutation?;
        let preview = tokio::task::spawn_blocking(move || mutation.preview(&reach)).await;
        let preview =
            preview.map_err(|error| format!("the preview failed: {error}")).and_then(|planned| planned);
        preview.map_err(|error| format!("{}: {error}", M::TOOL))
    })
}

pub(crate) async fn run<M: Mutation>(
    mutation: Result<M, String>,
    runtime: ToolRuntime,
    locks: &PathLocks,
) -> ToolOutcome {
    let mutation = match mutation {
        Ok(mutation) => mutation,
        Err(text) => return refused(text),
    };
    let mut call = Call::started(mutation.presentation());
    let reach = Reach::new(&runtime.site.workspace, &runtime.site.granted);
    let key = files::lock_key(mutation.path(), &reach);
    let turn = tokio::select! {
        turn = locks.lock(&key) => Some(turn),
        () = runtime.cancel.cancelled() => None,
    };
    let Some(turn) = turn.filter(|_| !runtime.cancel.is_cancelled()) else {
        return call.failed(format!("{}: cancelled, the file is unchanged", M::TOOL));
    };
    let mut shown = call.presentation.clone();
    let made = tokio::task::spawn_blocking(move || {
        // Held here: a change that is under way keeps its turn even when nobody waits for it any more.
        let _turn = turn;
        mutation.make(&reach, &mut shown).map(|answer| (answer, shown))
    });
    match made.await {
        Ok(Ok((answer, shown))) => {
            call.presentation = shown;
            call.done(answer)
        }
        Ok(Err(error)) => call.failed(format!("{}: {error}", M::TOOL)),
        Err(error) => call.failed(format!("{}: the change failed: {error}", M::TOOL)),
    }
}
