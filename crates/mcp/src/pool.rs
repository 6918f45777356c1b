//! The servers of a host: those of the user's configuration, and the ones that run. Sessions that ask for the
//! same program in the same place share it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use attache_core::ids::SessionId;
use attache_core::ports::mcp::{
    OAuthSettings, ServerDeadlines, ServerEntry, ServerNotices, ServerOrigin, ServerRights, ServerSampling,
    ServerTransport, SessionServers, ToolServers, WantedServers,
};
use attache_core::ports::tool::{Site, Workspace};
use attache_core::seen::SeenFiles;
use attache_sandbox::LazySandbox;

use crate::launch;
use crate::names::{digest, sanitised};
use crate::oauth::{LoginPlan, LoginStore};
use crate::server::{Server, ServerPlan};
use crate::session::OpenedServers;

/// The environment that references are resolved from. Values are never printed.
#[derive(Clone)]
pub struct Variables {
    values: Arc<HashMap<String, String>>,
    /// Of those that hold our own keys.
    keys: Arc<HashSet<String>>,
}

impl Variables {
    pub fn new(variables: impl Iterator<Item = (String, String)>) -> Self {
        Self { values: Arc::new(variables.collect()), keys: Arc::default() }
    }

    /// Entries of a project do not get these: whoever wrote them would get our keys.
    pub fn with_own_keys(self, names: impl Iterator<Item = String>) -> Self {
        Self { keys: Arc::new(names.collect()), ..self }
    }

    /// Whether it holds a key of ours.
    pub fn is_own_key(&self, name: &str) -> bool {
        self.keys.contains(name)
    }

    #[cfg(test)]
    pub(crate) fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    /// Its value.
    pub fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    pub(crate) fn path(&self) -> Option<OsString> {
        self.get("PATH").map(OsString::from)
    }
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} variables", self.values.len())
    }
}

/// The host's settings for servers.
#[derive(Clone, Debug)]
pub struct McpSettings {
    /// Servers of the user's own configuration.
    pub entries: Vec<ServerEntry>,
    /// All names that the user has configured, those of switched off servers too: a project can't have them.
    pub names: Vec<String>,
    pub sandbox: LazySandbox,
    pub variables: Variables,
    pub logins: Arc<dyn LoginStore>,
}

/// The servers of a host.
#[derive(Debug)]
pub struct HostServers {
    settings: McpSettings,
    /// Why a lock: sessions come and go in their own tasks. Held for look-ups only.
    running: Mutex<Vec<RunningEntry>>,
}

/// A running server.
#[derive(Debug)]
struct RunningEntry {
    key: ServerKey,
    server: Weak<Server>,
    /// `Some` while exactly one session has used it.
    only: Option<SessionId>,
}

/// What makes two servers the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServerKey {
    transport: ServerTransport,
    rights: ServerRights,
    deadlines: ServerDeadlines,
    oauth: OAuthSettings,
    /// References are resolved for some, and not for others.
    is_of_client: bool,
    sampling: ServerSampling,
    roots: Vec<PathBuf>,
}

impl ServerKey {
    fn is_same_elsewhere(&self, other: &Self) -> bool {
        Self { roots: Vec::new(), ..self.clone() } == Self { roots: Vec::new(), ..other.clone() }
    }
}

impl HostServers {
    pub fn new(settings: McpSettings) -> Self {
        Self { settings, running: Mutex::default() }
    }

    /// The server of this entry, begun if it is not there.
    fn server(&self, entry: &ServerEntry, workspace: &Workspace) -> Arc<Server> {
        let roots: Vec<PathBuf> =
            std::iter::once(&workspace.root).chain(&workspace.additional).cloned().collect();
        let key = ServerKey {
            transport: entry.transport.clone(),
            rights: entry.rights,
            deadlines: entry.deadlines,
            oauth: entry.oauth.clone(),
            is_of_client: entry.origin == ServerOrigin::Client,
            sampling: entry.sampling,
            roots: roots.clone(),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|entry| entry.server.strong_count() > 0);
        let session = &workspace.session_id;
        if let Some(server) =
            shared(&mut running, &key, session).or_else(|| moved(&mut running, &key, session))
        {
            return server;
        }
        let server = Arc::new(Server::start(roots.clone(), |told, subscriptions| ServerPlan {
            entry: entry.clone(),
            site: site(entry, workspace, &roots),
            roots: told,
            subscriptions,
            sandbox: self.settings.sandbox.clone(),
            variables: self.settings.variables.clone(),
            logins: self.settings.logins.clone(),
        }));
        running.push(RunningEntry { key, server: Arc::downgrade(&server), only: Some(session.clone()) });
        server
    }
}

/// The very server, for one more session.
fn shared(running: &mut [RunningEntry], key: &ServerKey, session: &SessionId) -> Option<Arc<Server>> {
    let known = running.iter_mut().find(|entry| entry.key == *key)?;
    let server = known.server.upgrade()?;
    known.only = known.only.take().filter(|only| only == session);
    Some(server)
}

/// A server that is no program of this machine and that no other session has learns of the session's new roots.
fn moved(running: &mut [RunningEntry], key: &ServerKey, session: &SessionId) -> Option<Arc<Server>> {
    let is_remote = match key.transport {
        ServerTransport::Http { .. } | ServerTransport::Sse { .. } => true,
        ServerTransport::Stdio { .. } | ServerTransport::Unusable(_) => false,
    };
    let is_it = |entry: &&mut RunningEntry| {
        is_remote && entry.only.as_ref() == Some(session) && entry.key.is_same_elsewhere(key)
    };
    let known = running.iter_mut().find(is_it)?;
    let server = known.server.upgrade()?;
    server.set_roots(key.roots.clone());
    known.key = key.clone();
    Some(server)
}

