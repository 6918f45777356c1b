//! Keeps one server: connects, lists its tools, notices its end and tries again. One task does that for all
//! sessions that have the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_core::ports::mcp::{ServerEntry, ServerState, TRIED_AGAIN};
use attache_core::ports::tool::Site;
use attache_rpc::{Connection, json_lines};
use attache_sandbox::LazySandbox;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::client::{self, RootsChange, ServerClient};
use crate::handler::ServerEvents;
use crate::hidden_files::{self, HiddenCause, HiddenFiles};
use crate::http;
use crate::launch::{self, LocalServer};
use crate::limits::{BACKOFF, LIST_PAUSE, MESSAGE_BYTES, STEADY, TRIES};
use crate::listing::{ListedTool, Listing};
use crate::oauth::{LoginNeed, LoginStore, ServerAccess};
use crate::pool::Variables;
use crate::program::{self, ResolvedProgram, ResolvedServer};
use crate::prompts::ListedPrompt;
use crate::subscriptions::Subscriptions;

/// What everybody who has a server can see of it.
#[derive(Clone, Debug)]
pub(crate) struct ServerView {
    pub(crate) state: ServerState,
    pub(crate) tools: Arc<[ListedTool]>,
    /// Grows when they become others.
    pub(crate) generation: u64,
    pub(crate) prompts: Arc<[ListedPrompt]>,
    /// For prompts.
    pub(crate) prompts_generation: u64,
    /// Tools that were too many.
    pub(crate) left_out: usize,
    /// `None` while it can't be talked to.
    pub(crate) client: Option<ServerClient>,
    /// The first try has come to an end, good or bad.
    pub(crate) is_settled: bool,
}

/// Everything that is needed to have a server.
#[derive(Debug)]
pub(crate) struct ServerPlan {
    pub(crate) entry: ServerEntry,
    pub(crate) roots: watch::Receiver<Vec<PathBuf>>,
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Where it runs and what it may write.
    pub(crate) site: Site,
    pub(crate) sandbox: LazySandbox,
    pub(crate) variables: Variables,
    pub(crate) logins: Arc<dyn LoginStore>,
}

/// A server in use. It ends when its last user is gone.
#[derive(Debug)]
pub(crate) struct Server {
    roots: watch::Sender<Vec<PathBuf>>,
    subscriptions: Arc<Subscriptions>,
    view: watch::Receiver<ServerView>,
    over: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Server {
    /// `plan`: what it is started with, given its roots, which may become others, and its subscriptions.
    pub(crate) fn start(
        roots: Vec<PathBuf>,
        plan: impl FnOnce(watch::Receiver<Vec<PathBuf>>, Arc<Subscriptions>) -> ServerPlan,
    ) -> Self {
        let (roots, subscriptions) = (watch::Sender::new(roots), Arc::<Subscriptions>::default());
        let plan = plan(roots.subscribe(), subscriptions.clone());
        let (tell, view) = watch::channel(ServerView {
            state: ServerState::Connecting,
            tools: Arc::new([]),
            generation: 0,
            prompts: Arc::new([]),
            prompts_generation: 0,
            left_out: 0,
            client: None,
            is_settled: false,
        });
        let over = CancellationToken::new();
        let keeper = Keeper { plan, view: tell };
        let task = tokio::spawn(keeper.keep(over.clone()));
        Self { roots, subscriptions, view, over, task: Some(task) }
    }

    /// Only for one that is no program of this machine: what a sandbox mounts can't change.
    pub(crate) fn set_roots(&self, roots: Vec<PathBuf>) {
        self.roots.send_replace(roots);
    }

    #[cfg(test)]
    pub(crate) fn roots(&self) -> watch::Ref<'_, Vec<PathBuf>> {
        self.roots.borrow()
    }

    pub(crate) fn subscriptions(&self) -> Arc<Subscriptions> {
        self.subscriptions.clone()
    }

    pub(crate) fn view(&self) -> watch::Receiver<ServerView> {
        self.view.clone()
    }

