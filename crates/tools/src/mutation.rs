//! What all tools that change files share: a preview, a lock on each path, and a change that happens completely
//! or not at all.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::tool::{Access, Location, Presentation, Shown, Site, Workspace};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::seen::Sight;
use attache_sandbox::limits::ERROR_BYTES;
use attache_sandbox::temporary::is_shared_temporary;
use attache_sandbox::{LazySandbox, Level};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::bounded::Bounded;
use crate::files::{self, FileError, NewMode};
use crate::instructions::NestedInstructions;
use crate::limits::{ANSWER_BYTES, CHANGE_BYTES};
use crate::locks::PathLocks;
use crate::outcome::{RunningCall, noted, refused};
use crate::read_only::nowhere;
use crate::roots::{gone_workspace, real, touched};
use crate::snapshots;
use crate::text::Encoding;
use crate::texts::{CallTexts, Deed, Knowledge, Original, OriginalContent, Readable};

/// A change of one or several files that is understood but not made yet. Errors are the answer to the model.
pub(crate) trait Mutation: std::fmt::Debug + Sized + Send + Sync + 'static {
    fn spec() -> &'static ToolSpec;
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String>;
    /// Absolute and normal paths, each once.
    fn paths(&self) -> Vec<PathBuf>;
    /// The files whose content would be readable elsewhere afterwards.
    fn moved(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether the result depends on the old content of the files.
    fn old_content(&self) -> OldContent {
        OldContent::Matters
    }
    /// Whether a file may be missing.
    fn makes_files(&self) -> bool {
        true
    }
    /// The presentation before anything is known of the files.
    fn presentation(&self, workspace: &Workspace) -> Presentation;
    /// The changes for the current content of the files, in the order of `paths`. Pure.
    fn change(&self, originals: &[Original]) -> Result<FileChanges, String>;
}

/// How a change depends on the current content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldContent {
    /// Whether it is possible, and its answer, reveal the content: it needs the same permission as reading.
    Matters,
    /// It is possible and reportable without reading the content.
    IsReplaced,
}

#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    pub(crate) steps: Vec<FileStep>,
    /// The answer to the model. Never repeats content.
    pub(crate) answer: String,
    /// None: the planned ones.
    pub(crate) locations: Vec<Location>,
    pub(crate) shown: Vec<Shown>,
}

/// What happens to one of the files.
#[derive(Debug)]
pub(crate) enum FileStep {
    /// `like` is the file whose encoding the new one gets: itself, or the one it was renamed from. `None`:
    /// UTF-8.
    Put {
        file: usize,
        like: Option<usize>,
        body: String,
        mode: NewMode,
    },
    Remove {
        file: usize,
    },
}

impl FileChanges {
    fn show(&mut self, presentation: &mut Presentation) {
        presentation.content = std::mem::take(&mut self.shown);
        if !self.locations.is_empty() {
            presentation.locations = std::mem::take(&mut self.locations);
        }
    }
}

/// The tool for one kind of mutation.
#[derive(Debug)]
pub(crate) struct ChangingTool<M> {
    /// Shared by all tools that change files.
    locks: Arc<PathLocks>,
    /// What commands see of a file depends on it.
    sandbox: LazySandbox,
    mutation: PhantomData<M>,
}

/// Added after a change in `/tmp`, because commands have a `/tmp` of their own.
const TEMPORARY_NOTE: &str = "commands have a /tmp of their own: put files that a command needs into $TMPDIR";

impl<M> ChangingTool<M> {
    pub(crate) fn new(locks: &Arc<PathLocks>, sandbox: &LazySandbox) -> Self {
        Self { locks: Arc::clone(locks), sandbox: Arc::clone(sandbox), mutation: PhantomData }
    }

    /// Whether commands can't see a changed file. Only then is the sandbox probed.
    fn is_out_of_sight(&self, paths: &[PathBuf], workspace: &Workspace) -> bool {
        let is_own = |path: &PathBuf| workspace.roots().any(|root| path.starts_with(root));
        paths.iter().any(|path| is_shared_temporary(path) && !is_own(path))
            && self.sandbox.level() == Level::Full
    }
}

impl<M: Mutation> Tool for ChangingTool<M> {
    fn spec(&self) -> &ToolSpec {
        M::spec()
    }

    fn tells_changes(&self) -> bool {
        true
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let (mutation, site) = (M::parse(input, &site.workspace), site.clone());
        Box::pin(async move { plan(mutation?, &site).await })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            match M::parse(&input, &runtime.site.workspace) {
                Ok(mutation) => {
                    let note = self
                        .is_out_of_sight(&mutation.paths(), &runtime.site.workspace)
                        .then_some(TEMPORARY_NOTE);
                    run(mutation, runtime, Arc::clone(&self.locks), note).await
                }
                Err(text) => refused(text),
            }
        })
    }
}

/// What was done, and what the model knows now.
struct AppliedChange {
    change: FileChanges,
    seen: Vec<Sight>,
}

