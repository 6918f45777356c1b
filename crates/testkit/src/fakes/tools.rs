//! A small family of tools that act on nothing but a counter: one that looks, one that changes, one that hangs,
//! one that panics, one that gives a picture. Arguments: `{"path": "a", "ms": 3}`; a path that starts with `/`
//! is taken as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use attache_core::agents::DEFAULT_AGENT;
use attache_core::ids::{CallId, SessionId};
use attache_core::ports::BoxFuture;
use attache_core::ports::tool::{
    Access, Effect, FoundPicture, Presentation, Site, Tool, ToolKind, ToolOutcome, ToolPlan, ToolRuntime,
    ToolSpec,
};
use attache_core::tool_names::PLAN_EXIT;
use serde_json::{Value, json};

/// How often each call has been run, over all processes that share it, and which paths `touch` has made.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    counts: Arc<Mutex<BTreeMap<CallId, u32>>>,
    touched: Arc<Mutex<BTreeSet<String>>>,
    ended: Arc<Mutex<Vec<SessionId>>>,
    news: Arc<Mutex<Option<String>>>,
}

impl Runs {
    pub fn of(&self, call: &str) -> u32 {
        self.counts.lock().unwrap().get(&CallId::new(call)).copied().unwrap_or_default()
    }

    pub fn all(&self) -> BTreeMap<CallId, u32> {
        self.counts.lock().unwrap().clone()
    }

    pub fn count(&self, call: &CallId) {
        *self.counts.lock().unwrap().entry(call.clone()).or_default() += 1;
    }

    /// The sessions whose end `look` was told of, in order.
    pub fn ended(&self) -> Vec<SessionId> {
        self.ended.lock().unwrap().clone()
    }

    /// What `look` has to tell the model next, though it did not ask.
    pub fn tell(&self, news: &str) {
        *self.news.lock().unwrap() = Some(news.to_owned());
    }

    fn touch(&self, path: &str) {
        self.touched.lock().unwrap().insert(path.to_owned());
    }

    fn is_touched(&self, path: &str) -> bool {
        self.touched.lock().unwrap().contains(path)
    }
}

/// The family: `look` (reads), `touch` (writes, asks), `hang` (until cancelled), `deaf` (ignores cancel),
/// `boom` (panics), `show` (gives a picture; only for models that take some), `change` (understands only a path
/// that was touched), `hang_in_plan` (is never understood), `note` (changes what the session keeps for itself),
/// `plan_exit` (proposes the usual mode).
pub fn family(runs: &Runs) -> Vec<Arc<dyn Tool>> {
    let behaviours = [
        Behaviour::Look,
        Behaviour::Touch,
        Behaviour::Hang,
        Behaviour::Deaf,
        Behaviour::Boom,
        Behaviour::BoomInPlan,
        Behaviour::Show,
        Behaviour::Change,
        Behaviour::HangInPlan,
        Behaviour::Note,
        Behaviour::Propose,
    ];
    behaviours.into_iter().map(|does| Arc::new(Fake { does, runs: runs.clone() }) as Arc<dyn Tool>).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Look,
    Touch,
    Hang,
    Deaf,
    Boom,
    BoomInPlan,
    Show,
    Change,
    HangInPlan,
    Note,
    Propose,
}

#[derive(Debug)]
struct Fake {
    does: Behaviour,
    runs: Runs,
}

