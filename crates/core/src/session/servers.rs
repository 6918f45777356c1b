//! The servers of a session: opened once its client has its answer, the first prompt waits for them, and they
//! close with the session. Starts no process itself.

use std::path::PathBuf;
use std::sync::Arc;

use super::lineage::Lineage;
use super::{Session, SessionCommand};
use crate::hub::HubError;
use crate::ids::MessageId;
use crate::legible::visible;
use crate::limits::{SERVERS_CLOSE, SERVERS_WAIT};
use crate::metadata::SessionMeta;
use crate::ports::SessionServers;
use crate::ports::mcp::{ServerEntry, ServerNews, ServerNotices, ServerPrompt, ServerStatus, WantedServers};
use crate::ports::store::Change;
use crate::watchdog::Rules;

/// A session's servers.
#[derive(Debug, Default)]
pub(crate) struct OwnServers {
    /// The servers that the latest new, load, resume or fork asked for.
    requested: Vec<ServerEntry>,
    open: Option<OpenServers>,
    /// The prompts that are listed as commands.
    prompts: Arc<[ServerPrompt]>,
    first_wait: FirstWait,
    /// Whether people were told that this host has no servers.
    absence_told: bool,
}

#[derive(Debug)]
struct OpenServers {
    servers: Arc<dyn SessionServers>,
    /// The directories beside the root that the servers were told of.
    additional: Vec<PathBuf>,
    wanted: WantedServers,
}

/// Only the first prompt in the life of a session waits for servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstWait {
    #[default]
    Due,
    Done,
}

/// How a wait for servers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServersAwaited {
    GoOn,
    /// The user cancelled, or the session ends.
    Cancelled,
}

impl OwnServers {
    pub(crate) fn requested(&self) -> &[ServerEntry] {
        &self.requested
    }

    pub(super) fn open_servers(&self) -> Option<Arc<dyn SessionServers>> {
        Some(self.open.as_ref()?.servers.clone())
    }

    pub(super) fn prompts(&self) -> &[ServerPrompt] {
        &self.prompts
    }

    /// Reads the servers' prompts; returns whether the list has changed.
    pub(super) fn take_prompts(&mut self) -> bool {
        let now = self.open.as_ref().map(|open| open.servers.prompts()).unwrap_or_default();
        let is_other = *now != *self.prompts;
        self.prompts = now;
        is_other
    }

    /// News of resources, for the next message to the model.
    pub(super) fn resource_news(&self) -> Option<String> {
        self.open.as_ref()?.servers.resource_news()
    }

    fn status(&self) -> Vec<ServerStatus> {
        self.open.as_ref().map(|open| open.servers.status()).unwrap_or_default()
    }
}

impl Session {
    /// Replaces the servers that the client asked for.
    pub(super) fn want_servers(&mut self, requested: Vec<ServerEntry>) {
        self.servers.requested = requested;
        self.reopen_changed_servers();
    }

    /// Reopens the servers after the client, its directories or the project's configuration changed; unchanged
    /// servers keep running.
    pub(super) fn reopen_changed_servers(&mut self) {
        let (additional, wanted) = (self.workspace().additional, self.wanted_servers());
        let is_other = |open: &OpenServers| open.wanted != wanted || open.additional != additional;
        if !self.servers.open.as_ref().is_some_and(is_other) {
            return;
        }
        let before = self.servers.open.take();
        self.connect_servers();
        // After opening the new ones, so that servers in both lists keep running.
        if let Some(before) = before {
            tokio::spawn(before.servers.close());
        }
        self.servers.first_wait = FirstWait::Due;
    }

    fn wanted_servers(&self) -> WantedServers {
        let project = self.project.settings();
        WantedServers {
            of_client: self.servers.requested.clone(),
            of_project: project.map(|settings| settings.servers.clone()).unwrap_or_default(),
            waiting: project.map(|settings| settings.waiting_servers.clone()).unwrap_or_default(),
        }
    }

