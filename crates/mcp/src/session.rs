//! The servers of one session: their tools under the session's names, how they are, and what people are told of
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{
    BegunArgument, ServerNotices, ServerOrigin, ServerPrompt, ServerState, ServerStatus, SessionServers,
    WaitingServer, WrittenPrompt,
};
use attache_core::ports::tool::{Tool, ToolSource};
use attache_core::ports::{BoxFuture, Delegate};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits::TAKEN_IN_BYTES;
use crate::listing::{ListedTool, shortened};
use crate::names::TakenNames;
use crate::oauth::LoginPlan;
use crate::prompts::ListedPrompt;
use crate::sampling::SamplingBudget;
use crate::server::{Server, ServerView};
use crate::subscriptions::Subscriptions;
use crate::tool::{McpTool, SessionShare};

mod logins;
mod prompts;

#[derive(Debug)]
pub(crate) struct OpenedServers {
    /// Why a lock: the session asks for tools, its commands for the state. Held without waiting.
    members: Mutex<Members>,
    notices: ServerNotices,
    over: CancellationToken,
    /// A session that is lost without a word ends what was begun for it, too.
    _guard: DropGuard,
}

#[derive(Debug)]
struct Members {
    list: Vec<Member>,
    names: TakenNames,
    commands: TakenNames,
    /// Of all servers together.
    budget: Arc<SamplingBudget>,
    /// All tools, while no server has others.
    tools: Option<Arc<[Arc<dyn Tool>]>>,
    notices: ServerNotices,
}

#[derive(Debug)]
struct Member {
    name: String,
    about: String,
    /// Its program, arguments, names of variables or address; no value of a variable or header.
    reached: String,
    /// What is needed to log in to it; `None` until the user consented to the server.
    login: Option<LoginPlan>,
    kind: MemberKind,
}

#[derive(Debug)]
enum MemberKind {
    Has(RunningServer),
    Waits(String),
}

#[derive(Debug)]
struct RunningServer {
    /// `None` once the session has let go of it.
    server: Option<Arc<Server>>,
    view: watch::Receiver<ServerView>,
    generation: u64,
    tools: Vec<Arc<McpTool>>,
    /// What all tools that it ever had cost: a session keeps those that are gone, so that they can say so.
    taken_in: usize,
    /// People were told that there is no more room.
    is_told: bool,
    /// Names stay what they were when a tool comes back.
    given: HashMap<String, String>,
    /// For commands of prompts.
    given_commands: HashMap<String, String>,
    subscriptions: Arc<Subscriptions>,
    share: Arc<SessionShare>,
}

impl OpenedServers {
    pub(crate) fn new(notices: ServerNotices) -> Self {
        let over = CancellationToken::new();
        let members = Members {
            list: Vec::new(),
            names: TakenNames::default(),
            commands: TakenNames::of_commands(),
            budget: Arc::default(),
            tools: None,
            notices: notices.clone(),
        };
        Self { members: Mutex::new(members), notices, _guard: over.clone().drop_guard(), over }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().list.iter().any(|member| member.name == name)
    }

    /// A project's entry with the name of a server that the user has configured: rules about that name are the
    /// user's word about their own.
    pub(crate) fn leave_out(&self, name: &str) {
        let name = legible_line(name);
        self.notices.tell(
            format!("The project's MCP server {name} is not used"),
            "Your own configuration has a server of this name. Give one of them another name.".to_owned(),
        );
    }

