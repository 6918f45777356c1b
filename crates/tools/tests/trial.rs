//! A workspace of its own for each test, and calls as the loop makes them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use attache_core::ids::{CallId, SessionId};
use attache_core::ports::tool::{NetworkGrant, Presentation, Progress, Shown, Site, Workspace, WriteGrant};
use attache_core::ports::{Delegate, Tool, ToolOutcome, ToolPlan, ToolRuntime};
use attache_core::scope::Guarded;
use attache_core::seen::SeenFiles;
use attache_core::watchdog::{Commands, ReadRules};
use attache_sandbox::{LazySandbox, Level, Sandbox};
use attache_tools::Equipment;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) shown: Mutex<Vec<Presentation>>,
    pub(crate) data: Mutex<Vec<(String, Value)>>,
}

impl Progress for Recorder {
    fn show(&self, presentation: Presentation) {
        self.shown.lock().unwrap().push(presentation);
    }
    fn data(&self, name: &str, data: Value) {
        self.data.lock().unwrap().push((name.to_owned(), data));
    }
}

pub(crate) struct Trial {
    /// Removed with the trial; `None` where somebody else does that.
    _directory: Option<tempfile::TempDir>,
    pub(crate) base: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) sandbox: LazySandbox,
    pub(crate) progress: Arc<Recorder>,
    pub(crate) cancel: CancellationToken,
    pub(crate) closed: Option<ReadRules>,
    pub(crate) client: Option<Arc<dyn Delegate>>,
    pub(crate) seen: Arc<SeenFiles>,
}

/// What variables move out of the home of a trial that is held, and to where below `moved`.
const MOVED: [(&str, &str); 3] = [("GNUPGHOME", "gnupg"), ("KUBECONFIG", "kube"), ("ZDOTDIR", "zsh")];

