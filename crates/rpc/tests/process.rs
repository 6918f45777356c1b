//! A real process on its real standard streams: it answers, and exits although its input is still open.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use attache_rpc::limits::MAX_LINE_BYTES;
use attache_rpc::{Drained, Handler, IncomingRequest, Notification, Options, Peer, json_lines, stdio};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const CHILD: &str = "ATTACHE_RPC_TEST_CHILD";

struct Echo {
    end: UnboundedSender<()>,
}

impl Handler for Echo {
    fn request(&self, request: IncomingRequest) {
        let end = request.method == "end";
        request.responder.ok(&request.params);
        if end {
            self.end.send(()).unwrap();
        }
    }

    fn notification(&self, _: Notification) {}

    fn closed(&self) {
        // The receiver may be gone.
        self.end.send(()).ok();
    }
}

/// Not a test of its own: what the other tests run as a child.
#[tokio::test]
async fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (end, mut ended) = unbounded_channel();
    let (source, sink) = json_lines(stdio(), MAX_LINE_BYTES);
    let (_peer, connection) = Peer::start(source, sink, Options::default(), |_| Arc::new(Echo { end }));
    ended.recv().await.unwrap();
    let drained = connection.drain(Duration::from_secs(2)).await;
    std::process::exit(if drained == Drained::Whole { 0 } else { 3 });
}

fn spawn() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end, which must come soon.
fn exit_code(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if start.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("the process did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The answers, without what the test harness of the child prints around them.
fn answers(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = child.stdout.take().unwrap();
    BufReader::new(output).lines().map(Result::unwrap).filter(|line| line.starts_with('{'))
}

#[test]
fn a_process_answers_and_exits_although_its_input_is_open() {
    let mut child = spawn();
    let mut input = child.stdin.take().unwrap();
    let mut answers = answers(&mut child);
    for number in 0..100 {
        writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"m\",\"params\":[{number}]}}")
            .unwrap();
        let answer = answers.next().unwrap();
        assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{number},"result":[{number}]}}"#));
    }
    writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"end\"}}").unwrap();
    assert_eq!(answers.next().unwrap(), r#"{"jsonrpc":"2.0","id":"e","result":null}"#);
    assert_eq!(exit_code(&mut child), Some(0));
    drop(input);
}

#[test]
fn the_end_of_input_still_gets_every_answer_out() {
    let mut child = spawn();
    let mut input = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        for number in 0..20_000 {
            writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"m\"}}").unwrap();
        }
    });
    let found: Vec<String> = answers(&mut child).collect();
    writing.join().unwrap();
    assert_eq!(exit_code(&mut child), Some(0));
    let expected: Vec<String> =
        (0..20_000).map(|number| format!(r#"{{"jsonrpc":"2.0","id":{number},"result":null}}"#)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_stalled_reader_does_not_keep_the_process_alive() {
    let mut child = spawn();
    let mut input = child.stdin.take().unwrap();
    let text = "x".repeat(500_000);
    writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[\"{text}\"]}}").unwrap();
    drop(input);
    assert_eq!(exit_code(&mut child), Some(3));
}

#[test]
fn a_reader_that_goes_away_ends_the_process() {
    let mut child = spawn();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}}").unwrap();
    answers(&mut child).next().unwrap();
    // The output is closed now; the next answer finds it broken, and the input stays open.
    writeln!(input, "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\"}}").unwrap();
    assert_eq!(exit_code(&mut child), Some(0));
    drop(input);
}
