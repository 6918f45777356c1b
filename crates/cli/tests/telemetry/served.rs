//! A server's turns as a collector sees them: the same spans as those of an editor's own process.

use std::process::Stdio;
use std::time::Duration;

use attache_testkit::binary::Home;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::receiver::{Receiver, whole_traces};

#[tokio::test]
async fn turns_of_a_server_are_traced_whoever_asked() {
    let receiver = Receiver::start().await;
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"fine\"\n");
    home.write_config(&format!("[telemetry]\nendpoint = \"{}\"\n", receiver.address));
    let mut serve = home.command();
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = serve.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = told.next_line().await.unwrap().expect("the address");
        if let Some((_, rest)) = line.split_once("ACP at ") {
            break rest.split("/acp").next().unwrap().to_owned();
        }
    };
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = told.next_line().await {} });
    for _ in 0..2 {
        let said =
            home.command().args(["chat", "-p", "hello", "--connect", &address]).output().await.unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    let pid = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await.unwrap().unwrap();
    assert!(ended.success());
    reading.await.unwrap();
    let spans = receiver.finish().await;
    let turns = spans.iter().filter(|span| span.name == "session.turn").count();
    assert_eq!((turns, whole_traces(&spans).len()), (2, 2), "{spans:#?}");
}