    /// Begins to connect, unless it did so before.
    pub(super) fn connect_servers(&mut self) {
        if self.servers.open.is_some() || self.open_foreign() {
            return;
        }
        let Some(servers) = self.hub.ports.servers.clone() else { return self.tell_of_no_servers() };
        let wanted = self.wanted_servers();
        let commands = self.inbox.weak_sender();
        let notices = ServerNotices::new(move |news| {
            let command = match news {
                ServerNews::Notice { title, description } => {
                    SessionCommand::Notice { severity: "warning", title, description: Some(description) }
                }
                ServerNews::Word { title, description } => {
                    SessionCommand::Notice { severity: "info", title, description: Some(description) }
                }
                ServerNews::PromptsChanged => SessionCommand::PromptsChanged,
            };
            // A session that has ended needs no news.
            if let Some(commands) = commands.upgrade() {
                drop(commands.send(command));
            }
        });
        let workspace = Arc::new(self.workspace());
        let additional = workspace.additional.clone();
        let servers = servers.open(workspace, wanted.clone(), notices);
        self.toolbox.set_own(servers.clone());
        self.servers.open = Some(OpenServers { servers, additional, wanted });
        self.list_server_prompts();
    }

    fn tell_of_no_servers(&mut self) {
        if self.servers.requested.is_empty() || std::mem::replace(&mut self.servers.absence_told, true) {
            return;
        }
        let names: Vec<&str> = self.servers.requested.iter().map(|entry| entry.name.as_str()).collect();
        self.tell_ourselves(SessionCommand::Notice {
            severity: "warning",
            title: "MCP servers are not started here".to_owned(),
            description: Some(format!("{}. The session continues without them.", names.join(", "))),
        });
    }

    /// Makes the first prompt wait for servers that are still connecting. Commands that can't wait run
    /// meanwhile.
    pub(super) async fn await_servers(&mut self, message_id: &MessageId) -> ServersAwaited {
        self.begin_to_know();
        let (Some(open), FirstWait::Due) = (&self.servers.open, self.servers.first_wait) else {
            return ServersAwaited::GoOn;
        };
        self.servers.first_wait = FirstWait::Done;
        let mut settled = std::pin::pin!(tokio::time::timeout(SERVERS_WAIT, open.servers.settled()));
        loop {
            tokio::select! {
                biased;
                _ = &mut settled => return ServersAwaited::GoOn,
                command = self.inbox.arriving() => {
                    let Some(command) = command else { return ServersAwaited::Cancelled };
                    if self.ends_intake(command, Some(message_id)) {
                        self.servers.first_wait = FirstWait::Due;
                        return ServersAwaited::Cancelled;
                    }
                }
                happened = self.activity.next() => self.take_note(happened).await,
            }
        }
    }

    /// For a turn that continues after its process ended: its model has seen the servers' tools, and the list
    /// must not shrink between two requests.
    pub(super) async fn settle_servers(&mut self) {
        let Some(open) = &self.servers.open else { return };
        if tokio::time::timeout(SERVERS_WAIT, open.servers.settled()).await.is_err() {
            tracing::debug!("a turn continues without a server that is still connecting");
        }
    }

    /// Waits too, because what the user types first may be a prompt of a server that is still connecting;
    /// `None`: the user cancelled, or the session ends.
    pub(super) async fn await_prompts(&mut self, message_id: Option<&MessageId>) -> Option<()> {
        self.begin_to_know();
        if let (Some(open), FirstWait::Due) = (&self.servers.open, self.servers.first_wait) {
            let settled = tokio::time::timeout(SERVERS_WAIT, open.servers.settled());
            // Servers that come later are available from the next prompt on.
            drop(self.meanwhile(settled, message_id).await?);
            self.servers.first_wait = FirstWait::Done;
        }
        self.list_server_prompts();
        Some(())
    }

    /// Stores the current identity of tools with "always" answers, because such an answer applies to the tool
    /// as it is now.
    pub(super) fn keep_ruled_tools(&mut self, rules: &Rules, stored: &mut SessionMeta) {
        for permission in rules.iter().map(|rule| rule.permission.as_str()) {
            let Some(identity) = self.toolbox.identity(permission) else { continue };
            if self.row.metadata.ruled_tool(permission).is_none() {
                self.row.metadata.set_ruled_tool(permission, Some(&identity.to_text()));
                stored.copy_ruled_tools(&self.row.metadata);
            }
        }
    }

