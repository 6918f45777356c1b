//! A terminal that a test can look at: tmux with a server of its own, driven by keys and read as text. Every
//! wait is for something on the screen.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use crate::binary::Home;
use crate::limits::{ANSWER_TIMEOUT, PROCESS_POLL};

/// Ends with its programs when it is dropped.
#[derive(Debug)]
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// A shell in the workspace of this home, with `attache` as `$ATTACHE` and this environment on top.
    pub fn open(home: &Home, size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let socket = home.home().join("tmux");
        let mut command = home.program("tmux").into_std();
        command
            .env("ATTACHE", home.binary())
            .env("HISTFILE", "")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .env_remove("TMUX")
            .envs(variables.iter().copied())
            .arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null", "-u", "new-session", "-d"])
            .args(["-x", &size.0.to_string(), "-y", &size.1.to_string()])
            .arg("exec env PS1='shell> ' bash --norc --noprofile");
        done(command.output().expect("start tmux"));
        let tmux = Self { socket };
        tmux.wait_for("shell>");
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output();
        done(output.expect("run tmux"))
    }

    /// Characters as they are typed.
    pub fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Keys by tmux's names: `Enter`, `Escape`, `C-c`, `Up`.
    pub fn press(&self, keys: &[&str]) {
        for key in keys {
            self.tmux(&["send-keys", key]);
        }
    }

    pub fn write_line(&self, text: &str) {
        self.write(text);
        self.press(&["Enter"]);
    }

    /// As a terminal pastes it, in brackets if the program asked for that.
    pub fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// What is seen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same with all that has scrolled away; lines that the terminal broke are joined.
    pub fn everything(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// What is seen, with its colours.
    pub fn painted(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// What is seen once these words are.
    pub fn wait_for(&self, words: &str) -> String {
        self.wait_until(&format!("{words:?}"), |screen| screen.contains(words))
    }

    pub fn wait_until(&self, what: &str, mut is_there: impl FnMut(&str) -> bool) -> String {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {what} on the screen:\n{screen}");
            std::thread::sleep(PROCESS_POLL);
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended with its last program.
        Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output().ok();
    }
}

fn done(output: Output) -> String {
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "tmux: {errors}");
    text.into_owned()
}
