//! Starts a local server in the sandbox: a tree of its own, with its streams as ours to talk over. It ends when
//! we let go of it, and when we die.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{ServerRight, ServerRights};
use attache_core::ports::tool::{NetworkGrant, Site, WriteGrant};
use attache_sandbox::process::{CommandEnd, ExitCause, ProcessTree, Sink, watch};
use attache_sandbox::{LazySandbox, Level, environment};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::limits::{END_TIME, ERRORS_BYTES};
use crate::program::ResolvedProgram;
use crate::workspace_code;

/// A server that runs as a process of this machine. Dropping it ends the whole tree.
#[derive(Debug)]
pub(crate) struct LocalServer {
    /// Closing it asks the tree to end, and then kills it.
    lifeline: Option<OwnedFd>,
    /// `None` once it was heard.
    ended: Option<oneshot::Receiver<io::Result<CommandEnd>>>,
    errors: Arc<LastWords>,
}

/// What a server printed beside its messages, the end of it.
#[derive(Debug, Default)]
struct LastWords(Mutex<Vec<u8>>);

impl LastWords {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let surplus = kept.len().saturating_sub(ERRORS_BYTES);
        kept.drain(..surplus);
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// The last lines, on one.
    fn line(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(4)..].join(" | ");
        let start = last.ceil_char_boundary(last.len().saturating_sub(400));
        legible_line(&last[start..])
    }
}

struct NoOutput;

impl Sink for NoOutput {
    fn output(&mut self, _bytes: &[u8]) {}
    fn show(&mut self) {}
}

/// Longer than any process runs, and still a time that a clock can be set to.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The streams of a server: its output and its input.
pub(crate) type ServerStreams = (pipe::Receiver, pipe::Sender);

/// Starts the program. Blocks: looks at the disk, and for a sandbox if that is not known yet.
pub(crate) fn launch(
    program: ResolvedProgram,
    site: &Site,
    rights: ServerRights,
    path: Option<&OsString>,
    sandbox: &LazySandbox,
) -> io::Result<StartedServer> {
    let is_of_workspace = workspace_code::is_of(&program, &site.workspace, path);
    let has = |right: ServerRight| match right {
        ServerRight::Granted => true,
        ServerRight::UnlessOfWorkspace => !is_of_workspace,
        ServerRight::Withheld => false,
    };
    let network = if has(rights.network) { NetworkGrant::Granted } else { NetworkGrant::Withheld };
    // What git and editors run can't be held at the reduced level: there it takes the user's own word.
    let may_write = match sandbox.level() {
        Level::Full | Level::None => has(rights.write),
        Level::Reduced => rights.write == ServerRight::Granted,
    };
    let writes = if may_write { WriteGrant::Granted } else { WriteGrant::Withheld };
    let words = program.line();
    let variables = program.variables;
    let own = own_caches(&site.workspace.scratch, &variables);
    let kept = own.iter().map(|(name, _)| name.clone()).chain(variables.keys().map(OsString::from)).collect();
    let confined = sandbox.confine_talking(site, network, writes, words, kept)?;
    let ours = environment::for_command(std::env::vars_os());
    let given = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
    let directory = confined.directory.clone().unwrap_or_else(|| site.workspace.root.clone());
    let (tree, pipes) =
        ProcessTree::start_talking(&confined.line(), &directory, ours.chain(own).chain(given))?;
    let (cancel, lifeline) = io::pipe()?;
    let (tell, ended) = oneshot::channel();
    std::thread::Builder::new().name("mcp-server".to_owned()).stack_size(256 * 1024).spawn(move || {
        let cancel = OwnedFd::from(cancel);
        let end = watch(tree, &cancel, FOR_EVER, &mut NoOutput);
        // What holds the tree is kept until then.
        drop(confined);
        // The receiver may be gone.
        drop(tell.send(end));
    })?;
    Ok(StartedServer { pipes, lifeline: lifeline.into(), ended })
}