async fn plan<M: Mutation>(mutation: M, site: &Site) -> Result<ToolPlan, String> {
    let mut presentation = mutation.presentation(&site.workspace);
    if let Some(gone) = gone_workspace(&site.workspace)
        && mutation.paths().iter().any(|path| path.starts_with(&site.workspace.root))
    {
        return Err(format!("{}: {gone}", M::spec().id));
    }
    let texts = CallTexts::for_changing(site, &CancellationToken::new());
    let text = |problem: ChangeError| {
        let problem = problem.in_words(&site.workspace.root);
        Bounded::whole(format!("{}: {problem}", M::spec().id), ERROR_BYTES).into_text()
    };
    let mut read = mutation.moved();
    match prepare(&mutation, &texts).await {
        Ok(mut prepared) => {
            if mutation.old_content() == OldContent::Matters {
                read.extend(closed(&prepared.originals).map(|original| original.path.clone()));
            }
            prepared.change.show(&mut presentation);
        }
        // The model may not learn this before the place is granted; the person who is asked sees what it is
        // for.
        Err(ChangeError::File(FileError::Outside { path })) => {
            // A file to change has to exist.
            if !mutation.makes_files()
                && let Some(missing) = nowhere(path, site).await
            {
                return Err(text(ChangeError::File(missing)));
            }
            if let Ok(mut prepared) = prepare(&mutation, &preview_texts(&mutation, site)).await {
                prepared.change.show(&mut presentation);
            }
        }
        // The rules refuse this with more detail than this error has; except for a link, which is reported
        // here.
        Err(ChangeError::File(FileError::Guarded { .. })) if names_guarded(&mutation, &site.workspace) => {}
        // This error reveals what the files contain.
        Err(problem @ ChangeError::Change(_)) => {
            let read = touched(site, mutation.paths(), Access::ReadPath).await;
            return Ok(ToolPlan::failing(read, presentation, text(problem)));
        }
        Err(problem) => return Err(text(problem)),
    }
    let mut touched_paths = touched(site, mutation.paths(), Access::WritePath).await;
    touched_paths.extend(touched(site, read, Access::ReadPath).await);
    Ok(ToolPlan::new(touched_paths, presentation))
}

/// The files with content that may not be read without a question.
fn closed(originals: &[Original]) -> impl Iterator<Item = &Original> {
    let holds = |original: &&Original| !matches!(original.content, OriginalContent::Missing(_));
    originals.iter().filter(|original| original.readable == Readable::Closed).filter(holds)
}

/// The texts of a call as if its directories were granted already: only for a preview to a person. Files hidden
/// from agents stay hidden, and a client is not asked for what it may not give.
fn preview_texts(mutation: &impl Mutation, site: &Site) -> CallTexts {
    let directory = |path: PathBuf| {
        let path = real(&path).unwrap_or(path);
        path.ancestors().skip(1).find(|ancestor| ancestor.is_dir()).map(Path::to_owned)
    };
    let outside = mutation.paths().into_iter().filter_map(directory);
    let granted = site.granted.iter().cloned().chain(outside).collect();
    CallTexts::for_changing(&Site { granted, client: None, ..site.clone() }, &CancellationToken::new())
}

fn names_guarded(mutation: &impl Mutation, workspace: &Workspace) -> bool {
    let is_guarded = |path: &PathBuf| workspace.guarded.protects(path, &workspace.scratch).is_some();
    mutation.paths().iter().any(is_guarded)
}

async fn run<M: Mutation>(
    mutation: M,
    runtime: ToolRuntime,
    locks: Arc<PathLocks>,
    note: Option<&str>,
) -> ToolOutcome {
    let mut call = RunningCall::started(mutation.presentation(&runtime.site.workspace));
    let (site, paths) = (runtime.site.clone(), mutation.paths());
    // In a task of its own: a change in progress completes and keeps its locks, even if its caller is gone.
    let made = tokio::spawn(async move { make(&mutation, &runtime, &locks).await });
    match made.await {
        Ok(Ok(mut done)) => {
            done.change.show(&mut call.presentation);
            let nested = NestedInstructions::of(&site, paths).await;
            call.seen = done.seen.into_iter().chain(nested.sights()).collect();
            let mut answer = Bounded::head(done.change.answer, ANSWER_BYTES).into_text();
            if let Some(note) = note {
                answer.push_str(&format!("\n[{note}]"));
            }
            noted(nested.behind(call.done(answer)), &site.seen)
        }
        Ok(Err(problem)) => {
            call.failed(format!("{}: {}", M::spec().id, problem.in_words(&site.workspace.root)))
        }
        Err(error) => call.failed(format!("{}: the change failed: {error}", M::spec().id)),
    }
}

#[derive(Debug, thiserror::Error)]
enum ChangeError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0}")]
    Change(String),
    #[error("cancelled; nothing was changed")]
    Cancelled,
    #[error("{error}; {undone}")]
    Broken { error: FileError, undone: String },
}

