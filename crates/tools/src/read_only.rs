//! What all tools that only look at the disk share: the path they touch, and a run that ends when it is
//! cancelled.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use attache_core::ports::tool::{Access, Presentation, Site, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use serde_json::Value;

use crate::files::FileError;
use crate::outcome::{RunningCall, noted, refused};
use crate::roots::{OpenRoots, missing_outside, touched};

/// A call that looks at one path, with its arguments understood. Errors are the answer to the model.
pub(crate) trait ReadOnlyCall: std::fmt::Debug + Sized + Send + Sync + 'static {
    fn spec() -> &'static ToolSpec;
    fn needs_images() -> bool {
        false
    }
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String>;
    /// An absolute and normal path.
    fn path(&self) -> PathBuf;
    fn presentation(&self, workspace: &Workspace) -> Presentation;
    fn look(self, runtime: ToolRuntime) -> impl Future<Output = Result<FinishCall, String>> + Send;
}

/// Ends a call with its result.
pub(crate) type FinishCall = Box<dyn FnOnce(RunningCall) -> ToolOutcome + Send>;

/// The tool for one kind of look.
#[derive(Debug)]
pub(crate) struct ReadOnlyTool<L>(PhantomData<L>);

impl<L> ReadOnlyTool<L> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<L: ReadOnlyCall> Tool for ReadOnlyTool<L> {
    fn spec(&self) -> &ToolSpec {
        L::spec()
    }

    fn needs_images(&self) -> bool {
        L::needs_images()
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let (look, site) = (L::parse(input, &site.workspace), site.clone());
        Box::pin(async move {
            let look = look?;
            if let Some(missing) = nowhere(look.path(), &site).await {
                return Err(format!("{}: {missing}", L::spec().id));
            }
            let accesses = touched(&site, vec![look.path()], Access::ReadPath).await;
            Ok(ToolPlan::new(accesses, look.presentation(&site.workspace)))
        })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let look = match L::parse(&input, &runtime.site.workspace) {
                Ok(look) => look,
                Err(text) => return refused(text),
            };
            let call = RunningCall::started(look.presentation(&runtime.site.workspace));
            let (cancel, seen) = (runtime.cancel.clone(), Arc::clone(&runtime.site.seen));
            let answer = tokio::select! {
                answer = look.look(runtime) => answer,
                // A disk that does not answer blocks a thread, not the call.
                () = cancel.cancelled() => Err("cancelled".to_owned()),
            };
            match answer {
                Ok(answer) => noted(answer(call), &seen),
                Err(problem) => call.failed(format!("{}: {problem}", L::spec().id)),
            }
        })
    }
}

/// A path outside that does not exist: do not ask a person for it.
pub(crate) async fn nowhere(path: PathBuf, site: &Site) -> Option<FileError> {
    let (workspace, reach) = (Arc::clone(&site.workspace), OpenRoots::of(site));
    let looked = tokio::task::spawn_blocking(move || missing_outside(&path, &reach, &workspace));
    // A look that panics has seen nothing.
    looked.await.ok().flatten()
}

/// Runs outside of the runtime's threads, because disks may be slow.
pub(crate) async fn blocking<T: Send + 'static, E: ToString + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(error) => Err(format!("failed: {error}")),
    }
}