    pub(crate) fn add(&mut self, login: LoginPlan, server: Arc<Server>) {
        let entry = &login.entry;
        let from = match &entry.origin {
            ServerOrigin::Client => "of the editor".to_owned(),
            ServerOrigin::User => "of your configuration".to_owned(),
            ServerOrigin::Project(file) => format!("of {}", file.display()),
        };
        let view = server.view();
        self.watch(entry.name.clone(), view.clone());
        let mut members = self.lock();
        let share = SessionShare { budget: members.budget.clone(), ..SessionShare::default() };
        let running = RunningServer {
            subscriptions: server.subscriptions(),
            server: Some(server),
            view,
            generation: 0,
            tools: Vec::new(),
            taken_in: 0,
            is_told: false,
            given: HashMap::new(),
            given_commands: HashMap::new(),
            share: Arc::new(share),
        };
        members.list.push(Member {
            name: entry.name.clone(),
            about: format!("{}, {from}", entry.transport.as_str()),
            reached: format!("{:?}", entry.transport),
            kind: MemberKind::Has(running),
            login: Some(login),
        });
    }

    pub(crate) fn add_waiting(&mut self, waiting: WaitingServer) {
        self.lock().list.push(Member {
            name: waiting.name,
            about: format!("of {}", waiting.file.display()),
            reached: String::new(),
            login: None,
            kind: MemberKind::Waits(waiting.how),
        });
    }

    /// Tells people when a server fails, and not again while it only goes on failing.
    fn watch(&self, name: String, mut view: watch::Receiver<ServerView>) {
        let (notices, name) = (self.notices.clone(), shortened(&name, 40));
        tokio::spawn(self.over.clone().run_until_cancelled_owned(async move {
            let (mut is_told, mut prompts) = (false, 0);
            loop {
                let (state, left_out, generation) = {
                    let view = view.borrow_and_update();
                    (view.state.clone(), view.left_out, view.prompts_generation)
                };
                if std::mem::replace(&mut prompts, generation) != generation {
                    notices.prompts_changed();
                }
                match state {
                    ServerState::Failed(why) if !is_told => {
                        is_told = true;
                        notices.tell(format!("The MCP server {name} is not available"), why);
                    }
                    ServerState::Ready => {
                        is_told = false;
                        if left_out > 0 {
                            let title = format!("The MCP server {name} has too many tools");
                            notices.tell(title, format!("{left_out} of them are left out"));
                        }
                    }
                    ServerState::Failed(_) | ServerState::Connecting | ServerState::WaitingForConsent(_) => {}
                }
                if view.changed().await.is_err() {
                    return;
                }
            }
        }));
    }
}

impl RunningServer {
    /// Whether there is room for a tool that is new, or other than it was.
    fn takes_in(&mut self, tool: &ListedTool) -> bool {
        let taken_in = self.taken_in + tool.bytes();
        let fits = taken_in <= TAKEN_IN_BYTES;
        if fits {
            self.taken_in = taken_in;
        }
        fits
    }
}

impl Members {
    /// Makes tools of what the servers list now. Those that have not changed stay the same objects.
    fn look(&mut self) {
        let Self { list, names, tools, notices, .. } = self;
        for member in list {
            let MemberKind::Has(running) = &mut member.kind else { continue };
            let view = running.view.borrow().clone();
            if view.generation == running.generation {
                continue;
            }
            let mut before: HashMap<String, Arc<McpTool>> =
                running.tools.drain(..).map(|tool| (tool.listed().name.clone(), tool)).collect();
            let mut left_out = 0;
            for listed in view.tools.iter() {
                let same = before.remove(&listed.name).filter(|tool| tool.listed() == listed);
                if same.is_none() && !running.takes_in(listed) {
                    left_out += 1;
                    continue;
                }
                let given = running.given.entry(listed.name.clone());
                let name = given.or_insert_with(|| names.take(&member.name, &listed.name)).clone();
                let make = || {
                    let (view, share) = (running.view.clone(), running.share.clone());
                    Arc::new(McpTool::new(name, &member.name, &member.reached, listed.clone(), view, share))
                };
                running.tools.push(same.unwrap_or_else(make));
            }
            if left_out > 0 && !std::mem::replace(&mut running.is_told, true) {
                let title =
                    format!("The MCP server {} changes its tools all the time", shortened(&member.name, 40));
                notices.tell(title, format!("{left_out} of them are left out, and what is new from now on"));
            }
            running.generation = view.generation;
            *tools = None;
        }
    }