impl Trial {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("root")).unwrap();
        Self { _directory: Some(directory), ..Self::beneath(base) }
    }

    /// In a place that has a `root` already and that somebody else removes.
    pub(crate) fn beneath(base: PathBuf) -> Self {
        let root = base.join("root");
        let workspace = Arc::new(Workspace {
            session_id: SessionId::new("ses_1"),
            root: root.clone(),
            additional: vec![],
            scratch: base.join("scratch"),
            guarded: Default::default(),
            skills: Default::default(),
        });
        Self {
            _directory: None,
            base,
            root,
            workspace,
            tools: attache_tools::builtin(Equipment { sandbox: found(Level::None), ..Equipment::bare() }),
            sandbox: found(Level::None),
            progress: Arc::default(),
            cancel: CancellationToken::new(),
            closed: None,
            client: None,
            seen: Arc::default(),
        }
    }

    /// Commands are held as far as this machine can; fails where it can't do that level.
    pub(crate) fn held(level: Level) -> Self {
        Self::new().hold(level)
    }

    /// The same by this bubblewrap.
    pub(crate) fn held_by(bubblewrap: PathBuf) -> Self {
        let helper = PathBuf::from(env!("CARGO_BIN_EXE_sandboxed"));
        let sandbox = Sandbox::found_lazily_by(move || Sandbox::probe_with(bubblewrap, helper));
        assert_eq!(sandbox.level(), Level::Full, "{:?}", sandbox.shortfalls());
        Self::new().hold_with(sandbox)
    }

    pub(crate) fn hold(self, level: Level) -> Self {
        self.hold_with(found(level))
    }

    fn hold_with(self, sandbox: LazySandbox) -> Self {
        let mut trial = self;
        trial.sandbox = sandbox;
        trial.tools =
            attache_tools::builtin(Equipment { sandbox: Arc::clone(&trial.sandbox), ..Equipment::bare() });
        let home = trial.base.join("home");
        std::fs::create_dir_all(&home).unwrap();
        let moved = trial.base.join("moved");
        let guarded = Guarded::new(Some(home), vec![trial.base.join("own")]).with_variables(|variable| {
            let name = MOVED.iter().find(|(moved, _)| *moved == variable)?.1;
            Some(moved.join(name).into())
        });
        trial.workspace = Arc::new(Workspace {
            scratch: trial.base.join("own/scratch/ses_1"),
            guarded: Arc::new(guarded),
            ..(*trial.workspace).clone()
        });
        std::fs::create_dir_all(&trial.workspace.scratch).unwrap();
        trial
    }

    pub(crate) fn with_file(name: &str, content: impl AsRef<[u8]>) -> Self {
        let trial = Self::new();
        std::fs::write(trial.root.join(name), content).unwrap();
        trial
    }

    /// A file, its directories included.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.root)
    }

    pub(crate) fn tool(&self, id: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| *tool.spec().id == *id).unwrap()
    }

    pub(crate) async fn plan(&self, id: &str, input: Value) -> Result<ToolPlan, String> {
        self.tool(id).plan(&input, &self.site()).await
    }

    pub(crate) fn site(&self) -> Site {
        let (workspace, client) = (Arc::clone(&self.workspace), self.client.clone());
        let (closed, seen) = (self.closed.clone(), Arc::clone(&self.seen));
        let writes = Arc::default();
        Site { workspace, granted: Arc::new([]), judged: None, writes, closed, client, seen }
    }

    pub(crate) fn runtime(&self) -> ToolRuntime {
        ToolRuntime {
            snapshots: None,
            call_id: CallId::new("call_1"),
            site: self.site(),
            network: NetworkGrant::Withheld,
            writes: WriteGrant::Granted,
            commands: Commands::Any,
            result_bytes: usize::MAX,
            progress: Arc::clone(&self.progress) as Arc<dyn Progress>,
            side_model: None,
            cancel: self.cancel.clone(),
        }
    }

    pub(crate) async fn run(&self, id: &str, input: Value) -> ToolOutcome {
        self.tool(id).run(input, self.runtime()).await
    }

    /// The data and presentation of a call that must succeed.
    pub(crate) async fn done(&self, id: &str, input: Value) -> (Value, Presentation) {
        match self.run(id, input).await {
            ToolOutcome::Output { data, presentation } => (data, presentation),
            ToolOutcome::Picture { found, .. } => panic!("{id} gave a picture: {}", found.path.display()),
            ToolOutcome::Error { text, .. } => panic!("{id} failed: {text}"),
        }
    }

    /// The error of a call that must fail.
    pub(crate) async fn failed(&self, id: &str, input: Value) -> String {
        match self.run(id, input).await {
            ToolOutcome::Error { text, .. } => text,
            ToolOutcome::Output { data, .. } => panic!("{id} succeeded: {data}"),
            ToolOutcome::Picture { found, .. } => panic!("{id} gave a picture: {}", found.path.display()),
        }
    }
}

/// Looked for once: that starts processes.
fn found(level: Level) -> LazySandbox {
    static FOUND: [OnceLock<LazySandbox>; 3] = [const { OnceLock::new() }; 3];
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_sandboxed"));
    let (place, look): (usize, fn(PathBuf) -> Sandbox) = match level {
        Level::Full => (0, Sandbox::probe),
        Level::Reduced => (1, Sandbox::probe_reduced),
        Level::None => (2, Sandbox::none),
    };
    let found = FOUND[place].get_or_init(|| Sandbox::found_lazily_by(move || look(helper)));
    assert_eq!(found.level(), level, "{:?}", found.shortfalls());
    Arc::clone(found)
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = directory
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The only text block of a presentation.
pub(crate) fn shown_text(presentation: &Presentation) -> &str {
    match presentation.content.as_slice() {
        [Shown::Text { text }] => text,
        other => panic!("not one text block: {other:?}"),
    }
}

/// The most that this process has had in memory.
pub(crate) fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs the test of that name once more in a process of its own, with `environment` added. For tests that
/// measure their process, or change what it inherits: neither works beside others.
pub(crate) fn alone(test: &str, environment: &[(&str, &str)]) -> Alone {
    const HERE: &str = "ATTACHE_TEST_ALONE";
    if std::env::var_os(HERE).is_some() {
        return Alone::Here;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        // Programs below the directory where a process starts are never taken for helpers.
        .current_dir("/")
        .env(HERE, "1")
        .envs(environment.iter().copied())
        .status()
        .unwrap();
    assert!(status.success(), "failed in its own process");
    Alone::Done
}

#[derive(PartialEq, Eq)]
pub(crate) enum Alone {
    Here,
    Done,
}