/// Where programs that fetch a server keep it (`npx`, `uvx`, `pipx`, `bunx`, `deno`), below the server's own
/// directory: the user's caches hold what the user's own programs run, and no server writes there.
const CACHES: [(&str, &str); 10] = [
    ("XDG_CACHE_HOME", ""),
    ("npm_config_cache", "npm"),
    ("NPM_CONFIG_CACHE", "npm"),
    ("UV_CACHE_DIR", "uv"),
    // `uvx` takes what is installed here, under a lock.
    ("UV_TOOL_DIR", "uv-tools"),
    ("PIP_CACHE_DIR", "pip"),
    ("PIPX_HOME", "pipx"),
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("DENO_DIR", "deno"),
    ("COREPACK_HOME", "corepack"),
];

/// They last as long as the directory does: from the second start on nothing is fetched. Where the entry
/// names a cache itself, that one counts.
fn own_caches(scratch: &Path, variables: &BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    let is_named = |name: &str| variables.keys().any(|given| given.eq_ignore_ascii_case(name));
    let own = CACHES.iter().filter(|(name, _)| !is_named(name));
    own.map(|(name, place)| (name.into(), scratch.join("cache").join(place).into())).collect()
}

/// A server whose streams no runtime knows yet.
#[derive(Debug)]
pub(crate) struct StartedServer {
    pipes: attache_sandbox::process::TalkPipes,
    lifeline: OwnedFd,
    ended: oneshot::Receiver<io::Result<CommandEnd>>,
}

impl StartedServer {
    /// Within a runtime.
    pub(crate) fn streams(self) -> io::Result<(LocalServer, ServerStreams)> {
        let Self { pipes, lifeline, ended } = self;
        let output = pipe::Receiver::from_owned_fd(pipes.output)?;
        let input = pipe::Sender::from_owned_fd(pipes.input)?;
        let mut from = pipe::Receiver::from_owned_fd(pipes.errors)?;
        let errors = Arc::new(LastWords::default());
        let kept = errors.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; ERRORS_BYTES];
            while let Ok(count @ 1..) = from.read(&mut buffer).await {
                kept.add(&buffer[..count]);
            }
        });
        Ok((LocalServer { lifeline: Some(lifeline), ended: Some(ended), errors }, (output, input)))
    }
}

impl LocalServer {
    /// What it printed beside its messages, the end of it.
    pub(crate) fn errors(&self) -> String {
        self.errors.text()
    }

    /// What it said last, where it said something.
    pub(crate) fn last_words(&self) -> String {
        match self.errors.line().as_str() {
            "" => String::new(),
            line => format!("; it said: {line}"),
        }
    }

    /// Resolves when the tree is gone by itself, with how.
    pub(crate) async fn ended(&mut self) -> String {
        let Some(ended) = &mut self.ended else { return "it ended".to_owned() };
        let end = ended.await;
        self.ended = None;
        let how = match end {
            Ok(Ok(CommandEnd { how, .. })) => in_words(how),
            Ok(Err(error)) => format!("it could not be started: {error}"),
            Err(_) => "it ended".to_owned(),
        };
        // What it wrote last is still on its way.
        tokio::time::sleep(Duration::from_millis(20)).await;
        format!("{how}{}", self.last_words())
    }

    /// Ends the tree and waits for that, for a while.
    pub(crate) async fn end(mut self) {
        self.lifeline = None;
        if let Some(ended) = self.ended.take()
            && tokio::time::timeout(END_TIME, ended).await.is_err()
        {
            tracing::warn!("an MCP server did not end in time");
        }
    }
}

fn in_words(how: ExitCause) -> String {
    match how {
        ExitCause::Exited(code) => format!("it exited with code {code}"),
        ExitCause::Signalled(signal) => format!("it was ended by signal {signal}"),
        ExitCause::TooManyProcesses => "it had too many processes".to_owned(),
        ExitCause::TooMuchMemory => "it had too much memory".to_owned(),
        ExitCause::TooMuchScratch => "it filled its scratch directory".to_owned(),
        ExitCause::TimedOut | ExitCause::Cancelled | ExitCause::TerminalClosed | ExitCause::Lost => {
            "it ended".to_owned()
        }
    }
}

/// Where a server keeps what is its own, below the directory of all scratches.
pub(crate) fn own_directory(scratches: &Path, name: &str, digest: u64) -> std::path::PathBuf {
    scratches.join(format!(".mcp-{name}-{digest:016x}"))
}