    /// Drops "always" answers about tools that have changed since: the user is asked again. Child sessions
    /// share the answers.
    pub(super) fn forget_changed_tools(&mut self) {
        let Lineage::Root = self.lineage else { return };
        let rules = self.authority.get().rules;
        let change = |permission: &str| {
            let (now, kept) = (self.toolbox.identity(permission)?, self.row.metadata.ruled_tool(permission));
            (kept != Some(now.to_text().as_str())).then(|| (permission.to_owned(), now.changes_since(kept)))
        };
        let changed: Vec<(String, String)> =
            rules.iter().filter_map(|rule| change(rule.permission.as_str())).collect();
        if changed.is_empty() {
            return;
        }
        let mut patch = self.empty_patch();
        for (permission, _) in &changed {
            self.authority.forget(permission);
            self.row.metadata.set_ruled_tool(permission, None);
        }
        patch.metadata.copy_ruled_tools(&self.row.metadata);
        self.row.permissions = self.authority.get().rules.to_json();
        patch.permissions = Some(self.row.permissions.clone());
        if let Err(error) = self.journal.change(vec![Change::PatchSession(patch)]) {
            tracing::warn!(%error, "that a rule is gone could not be stored");
        }
        self.tell_ourselves(SessionCommand::Notice {
            severity: "warning",
            title: "You are asked again about tools that have changed".to_owned(),
            description: Some(format!(
                "Since you answered for always: {}.",
                changed.iter().map(|(tool, what)| format!("{tool}: {what}")).collect::<Vec<_>>().join("; ")
            )),
        });
    }

    /// Stores which tools the model was told of, so that the next process to open the session tells it again.
    pub(super) fn keep_active_tools(&mut self, stored: &mut SessionMeta) {
        let active = self.toolbox.active();
        if active != self.row.metadata.active_tools() {
            self.row.metadata.set_active_tools(&active);
            stored.set_active_tools(&active);
        }
    }

    /// Releases the servers; other sessions that use them keep them.
    pub(super) async fn close_servers(&mut self) {
        if let Some(open) = self.servers.open.take()
            && tokio::time::timeout(SERVERS_CLOSE, open.servers.close()).await.is_err()
        {
            tracing::warn!(session = %self.id, "a server did not end in time");
        }
    }
}

/// `/mcp`: shows every server with its state and the reason. `/mcp login NAME` logs in to one.
pub(crate) async fn mcp(session: &mut Session, arguments: &str) -> Result<String, HubError> {
    session.connect_servers();
    match arguments.split_once(char::is_whitespace).unwrap_or((arguments, "")) {
        ("", _) => Ok(listed(session)),
        ("login", name) if !name.trim().is_empty() => log_in(session, name.trim()),
        ("login", _) => Err(HubError::Invalid("`/mcp login` needs the name of a server".to_owned())),
        (other, _) => {
            let other = visible(other);
            Err(HubError::Invalid(format!("`/mcp` takes nothing, or `login NAME`, not `{other}`")))
        }
    }
}

/// The login continues in the user's browser: this does not wait for it.
fn log_in(session: &Session, name: &str) -> Result<String, HubError> {
    let Some(servers) = session.servers.open_servers() else {
        return Err(HubError::Invalid("there are no MCP servers here".to_owned()));
    };
    let mut clients = session.participants.ready().filter_map(|(_, client)| client.delegate());
    let client = clients.find(|client| client.offers().addresses);
    servers.log_in(name, client).map_err(HubError::Invalid)?;
    Ok(format!("Logging in to `{}`: the address to open in a browser follows.", visible(name)))
}

fn listed(session: &Session) -> String {
    let line = |status: &ServerStatus| {
        let ServerStatus { name, about, state, tools, prompts } = status;
        // A project's file may hold any name, and a reason is in the server's own words.
        let name = visible(name).replace('`', "'");
        let reason = state.reason().map(|why| format!(": {}", visible(why))).unwrap_or_default();
        let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
        let tools = if names.is_empty() { String::new() } else { format!("; tools: {}", names.join(", ")) };
        let names: Vec<String> = prompts.iter().map(|prompt| format!("`/{prompt}`")).collect();
        let prompts =
            if names.is_empty() { String::new() } else { format!("; prompts: {}", names.join(", ")) };
        format!("- `{name}` ({about}): {}{reason}{tools}{prompts}", state.as_str())
    };
    let lines: Vec<String> = session.servers.status().iter().map(line).collect();
    match lines.is_empty() {
        true => "There are no MCP servers here. `attache mcp add` adds one to your configuration.".to_owned(),
        false => lines.join("\n"),
    }
}