fn specs() -> &'static [ToolSpec; 11] {
    static SPECS: OnceLock<[ToolSpec; 11]> = OnceLock::new();
    let spec = |id: &str, kind, effect| ToolSpec {
        id: id.into(),
        description: "A tool for tests.".into(),
        parameters: json!({ "type": "object" }).into(),
        kind,
        effect,
        hidden: false,
    };
    SPECS.get_or_init(|| {
        [
            spec("look", ToolKind::Read, Effect::ReadOnly),
            spec("touch", ToolKind::Edit, Effect::Mutates),
            spec("hang", ToolKind::Other, Effect::ReadOnly),
            spec("deaf", ToolKind::Other, Effect::ReadOnly),
            spec("boom", ToolKind::Other, Effect::ReadOnly),
            spec("boom_in_plan", ToolKind::Other, Effect::ReadOnly),
            spec("show", ToolKind::Read, Effect::ReadOnly),
            spec("change", ToolKind::Edit, Effect::Mutates),
            spec("hang_in_plan", ToolKind::Read, Effect::ReadOnly),
            spec("note", ToolKind::Other, Effect::SessionOnly),
            spec(PLAN_EXIT, ToolKind::SwitchMode, Effect::SessionOnly),
        ]
    })
}

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &specs()[self.does as usize]
    }

    fn needs_images(&self) -> bool {
        self.does == Behaviour::Show
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let name = input.get("path").and_then(Value::as_str).map(str::to_owned);
        let root = site.workspace.root.clone();
        Box::pin(async move {
            let name = name.ok_or_else(|| "`path` is missing".to_string())?;
            let path = root.join(&name);
            let presentation = Presentation { title: self.spec().id.to_string(), ..Presentation::default() };
            let accesses = match self.does {
                Behaviour::Propose => return Ok(ToolPlan::proposing(DEFAULT_AGENT, presentation)),
                Behaviour::Look | Behaviour::Show => vec![Access::ReadPath(path)],
                Behaviour::Touch => vec![Access::WritePath(path)],
                Behaviour::Change if self.runs.is_touched(&name) => {
                    let title = format!("change {name}");
                    let presentation = Presentation { title, ..Presentation::default() };
                    return Ok(ToolPlan::new(vec![Access::WritePath(path)], presentation));
                }
                Behaviour::Change => return Err(format!("{name} does not exist")),
                Behaviour::HangInPlan => std::future::pending().await,
                Behaviour::Hang | Behaviour::Deaf | Behaviour::Boom | Behaviour::Note => Vec::new(),
                Behaviour::BoomInPlan => panic!("the tool panics while it plans, as the test wants"),
            };
            Ok(ToolPlan::new(accesses, presentation))
        })
    }

    fn news(&self, _session: &SessionId) -> Option<String> {
        if self.does == Behaviour::Look { self.runs.news.lock().unwrap().take() } else { None }
    }

    fn session_ended<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        if self.does == Behaviour::Look {
            self.runs.ended.lock().unwrap().push(session.clone());
        }
        Box::pin(std::future::ready(()))
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            self.runs.count(&runtime.call_id);
            let pause = Duration::from_millis(input.get("ms").and_then(Value::as_u64).unwrap_or_default());
            let shown = Presentation { title: self.spec().id.to_string(), ..Presentation::default() };
            match self.does {
                Behaviour::Look
                | Behaviour::Touch
                | Behaviour::Change
                | Behaviour::HangInPlan
                | Behaviour::Propose
                | Behaviour::Note => {
                    if !pause.is_zero() {
                        runtime.progress.show(shown.clone());
                    }
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep(pause) => {}
                        () = runtime.cancel.cancelled() => {
                            return ToolOutcome::Error { text: "stopped".into(), presentation: None };
                        }
                    }
                    if self.does == Behaviour::Touch {
                        self.runs.touch(input["path"].as_str().unwrap_or_default());
                    }
                }
                Behaviour::Hang => {
                    runtime.cancel.cancelled().await;
                    return ToolOutcome::Error { text: "stopped".into(), presentation: None };
                }
                Behaviour::Deaf => babble(&runtime, &shown).await,
                Behaviour::Show => {
                    let path = runtime.site.workspace.root.join(input["path"].as_str().unwrap_or_default());
                    let found = FoundPicture {
                        path,
                        mime: "image/gif",
                        bytes: b"GIF89a".to_vec(),
                        text: String::new(),
                    };
                    return ToolOutcome::Picture { found, presentation: shown };
                }
                Behaviour::Boom | Behaviour::BoomInPlan => panic!("the tool panics, as the test wants"),
            }
            // As large as the test wants it.
            let filler = input.get("bytes").and_then(Value::as_u64).unwrap_or_default();
            // Something new each time, where the test wants it.
            let is_new = input.get("news").and_then(Value::as_bool).unwrap_or_default();
            let news = if is_new { format!(" {}", self.runs.all().len()) } else { String::new() };
            let data = format!("{} done{news}{}", self.spec().id, "x".repeat(filler as usize));
            ToolOutcome::Output { data: json!(data), presentation: shown }
        })
    }
}

/// Shows progress for ever from a task of its own, as a tool with a reader thread does, and never returns.
async fn babble(runtime: &ToolRuntime, shown: &Presentation) {
    let (progress, shown) = (runtime.progress.clone(), shown.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            progress.show(shown.clone());
        }
    });
    std::future::pending::<()>().await;
}
