//! A desktop's session bus with a real keyring.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// A session bus with a real keyring.
#[derive(Debug)]
pub struct Desktop {
    directory: tempfile::TempDir,
    address: String,
    _bus: Child,
}

/// Starts nothing by itself: a keyring that is not running is not there.
const BUS: &str = r#"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;

impl Desktop {
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("bus.conf");
        std::fs::write(&config, BUS).unwrap();
        let mut bus = program("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--print-address=1", "--config-file"])
            .arg(&config)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is needed: run cargo xtask test");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).await.unwrap();
        Self { directory, address: address.trim().to_owned(), _bus: bus }
    }

    /// What programs find the bus by.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A keyring on it, unlocked with a password as at a login, or one that has never been set up.
    pub async fn keyring(&self, arguments: &[&str]) -> Child {
        let mut keyring = program("gnome-keyring-daemon")
            .args(["--foreground", "--components=secrets"])
            .args(arguments)
            .env("HOME", self.directory.path())
            .env("XDG_RUNTIME_DIR", self.directory.path())
            .env_remove("XDG_DATA_HOME")
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("gnome-keyring-daemon is needed: run cargo xtask test");
        let mut password = keyring.stdin.take().unwrap();
        password.write_all(b"password").await.unwrap();
        keyring
    }
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.kill_on_drop(true);
    command
}