impl ChangeError {
    /// With names that the model can use.
    fn in_words(self, root: &Path) -> String {
        match self {
            Self::File(error) => error.relative_to(root).to_string(),
            Self::Broken { error, undone } => {
                Self::Broken { error: error.relative_to(root), undone }.to_string()
            }
            problem @ (Self::Change(_) | Self::Cancelled) => problem.to_string(),
        }
    }
}

struct Prepared {
    originals: Vec<Original>,
    change: FileChanges,
    deeds: Vec<(usize, Deed)>,
}

async fn make(
    mutation: &impl Mutation,
    runtime: &ToolRuntime,
    locks: &PathLocks,
) -> Result<AppliedChange, ChangeError> {
    let texts = CallTexts::for_changing(&runtime.site, &runtime.cancel);
    let mut keys: Vec<PathBuf> =
        mutation.paths().iter().map(|path| files::real_name(path, texts.reach())).collect();
    // Always in the same order, so that two changes of the same files can't deadlock.
    keys.sort();
    keys.dedup();
    let mut turns = Vec::with_capacity(keys.len());
    for key in &keys {
        tokio::select! {
            biased;
            () = runtime.cancel.cancelled() => return Err(ChangeError::Cancelled),
            turn = locks.lock(key) => turns.push(turn),
        }
    }
    let prepared = prepare(mutation, &texts).await?;
    if runtime.cancel.is_cancelled() {
        return Err(ChangeError::Cancelled);
    }
    if let Some(sink) = &runtime.snapshots {
        let title = mutation.presentation(&runtime.site.workspace).title;
        let changes = prepared.deeds.iter().map(|(file, deed)| (&prepared.originals[*file], deed));
        let told = snapshots::tell_change(&**sink, &title, changes).await;
        told.map_err(|reason| ChangeError::Change(format!("{reason}; nothing was changed")))?;
    }
    perform(prepared, &texts).await
}

/// Everything but the change itself: finds all possible errors before touching anything.
async fn prepare(mutation: &impl Mutation, texts: &CallTexts) -> Result<Prepared, ChangeError> {
    let mut originals: Vec<Original> = Vec::new();
    let mut room = CHANGE_BYTES;
    for path in mutation.paths() {
        let original = texts.load(&path).await?;
        room = room.checked_sub(original.size()).ok_or_else(|| {
            ChangeError::Change(format!(
                "the files have more than {CHANGE_BYTES} bytes together; change fewer at once"
            ))
        })?;
        originals.push(original);
    }
    let mut change = mutation.change(&originals).map_err(ChangeError::Change)?;
    let mut deeds = Vec::new();
    for step in std::mem::take(&mut change.steps) {
        deeds.push(match step {
            FileStep::Put { file, like, body, mode } => {
                let encoding = like.map_or(Encoding::UTF_8, |like| originals[like].encoding());
                (file, originals[file].put(body, mode, encoding)?)
            }
            FileStep::Remove { file } => (file, Deed::Remove),
        });
    }
    Ok(Prepared { originals, change, deeds })
}

async fn perform(prepared: Prepared, texts: &CallTexts) -> Result<AppliedChange, ChangeError> {
    let Prepared { originals, mut change, deeds } = prepared;
    let of = |file: usize| deeds.iter().find(|(changed, _)| *changed == file).map(|(_, deed)| deed);
    let seen = originals.iter().enumerate().filter_map(|(file, original)| original.sight(of(file))).collect();
    let outdated: Vec<(usize, String)> = originals
        .iter()
        .enumerate()
        .filter(|(_, original)| original.knowledge == Knowledge::Outdated)
        .map(|(file, original)| (file, original.digest_after(of(file))))
        .collect();
    let mut done = Vec::new();
    for (file, deed) in deeds {
        match texts.perform(&originals[file], deed).await {
            Ok(()) => done.push(file),
            Err(error) if done.is_empty() => return Err(error.into()),
            Err(error) => {
                let undone = undo(&originals, &done, texts).await;
                return Err(ChangeError::Broken { error, undone });
            }
        }
    }
    for (file, digest) in outdated {
        let original = &originals[file];
        if !texts.seen().was_told(&original.real, &original.digest) {
            change.answer.push_str(&format!(
                "\n{} had changed since you last read or wrote it; the change was made to what is there now",
                original.told
            ));
        }
        texts.seen().note_told(original.real.clone(), digest);
    }
    Ok(AppliedChange { change, seen })
}

/// Undoes what was done, the last first, and says how that went.
async fn undo(originals: &[Original], done: &[usize], texts: &CallTexts) -> String {
    let mut failures = Vec::new();
    for file in done.iter().rev() {
        if let Err(error) = texts.put_back(&originals[*file]).await {
            failures.push(texts.in_words(error));
        }
    }
    match failures.is_empty() {
        true => "everything is as it was before".to_owned(),
        false => format!("and it could not be undone everywhere: {}", failures.join("; ")),
    }
}
