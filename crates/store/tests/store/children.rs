//! Other processes: this test binary started again, doing one of the jobs below until it ends or is killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::{kill_loop, processes};

const JOB: &str = "ATTACHE_STORE_CHILD_JOB";
const HOME: &str = "ATTACHE_STORE_CHILD_HOME";
const NUMBER: &str = "ATTACHE_STORE_CHILD_NUMBER";

/// A running child and the lines it prints.
pub(crate) struct Running {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

pub(crate) fn start(job: &str, home: &Path, number: usize) -> Running {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "children::entrance", "--ignored", "--nocapture", "--test-threads=1"])
        .env(JOB, job)
        .env(HOME, home)
        .env(NUMBER, number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    Running { child, output }
}

impl Running {
    /// The text behind the next line that starts with `word`; `None` when the child has ended.
    pub(crate) fn line(&mut self, word: &str) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The harness of the tests prints without ending its line before the first of ours.
            if let Some((_, text)) = line.split_once(&format!("{word} ")) {
                return Some(text.trim().to_owned());
            }
        }
    }

    /// SIGKILL, then everything it had printed.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Waits for a good end and gives back what it printed.
    pub(crate) fn finish(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "a child failed: {rest}");
        rest
    }
}

/// Not a test of its own: what a child runs.
#[test]
#[ignore = "started by other tests"]
fn entrance() {
    let Ok(job) = std::env::var(JOB) else { return };
    let home = std::env::var(HOME).unwrap();
    let home = Path::new(&home);
    let number = std::env::var(NUMBER).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        match job.as_str() {
            "stream" => kill_loop::stream(home, number).await,
            "own" => processes::own_and_wait(home).await,
            "share" => processes::share(home, number).await,
            other => panic!("no job {other}"),
        }
    });
}