/// Where a local server works: in the session's directories, with a directory of its own beside them.
fn site(entry: &ServerEntry, workspace: &Workspace, roots: &[PathBuf]) -> Site {
    let scratches = workspace.scratch.parent().unwrap_or(&workspace.scratch);
    let words: Vec<String> = std::iter::once(format!("{:?}", entry.transport))
        .chain(roots.iter().map(|root| root.to_string_lossy().into_owned()))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let scratch = launch::own_directory(scratches, &sanitised(&entry.name), digest(&words));
    let workspace = Workspace { scratch, skills: Arc::default(), ..workspace.clone() };
    Site {
        workspace: Arc::new(workspace),
        granted: Arc::default(),
        judged: None,
        writes: Arc::default(),
        closed: None,
        client: None,
        seen: Arc::new(SeenFiles::default()),
    }
}

impl ToolServers for HostServers {
    fn open(
        &self,
        workspace: Arc<Workspace>,
        wanted: WantedServers,
        notices: ServerNotices,
    ) -> Arc<dyn SessionServers> {
        let WantedServers { of_client, of_project, waiting } = wanted;
        let mut opened = OpenedServers::new(notices);
        let is_users = |name: &str| self.settings.names.iter().any(|known| known == name);
        let (of_project, taken): (Vec<_>, Vec<_>) =
            of_project.into_iter().partition(|entry| !is_users(&entry.name));
        for entry in &taken {
            opened.leave_out(&entry.name);
        }
        for entry in of_client.iter().chain(&self.settings.entries).chain(&of_project) {
            if opened.has(&entry.name) {
                tracing::warn!(server = entry.name, "a second MCP server of this name is not started");
                continue;
            }
            let server = self.server(entry, &workspace);
            let login = LoginPlan {
                entry: entry.clone(),
                root: workspace.root.clone(),
                variables: self.settings.variables.clone(),
                logins: self.settings.logins.clone(),
            };
            opened.add(login, server);
        }
        for waiting in
            waiting.iter().filter(|waiting| !opened.has(&waiting.name)).cloned().collect::<Vec<_>>()
        {
            opened.add_waiting(waiting);
        }
        Arc::new(opened)
    }
}

#[cfg(test)]
mod tests {
    use attache_core::ports::mcp::HiddenText;

    use super::*;

    fn servers() -> HostServers {
        let sandbox = attache_sandbox::Sandbox::found_lazily_by(|| unreachable!("no program is started"));
        let variables = Variables::from_pairs(&[]);
        let logins = Arc::new(NobodyLoggedIn);
        HostServers::new(McpSettings { entries: Vec::new(), names: Vec::new(), sandbox, variables, logins })
    }

    #[derive(Debug)]
    struct NobodyLoggedIn;

    impl LoginStore for NobodyLoggedIn {
        fn read(&self, _server: &str) -> Result<Option<HiddenText>, String> {
            Ok(None)
        }

        fn keep(&self, _server: &str, _issuer: &str, _login: &HiddenText) -> Result<(), String> {
            Err("logins are not kept here".to_owned())
        }

        fn forget(&self, _server: &str) -> Result<(), String> {
            Ok(())
        }

        fn stamp(&self) -> u64 {
            0
        }

        fn hold(&self, _server: &str) -> Result<Box<dyn Send + Sync>, String> {
            Ok(Box::new(()))
        }
    }

    fn entry() -> ServerEntry {
        ServerEntry {
            name: "far".to_owned(),
            origin: ServerOrigin::User,
            // Nobody listens on the discard port of this machine.
            transport: ServerTransport::Http {
                url: "http://127.0.0.1:9/mcp".to_owned(),
                headers: Vec::new(),
            },
            rights: ServerRights::USUAL,
            deadlines: ServerDeadlines::default(),
            sampling: ServerSampling::Refused,
            oauth: OAuthSettings::default(),
        }
    }

    fn workspace(session: &str, additional: &[&str]) -> Workspace {
        Workspace {
            session_id: SessionId::new(session),
            root: "/w".into(),
            additional: additional.iter().map(PathBuf::from).collect(),
            scratch: "/s/one".into(),
            guarded: Arc::default(),
            skills: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a_far_server_is_told_of_roots_unless_another_session_has_it() {
        let host = servers();
        let first = host.server(&entry(), &workspace("a", &[]));
        let moved = host.server(&entry(), &workspace("a", &["/x"]));
        assert!(Arc::ptr_eq(&first, &moved), "the same conversation, with other roots");
        assert_eq!(*first.roots(), [PathBuf::from("/w"), PathBuf::from("/x")]);
        let other = host.server(&entry(), &workspace("b", &["/x"]));
        assert!(Arc::ptr_eq(&first, &other), "shared by what it is");
        let alone = host.server(&entry(), &workspace("a", &[]));
        assert!(!Arc::ptr_eq(&first, &alone), "the other session keeps its roots");
        assert_eq!(first.roots().len(), 2);
    }

    #[tokio::test]
    async fn a_program_with_other_roots_is_another() {
        let host = servers();
        let transport = ServerTransport::Unusable("never started".to_owned());
        let entry = ServerEntry { transport, ..entry() };
        let first = host.server(&entry, &workspace("a", &[]));
        assert!(Arc::ptr_eq(&first, &host.server(&entry, &workspace("a", &[]))));
        assert!(!Arc::ptr_eq(&first, &host.server(&entry, &workspace("a", &["/x"]))));
    }
}
