//! Runs the real `attache` on its own home and workspace, driven over stdio. Knows its files, not its insides.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::client::TestClient;
use crate::limits::EXIT_TIMEOUT;
use crate::processes::{self, MARKER_VARIABLE, Process};

/// The user that has nothing, on every Linux.
const NOBODY: u32 = 65_534;

/// A home, a workspace and a script, shared by the processes a test runs one after another or side by side.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    binary: PathBuf,
    marker: String,
    variables: Vec<(String, String)>,
    user: User,
}

/// Who runs the processes of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Ourselves,
    /// Somebody without any rights.
    Nobody,
}

/// One running `attache acp`.
#[derive(Debug)]
pub struct Agent {
    pub client: TestClient,
    child: Child,
    pid: u32,
}

impl Home {
    /// `binary` is `env!("CARGO_BIN_EXE_attache")` of the calling test; `script` what the model says.
    pub fn new(binary: impl Into<PathBuf>, script: &str) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let directory =
            tempfile::Builder::new().prefix("attache-test-").tempdir().expect("a temporary directory");
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let marker = format!("{}-{number}", std::process::id());
        let home =
            Self { directory, binary: binary.into(), marker, variables: Vec::new(), user: User::Ourselves };
        for path in [home.home(), home.workspace()] {
            std::fs::create_dir(&path).expect("a directory in the temporary one");
        }
        home.write_script(script);
        home.write_config("");
        home
    }

    /// A variable for every process of this home.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Processes run as somebody without rights, to whom the home belongs from here on. Who is not root is that
    /// already.
    #[must_use]
    pub fn of_an_ordinary_user(mut self) -> Self {
        if rustix::process::getuid().is_root() {
            self.user = User::Nobody;
            let script = self.script_path();
            for path in [self.directory.path(), &self.home(), &self.workspace(), &script] {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("give a file away");
            }
            let config = self.home().join("config.toml");
            std::os::unix::fs::chown(config, Some(NOBODY), Some(NOBODY)).expect("give a file away");
        }
        self
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// `ATTACHE_HOME`.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// The directory sessions work in.
    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub fn script_path(&self) -> PathBuf {
        self.directory.path().join("model.script")
    }

    /// Where the agents' stderr is collected.
    pub fn log_path(&self) -> PathBuf {
        self.directory.path().join("stderr.log")
    }

    pub fn database(&self) -> PathBuf {
        self.home().join("sessions.db")
    }

    pub fn write_script(&self, script: &str) {
        std::fs::write(self.script_path(), script).expect("write the script");
    }

    /// The scripted provider, followed by `more`.
    pub fn write_config(&self, more: &str) {
        let script = toml_string(&self.script_path());
        let config = format!(
            "model = \"script/default\"\n{more}\n[providers.script]\ndialect = \"script\"\nscript = {script}\n"
        );
        std::fs::write(self.home().join("config.toml"), config).expect("write the configuration");
    }

    /// Any command of the binary on this home.
    pub fn command(&self) -> Command {
        match self.user {
            User::Ourselves => self.program(&self.binary),
            User::Nobody => {
                let mut command = self.program("setpriv");
                let user = format!("--reuid={NOBODY}");
                let group = format!("--regid={NOBODY}");
                command.args([&user, &group, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
                command.arg(&self.binary);
                command
            }
        }
    }

    /// Any other program, such as a client that starts the binary itself, with the home's environment.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("ATTACHE_HOME", self.home())
            .env(MARKER_VARIABLE, &self.marker)
            .current_dir(self.workspace())
            .kill_on_drop(true);
        // What a developer's machine configures must not decide a test.
        for (name, _) in std::env::vars_os() {
            if let Some(name) = name.to_str()
                && (["ATTACHE_", "OTEL_"].iter().any(|start| name.starts_with(start))
                    || ["_API_KEY", "_BASE_URL"].iter().any(|end| name.ends_with(end)))
                && name != "ATTACHE_HOME"
            {
                command.env_remove(name);
            }
        }
        // Nor may a test ask or change the keyring of whoever runs it.
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("XDG_RUNTIME_DIR");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts `attache acp`.
    pub fn start(&self) -> Agent {
        self.start_with(&[])
    }

    /// Starts `attache acp` with further arguments.
    pub fn start_with(&self, arguments: &[&str]) -> Agent {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("open the log of stderr");
        self.start_logging_to(log.into(), arguments)
    }

    /// Starts `attache acp` with a stderr without a reader: whatever it writes there meets a broken pipe.
    pub fn start_with_closed_stderr(&self, arguments: &[&str]) -> Agent {
        let mut agent = self.start_logging_to(Stdio::piped(), arguments);
        drop(agent.child.stderr.take());
        agent
    }

    fn start_logging_to(&self, stderr: Stdio, arguments: &[&str]) -> Agent {
        let mut child = self
            .command()
            .arg("acp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", self.binary.display()));
        let stdin = child.stdin.take().expect("a piped stdin");
        let stdout = child.stdout.take().expect("a piped stdout");
        let pid = child.id().expect("a process that was just started");
        Agent { client: TestClient::connect(stdout, stdin), child, pid }
    }

    /// What the agents wrote to stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The same, and what they wrote to their log file.
    pub fn all_logs(&self) -> String {
        let file = std::fs::read_to_string(self.home().join("logs/attache.log")).unwrap_or_default();
        format!("{}{file}", self.log())
    }

    /// Processes of this home that are still there after a patient wait (I8).
    pub fn orphans(&self) -> Vec<Process> {
        processes::orphans(&self.marker, self.directory.path())
    }

    /// What runs now, the agent included.
    pub fn processes(&self) -> Vec<Process> {
        processes::marked_processes(&self.marker, self.directory.path())
    }
}

impl Agent {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The handshake, with a client that offers nothing.
    pub async fn initialize(&self) -> Value {
        self.client.expect("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await
    }

    /// Handshake and a new session in the home's workspace.
    pub async fn open_session(&self, home: &Home) -> String {
        self.initialize().await;
        self.new_session(&home.workspace()).await
    }

    pub async fn new_session(&self, directory: &Path) -> String {
        let answer = self.client.expect("session/new", json!({"cwd": directory, "mcpServers": []})).await;
        answer["sessionId"].as_str().expect("a session id").to_owned()
    }

    /// One text prompt, waited for.
    pub async fn prompt(&self, session_id: &str, text: &str) -> crate::client::Answer {
        self.start_prompt(session_id, text).answer().await
    }

    pub fn start_prompt(&self, session_id: &str, text: &str) -> crate::client::Pending {
        let params = json!({"sessionId": session_id, "prompt": [{"type": "text", "text": text}]});
        self.client.start("session/prompt", params)
    }

    /// Loads a session and gives the updates that were told before the answer.
    pub async fn load(&self, session_id: &str, directory: &Path) -> Vec<Value> {
        let mark = self.client.mark();
        let params = json!({"sessionId": session_id, "cwd": directory, "mcpServers": []});
        let pending = self.client.start("session/load", params);
        let id = pending.id;
        if let Err(error) = pending.answer().await {
            panic!("session/load failed: {error:?}");
        }
        let received = self.client.received();
        received[mark..]
            .iter()
            .take_while(|message| !(message["id"] == id && message.get("method").is_none()))
            .filter(|message| {
                message["method"] == "session/update" && message["params"]["sessionId"] == session_id
            })
            .map(|message| message["params"]["update"].clone())
            .collect()
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&mut self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.wait().await
    }

    /// SIGTERM; how it ends is the test's to judge.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).expect("a process id");
        // A process that is gone already is what most senders want.
        if let Err(error) = kill_process(pid, signal)
            && error != rustix::io::Errno::SRCH
        {
            panic!("signal {signal:?} to {}: {error}", self.pid);
        }
    }

    /// Closes its input, as an editor does that exits, and waits.
    pub async fn end(&mut self) -> ExitStatus {
        self.client.end_input();
        self.wait().await
    }

    pub async fn wait(&mut self) -> ExitStatus {
        self.wait_within(EXIT_TIMEOUT).await
    }

    pub async fn wait_within(&mut self, time: Duration) -> ExitStatus {
        match tokio::time::timeout(time, self.child.wait()).await {
            Ok(status) => status.expect("the status of our own child"),
            Err(_) => panic!("the agent ({}) did not end within {time:?}", self.pid),
        }
    }

    /// Ends it, and fails on anything that was wrong on the wire or left behind.
    pub async fn finish(mut self, home: &Home) {
        let status = self.end().await;
        self.client.wait_for_end().await;
        self.client.finish();
        assert!(status.success(), "the agent ended with {status}\n{}", home.log());
        let orphans = home.orphans();
        assert!(orphans.is_empty(), "left behind: {orphans:?}");
    }

    pub fn resident_bytes(&self) -> u64 {
        processes::resident_bytes(self.pid).expect("a running agent")
    }

    pub fn peak_resident_bytes(&self) -> u64 {
        processes::peak_resident_bytes(self.pid).expect("a running agent")
    }

    pub fn descriptor_count(&self) -> usize {
        processes::descriptor_count(self.pid).expect("a running agent")
    }
}

fn toml_string(path: &Path) -> String {
    // Debug formatting of a plain path is a valid TOML basic string; temporary paths are plain.
    format!("{:?}", path.to_str().expect("a temporary path in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_home_holds_a_scripted_model_and_a_workspace() {
        let home = Home::new("/bin/true", "on *\n  text \"hi\"\n");
        let config = std::fs::read_to_string(home.home().join("config.toml")).unwrap();
        assert!(
            config.contains("dialect = \"script\"") && config.contains(home.script_path().to_str().unwrap())
        );
        assert!(home.workspace().is_dir());
        let status = home.command().status().await.unwrap();
        assert!(status.success());
    }

    #[tokio::test]
    async fn an_orphan_is_found_after_its_parent_was_killed() {
        let shell = tempfile::NamedTempFile::new().unwrap();
        let home = Home::new("/bin/sh", "");
        std::fs::write(shell.path(), "sleep 60 & cat > /dev/null\n").unwrap();
        let mut command = home.command();
        let mut child = command.arg(shell.path()).stdin(Stdio::piped()).spawn().unwrap();
        while processes::marked_processes(&home.marker, home.directory.path()).len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        child.kill().await.unwrap();
        let left = processes::marked_processes(&home.marker, home.directory.path());
        let sleeper = left.iter().find(|process| process.command.starts_with("sleep")).expect("the orphan");
        kill_process(Pid::from_raw(sleeper.pid).unwrap(), Signal::KILL).unwrap();
        assert_eq!(home.orphans(), []);
    }

    #[tokio::test]
    async fn an_agent_that_speaks_nonsense_is_caught() {
        let noisy = tempfile::tempdir().unwrap();
        let program = noisy.path().join("agent");
        std::fs::write(&program, "#!/bin/sh\necho hello\nexec cat > /dev/null\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let home = Home::new(&program, "");
        let mut agent = home.start();
        agent.end().await;
        agent.client.wait_for_end().await;
        assert_eq!(agent.client.violations(crate::checker::Ending::Complete).len(), 1);
    }
}