    /// Ends it and waits for that.
    pub(crate) async fn end(mut self) {
        self.over.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the keeper of an MCP server crashed");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// Why a server is not there.
struct Loss {
    why: String,
    again: TryAgain,
}

enum TryAgain {
    Later,
    /// After a login.
    AfterLogin(Arc<ServerAccess>, LoginNeed),
    /// Nothing would be different.
    Never,
}

impl TryAgain {
    async fn wait(&self, pause: Duration) {
        match self {
            Self::Later => tokio::time::sleep(pause).await,
            Self::AfterLogin(access, need) => access.logged_in_since(need).await,
            Self::Never => {}
        }
    }
}

impl Loss {
    fn for_now(why: String) -> Self {
        Self { why, again: TryAgain::Later }
    }

    fn for_good(why: String) -> Self {
        Self { why, again: TryAgain::Never }
    }

    /// The end of a program.
    fn of_program(why: &str, cause: HiddenCause) -> Self {
        match cause {
            HiddenCause::No => Self::for_now(why.to_owned()),
            HiddenCause::Maybe => Self::for_now(hidden_files::explained(why)),
            HiddenCause::Certainly => Self::for_good(hidden_files::explained(why)),
        }
    }

    /// The failure of a server that may need a login; then that is the reason.
    fn of_remote(why: String, access: Option<&Arc<ServerAccess>>) -> Self {
        match access.and_then(|access| Some((access.clone(), access.login_need()?))) {
            Some((access, need)) => {
                Self { why: need.text.clone(), again: TryAgain::AfterLogin(access, need) }
            }
            None => Self::for_now(why),
        }
    }
}

/// An initialized server.
struct LiveServer {
    client: ServerClient,
    connection: Connection,
    local: Option<LocalServer>,
    access: Option<Arc<ServerAccess>>,
    events: Arc<ServerEvents>,
}

/// How long it is left alone at least; `None`: for good. What waits for a person is no failure that counts.
fn next_try(loss: &Loss, failures: usize) -> Option<Duration> {
    let pause = BACKOFF[(failures.max(1) - 1).min(BACKOFF.len() - 1)];
    match loss.again {
        TryAgain::Later => (failures <= TRIES).then_some(pause),
        TryAgain::AfterLogin(..) => Some(Duration::ZERO),
        TryAgain::Never => None,
    }
}

struct Keeper {
    plan: ServerPlan,
    view: watch::Sender<ServerView>,
}

impl Keeper {
    async fn keep(self, over: CancellationToken) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let connected = tokio::select! {
                biased;
                () = over.cancelled() => return,
                connected = self.connect() => connected,
            };
            let loss = match connected {
                Ok(mut live) => {
                    let loss = tokio::select! {
                        biased;
                        () = over.cancelled() => None,
                        loss = self.serve(&mut live) => Some(loss),
                    };
                    self.view.send_modify(|view| view.client = None);
                    live.end().await;
                    let Some(loss) = loss else { return };
                    loss
                }
                Err(loss) => loss,
            };
            failures = if began.elapsed() >= STEADY { 1 } else { failures + 1 };
            let Some(pause) = next_try(&loss, failures) else { return self.fail(&loss.why, "") };
            if let TryAgain::AfterLogin(..) = loss.again {
                failures = 0;
                self.fail(&loss.why, "");
            } else {
                self.fail(&loss.why, &format!("{TRIED_AGAIN}{} s", pause.as_secs()));
            }
            tokio::select! {
                () = over.cancelled() => return,
                () = loss.again.wait(pause) => {}
            }
        }
    }

    fn fail(&self, why: &str, next: &str) {
        tracing::warn!(server = self.plan.entry.name, why, "an MCP server is not there");
        self.view.send_modify(|view| {
            view.state = ServerState::Failed(format!("{why}{next}"));
            view.is_settled = true;
        });
    }

    /// Starts it and initializes.
    async fn connect(&self) -> Result<LiveServer, Loss> {
        let ServerPlan { entry, roots, subscriptions, site, variables, .. } = &self.plan;
        let resolved = program::resolve(entry, &site.workspace.root, variables).map_err(Loss::for_good)?;
        let events = ServerEvents::new(entry, roots.clone(), subscriptions.clone());
        let deadlines = entry.deadlines;
        match resolved {
            ResolvedServer::Program(program) => self.connect_program(program, events).await,
            ResolvedServer::Http { url, headers } => {
                let url = http::address(&url).map_err(Loss::for_good)?;
                let access = self.access(&url, &headers)?;
                let opened = http::open(url, &headers, access.clone());
                let (source, sink, agreement) = opened.map_err(Loss::for_good)?;
                let (roots, agreement) = (RootsChange::Told, Some(&agreement));
                let connected =
                    client::connect(source, sink, events.clone(), deadlines, roots, agreement).await;
                let (client, connection) = connected.map_err(|why| Loss::of_remote(why, access.as_ref()))?;
                Ok(LiveServer { client, connection, local: None, access, events })
            }
            ResolvedServer::Sse { url, headers } => {
                let url = http::address(&url).map_err(Loss::for_good)?;
                let access = self.access(&url, &headers)?;
                let lost = |why| Loss::of_remote(why, access.as_ref());
                let opened = http::open_sse(url, &headers, access.clone(), deadlines.connect).await;
                let (source, sink) = opened.map_err(lost)?;
                let connected =
                    client::connect(source, sink, events.clone(), deadlines, RootsChange::Told, None).await;
                let (client, connection) = connected.map_err(lost)?;
                Ok(LiveServer { client, connection, local: None, access, events })
            }
        }
    }

    /// The logins of a server elsewhere; `None` where its entry says itself who we are.
    fn access(&self, url: &Url, headers: &[(String, String)]) -> Result<Option<Arc<ServerAccess>>, Loss> {
        if http::has_authorization(headers) {
            return Ok(None);
        }
        let ServerPlan { entry, variables, logins, .. } = &self.plan;
        let settings = program::resolve_oauth(entry, variables).map_err(Loss::for_good)?;
        Ok(Some(Arc::new(ServerAccess::new(entry, url, settings, logins.clone()))))
    }