    fn tools(&mut self) -> Arc<[Arc<dyn Tool>]> {
        self.look();
        let of_member = |member: &Member| match &member.kind {
            MemberKind::Has(running) => running.tools.clone(),
            MemberKind::Waits(_) => Vec::new(),
        };
        let all = || self.list.iter().flat_map(of_member).map(|tool| tool as Arc<dyn Tool>).collect();
        match &self.tools {
            Some(tools) => tools.clone(),
            None => {
                let tools: Arc<[Arc<dyn Tool>]> = all();
                self.tools = Some(tools.clone());
                tools
            }
        }
    }
}

impl ToolSource for OpenedServers {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        self.lock().tools()
    }
}

impl SessionServers for OpenedServers {
    fn status(&self) -> Vec<ServerStatus> {
        let mut members = self.lock();
        members.look();
        // Gives each its command.
        members.prompts();
        let status = |member: &Member| {
            let (state, tools, prompts) = match &member.kind {
                MemberKind::Has(running) => {
                    let view = running.view.borrow();
                    let command = |prompt: &ListedPrompt| running.given_commands.get(&prompt.name);
                    let commands =
                        view.prompts.iter().filter_map(command).map(|command| command.as_str().into());
                    let names = running.tools.iter().map(|tool| tool.spec().id.clone()).collect();
                    (view.state.clone(), names, commands.collect())
                }
                MemberKind::Waits(how) => {
                    (ServerState::WaitingForConsent(how.clone()), Vec::new(), Vec::new())
                }
            };
            ServerStatus { name: member.name.clone(), about: member.about.clone(), state, tools, prompts }
        };
        members.list.iter().map(status).collect()
    }

    fn settled(&self) -> BoxFuture<'static, ()> {
        let view = |member: &Member| match &member.kind {
            MemberKind::Has(running) => Some(running.view.clone()),
            MemberKind::Waits(_) => None,
        };
        let views: Vec<_> = self.lock().list.iter().filter_map(view).collect();
        Box::pin(async move {
            join_all(views.into_iter().map(|mut view| async move {
                // A server that has ended is settled, too.
                drop(view.wait_for(|view| view.is_settled).await);
            }))
            .await;
        })
    }

    fn prompts(&self) -> Arc<[ServerPrompt]> {
        self.lock().prompts()
    }

    fn write_out(
        &self,
        command: &str,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<WrittenPrompt, String>> {
        Box::pin(self.writing(command, arguments))
    }

    fn suggestions(
        &self,
        command: &str,
        given: Vec<(String, String)>,
        argument: BegunArgument<'_>,
    ) -> BoxFuture<'static, Vec<String>> {
        Box::pin(self.suggesting(command, given, argument))
    }

    fn resource_news(&self) -> Option<String> {
        let news = |member: &Member| match &member.kind {
            MemberKind::Has(running) => running.share.read.news(&running.subscriptions),
            MemberKind::Waits(_) => Vec::new(),
        };
        let changed: Vec<String> = self.lock().list.iter().flat_map(news).collect();
        (!changed.is_empty()).then(|| {
            format!("<note>\nResources that you have read have changed: {}\n</note>", changed.join(", "))
        })
    }

    fn log_in(&self, name: &str, client: Option<Arc<dyn Delegate>>) -> Result<(), String> {
        self.begin_login(name, client)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.over.cancel();
        let take = |member: &mut Member| match &mut member.kind {
            MemberKind::Has(running) => running.server.take(),
            MemberKind::Waits(_) => None,
        };
        let servers: Vec<_> = self.lock().list.iter_mut().filter_map(take).collect();
        Box::pin(async move {
            join_all(servers.into_iter().filter_map(Arc::into_inner).map(Server::end)).await;
        })
    }
}
