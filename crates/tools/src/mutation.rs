//! What all tools that change files have in common: a preview, a turn at each path, and all of a change or
//! nothing of it.

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

/// A change of one file or several, understood and not yet made. Errors are the answer to the model.
pub(crate) trait Mutation: std::fmt::Debug + Sized + Send + Sync + 'static {
    fn spec() -> &'static ToolSpec;
    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String>;
    /// Absolute and normal, each once.
    fn paths(&self) -> Vec<PathBuf>;
    /// Those whose content could be read elsewhere afterwards.
    fn moved(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether what comes of it depends on what the files hold.
    fn old_content(&self) -> OldContent {
        OldContent::Matters
    }
    /// Whether a file need not be there yet.
    fn makes_files(&self) -> bool {
        true
    }
    /// How the call looks while nothing is known of the files.
    fn presentation(&self, workspace: &Workspace) -> Presentation;
    /// What is to be done to the files as they are now, in the order of `paths`. Pure.
    fn change(&self, originals: &[Original]) -> Result<FileChanges, String>;
}

/// What a change has to do with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldContent {
    /// Whether it can be made, and what it says, tells of the content: it needs the same word as reading.
    Matters,
    /// It can be made and told of without a look.
    IsReplaced,
}

#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    pub(crate) steps: Vec<FileStep>,
    /// What the model is told. It never repeats content.
    pub(crate) answer: String,
    /// None: those that were planned.
    pub(crate) locations: Vec<Location>,
    pub(crate) shown: Vec<Shown>,
}

/// What becomes of one of the files.
#[derive(Debug)]
pub(crate) enum FileStep {
    /// `like` is the file whose encoding it gets: itself, or the one it was renamed from. `None`: it is UTF-8.
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

/// The tool whose calls are mutations of one kind.
#[derive(Debug)]
pub(crate) struct ChangingTool<M> {
    /// Shared by all tools that change files.
    locks: Arc<PathLocks>,
    /// What commands see of a file.
    sandbox: LazySandbox,
    mutation: PhantomData<M>,
}

/// Behind a change in `/tmp`, where commands have one of their own.
const TEMPORARY_NOTE: &str = "commands have a /tmp of their own: put files that a command needs into $TMPDIR";

impl<M> ChangingTool<M> {
    pub(crate) fn new(locks: &Arc<PathLocks>, sandbox: &LazySandbox) -> Self {
        Self { locks: Arc::clone(locks), sandbox: Arc::clone(sandbox), mutation: PhantomData }
    }

    /// Whether commands would look for a changed file in vain. The sandbox is looked for only then.
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
        // Not ours to tell the model of before it is granted; whoever is asked for the grant sees what it is
        // for.
        Err(ChangeError::File(FileError::Outside { path })) => {
            // What is to be changed has to be there.
            if !mutation.makes_files()
                && let Some(missing) = nowhere(path, site).await
            {
                return Err(text(ChangeError::File(missing)));
            }
            if let Ok(mut prepared) = prepare(&mutation, &preview_texts(&mutation, site)).await {
                prepared.change.show(&mut presentation);
            }
        }
        // Refused by whoever reads the plan, which shows more than an error does. A link is told here.
        Err(ChangeError::File(FileError::Guarded { .. })) if names_guarded(&mutation, &site.workspace) => {}
        // It tells what the files hold.
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

/// Those that may not be read without a question, and that hold something.
fn closed(originals: &[Original]) -> impl Iterator<Item = &Original> {
    let holds = |original: &&Original| !matches!(original.content, OriginalContent::Missing(_));
    originals.iter().filter(|original| original.readable == Readable::Closed).filter(holds)
}

/// The texts of a call as if its directories were granted already: only for what a person is shown. What is
/// hidden from agents stays so, and a client is not asked for what it may not give.
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
    // A task of its own: a change that is under way goes to its end, and keeps its turn, even when its caller
    // is gone and no one waits for it.
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
    /// With names as the model can use them.
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
    // Always in the same order: two changes of the same files must not wait for each other.
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

/// Everything but the change itself: what could be wrong with it is found here, with nothing touched.
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

/// Takes back what was done, the last first, and says how that went.
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