    async fn connect_program(
        &self,
        program: ResolvedProgram,
        events: Arc<ServerEvents>,
    ) -> Result<LiveServer, Loss> {
        let ServerPlan { entry, site, sandbox, variables, .. } = &self.plan;
        let (site, sandbox, rights, path) = (site.clone(), sandbox.clone(), entry.rights, variables.path());
        let launching = tokio::task::spawn_blocking(move || {
            program::check_program(&program, path.as_ref(), &site.workspace.root).map_err(Loss::for_good)?;
            let hidden = HiddenFiles::of(&program, &site, sandbox.level());
            launch::launch(program, &site, rights, path.as_ref(), &sandbox)
                .map(|started| (started, hidden))
                .map_err(|error| Loss::for_now(format!("it could not be started: {error}")))
        });
        let (started, hidden) = launching.await.map_err(|error| Loss::for_now(error.to_string()))??;
        let streams = started.streams().map_err(|error| Loss::for_now(error.to_string()))?;
        let (mut local, streams) = streams;
        let (source, sink) = json_lines(streams, MESSAGE_BYTES);
        let connected =
            client::connect(source, sink, events.clone(), entry.deadlines, RootsChange::Another, None).await;
        match connected {
            Ok((client, connection)) => {
                Ok(LiveServer { client, connection, local: Some(local), access: None, events })
            }
            Err(why) => {
                // Its end says more, if it has ended.
                let end = tokio::time::timeout(Duration::from_millis(300), local.ended()).await;
                Err(match end {
                    Ok(end) => Loss::of_program(&end, hidden.cause(&local.errors())),
                    Err(_) => Loss::for_now(format!("{why}{}", local.last_words())),
                })
            }
        }
    }

    /// Runs until it is lost. Sessions see a new list from their next turn on.
    async fn serve(&self, live: &mut LiveServer) -> Loss {
        let mut roots = self.plan.roots.clone();
        roots.mark_unchanged();
        let listening = live.client.clone();
        let mut listening = std::pin::pin!(listening.listen());
        loop {
            let listing = match live.client.list_tools().await {
                Ok(listing) => listing,
                Err(why) => return Loss::of_remote(why, live.access.as_ref()),
            };
            let prompts = live.client.list_prompts().await;
            self.ready(&live.client, listing, prompts);
            let LiveServer { client, connection, local, access, events } = live;
            loop {
                tokio::select! {
                    () = connection.wait_closed() => {
                        let end = tokio::time::timeout(Duration::from_millis(300), how_it_ended(local)).await;
                        let why = end.unwrap_or_else(|_| "it hung up".to_owned());
                        return Loss::of_remote(why, access.as_ref());
                    }
                    Ok(()) = roots.changed() => client.roots_changed().await,
                    () = &mut listening => {}
                    () = events.lists_changed.notified() => break,
                }
            }
            tokio::time::sleep(LIST_PAUSE).await;
        }
    }

    fn ready(&self, client: &ServerClient, listing: Listing, prompts: Vec<ListedPrompt>) {
        self.view.send_modify(|view| {
            if *view.tools != *listing.tools {
                view.tools = listing.tools.into();
                view.generation += 1;
            }
            if *view.prompts != *prompts {
                view.prompts = prompts.into();
                view.prompts_generation += 1;
            }
            view.left_out = listing.left_out;
            view.client = Some(client.clone());
            view.state = ServerState::Ready;
            view.is_settled = true;
        });
    }
}

async fn how_it_ended(local: &mut Option<LocalServer>) -> String {
    match local {
        Some(local) => local.ended().await,
        None => "the connection was lost".to_owned(),
    }
}

impl LiveServer {
    /// Hangs up, then ends the process.
    async fn end(self) {
        let Self { client, connection, local, .. } = self;
        drop(client);
        connection.drain(Duration::from_millis(100)).await;
        if let Some(local) = local {
            local.end().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certainly_hidden_is_not_tried_again() {
        let next = |cause| next_try(&Loss::of_program("it ended", cause), 1).is_some();
        let causes = [HiddenCause::No, HiddenCause::Maybe, HiddenCause::Certainly];
        assert_eq!(causes.map(next), [true, true, false]);
    }

    #[test]
    fn tries_become_rare_and_come_to_an_end() {
        let loss = Loss::for_now("gone".to_owned());
        let pauses: Vec<_> = (1..=TRIES + 2).map(|failures| next_try(&loss, failures)).collect();
        let seconds: Vec<_> = pauses.iter().map(|pause| pause.map(|pause| pause.as_secs())).collect();
        let expected = [1, 2, 5, 15, 60, 60, 60, 60, 60, 60].map(Some);
        assert_eq!(seconds[..TRIES], expected);
        assert_eq!(seconds[TRIES..], [None, None]);
        assert_eq!(next_try(&Loss::for_good("no such program".to_owned()), 1), None);
    }
}
