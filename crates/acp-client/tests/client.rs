//! The client against agents in memory that do what the test says, and against processes that die.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ClientCapabilities, FileSystemCapabilities, ReadTextFileResponse, SessionId, SessionUpdate,
};
use attache_acp_client::limits::UNREAD_BYTES;
use attache_acp_client::{
    AgentAbility, AgentDoor, AgentEvents, ClientCall, ClientEvent, ClientFailure, CommandDoor, Connected,
    Introduction, SessionStart, connect,
};
use attache_rpc::{PipeReader, PipeWriter, duplex, json_lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};

const PATIENCE: Duration = Duration::from_secs(60);

/// The other end of the wire: reads requests, writes whatever a test wants.
struct FakeAgent {
    lines: Lines<BufReader<PipeReader>>,
    writer: PipeWriter,
}

impl FakeAgent {
    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        serde_json::from_str(&line.unwrap().expect("a line")).unwrap()
    }

    async fn write(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    async fn say(&mut self, text: &str) {
        let content = json!({ "type": "text", "text": text });
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": content })).await;
    }

    async fn update(&mut self, update: Value) {
        let params = json!({ "sessionId": "s", "update": update });
        self.write(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
    }
}

fn wire() -> (FakeAgent, (PipeReader, PipeWriter)) {
    let (ours, (reader, writer)) = duplex(4096);
    (FakeAgent { lines: BufReader::new(reader).lines(), writer }, ours)
}

/// A client whose agent says `hello`, and the agent with what the client said of itself.
async fn met(hello: Value) -> (Result<Connected, ClientFailure>, FakeAgent, Value) {
    let (mut agent, ours) = wire();
    let (source, sink) = json_lines(ours, 1024 * 1024);
    let connecting = tokio::spawn(connect(source, sink, None, Introduction::unattended("1.2.3")));
    let request = agent.read().await;
    agent.answer(&request, hello).await;
    (connecting.await.unwrap(), agent, request)
}

async fn connected(capabilities: Value) -> (Connected, FakeAgent) {
    let (connected, agent, _) = met(json!({ "protocolVersion": 1, "agentCapabilities": capabilities })).await;
    (connected.unwrap(), agent)
}

async fn next(events: &mut AgentEvents) -> ClientEvent {
    tokio::time::timeout(PATIENCE, events.next()).await.expect("an event in time").expect("an event")
}

fn text(event: &ClientEvent) -> Option<String> {
    let ClientEvent::Update(news) = event else { return None };
    match &news.update {
        Some(SessionUpdate::AgentMessageChunk(chunk)) => {
            Some(serde_json::to_value(&chunk.content).unwrap()["text"].as_str()?.to_owned())
        }
        _ => None,
    }
}

#[tokio::test]
async fn only_what_is_served_is_offered() {
    let (connected, _agent, request) = met(json!({ "protocolVersion": 1 })).await;
    let params = &request["params"];
    assert_eq!(params["protocolVersion"], 1);
    let capabilities = &params["clientCapabilities"];
    assert_eq!(capabilities["fs"], json!({ "readTextFile": false, "writeTextFile": false }));
    assert_eq!(capabilities["terminal"], false);
    assert!(capabilities.get("elicitation").is_none(), "{capabilities}");
    assert!(capabilities["session"]["notices"].is_object(), "{capabilities}");
    assert_eq!(params["clientInfo"]["version"], "1.2.3");
    let client = connected.unwrap().client;
    for ability in [AgentAbility::Load, AgentAbility::List, AgentAbility::Images, AgentAbility::Extensions] {
        assert!(!client.can(ability), "{ability:?}");
    }
    let refused = client.load_session(SessionId::new("s"), &SessionStart::new("/")).await.unwrap_err();
    assert!(matches!(refused, ClientFailure::Unsupported { .. }), "{refused}");
}

#[tokio::test]
async fn another_version_is_refused() {
    for version in [0, 2, 7] {
        let (connected, ..) = met(json!({ "protocolVersion": version })).await;
        assert_eq!(connected.unwrap_err(), ClientFailure::Version(version));
    }
    let (connected, ..) = met(json!({ "hello": "there" })).await;
    assert!(matches!(connected.unwrap_err(), ClientFailure::Unusable { method: "initialize", .. }));
}

#[tokio::test]
async fn an_answer_stands_behind_all_that_came_before_it() {
    let (Connected { client, mut events }, mut agent) = connected(json!({})).await;
    let ticket = client.start_prompt(SessionId::new("s"), vec!["hi".to_owned().into()]);
    let request = agent.read().await;
    assert_eq!(request["method"], "session/prompt");
    for number in 0..100 {
        agent.say(&number.to_string()).await;
    }
    agent.answer(&request, json!({ "stopReason": "end_turn" })).await;
    for number in 0..100 {
        assert_eq!(text(&next(&mut events).await), Some(number.to_string()));
    }
    match next(&mut events).await {
        ClientEvent::PromptEnded { ticket: ended, answer } => {
            assert_eq!(ended, ticket);
            answer.unwrap();
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn kinds_of_the_future_and_lines_that_are_none_are_passed_over() {
    let (Connected { client: _client, mut events }, mut agent) = connected(json!({})).await;
    agent.writer.write_all(b"some log line\n[1, 2\n\n").await.unwrap();
    agent.update(json!({ "sessionUpdate": "of_the_future", "x": 1 })).await;
    agent
        .write(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "y": "\u{1b}[2J" } }))
        .await;
    agent.say("still here").await;
    match next(&mut events).await {
        ClientEvent::Update(news) => {
            assert!(news.update.is_none() && news.raw.get().contains("of_the_future"))
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(next(&mut events).await, ClientEvent::Skipped(why) if !why.contains('\u{1b}')));
    assert_eq!(text(&next(&mut events).await).as_deref(), Some("still here"));
}

/// An agent that never stops is read only as far as somebody takes what it says.
#[tokio::test]
async fn a_flood_is_held_up_until_it_is_taken() {
    let (Connected { client: _client, mut events }, mut agent) = connected(json!({})).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let flooding = tokio::spawn(async move {
        let piece = "x".repeat(1000);
        for _ in 0..20_000 {
            agent.say(&piece).await;
            count.fetch_add(piece.len(), Ordering::AcqRel);
        }
        agent
    });
    let filling = async {
        while sent.load(Ordering::Acquire) < UNREAD_BYTES / 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, filling).await.expect("some of it is read unasked");
    // Whoever is not held up has sent all of it by then, or far more than the bound.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let held = sent.load(Ordering::Acquire);
    assert!(held < 2 * UNREAD_BYTES, "{held}");
    for _ in 0..20_000 {
        assert!(text(&next(&mut events).await).is_some());
    }
    drop(flooding.await.unwrap());
    assert!(matches!(next(&mut events).await, ClientEvent::Ended(_)));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_flood_before_the_first_answer_is_an_error() {
    let (mut agent, ours) = wire();
    let (source, sink) = json_lines(ours, 1024 * 1024);
    let connecting = tokio::spawn(connect(source, sink, None, Introduction::unattended("1")));
    let flooding = tokio::spawn(async move {
        agent.read().await;
        while agent.writer.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n").await.is_ok() {}
    });
    let failure = tokio::time::timeout(PATIENCE, connecting).await.unwrap().unwrap().unwrap_err();
    assert_eq!(failure, ClientFailure::Flood);
    flooding.abort();
}

#[tokio::test]
async fn a_question_is_answered_once_whatever_becomes_of_it() {
    let (Connected { client, mut events }, mut agent) = connected(json!({})).await;
    let ask = |id: u64| {
        let call = json!({ "toolCallId": "c", "title": "Do it" });
        let options = json!([{ "optionId": "no", "name": "No", "kind": "reject_once" }]);
        let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
    };
    agent.write(ask(1)).await;
    let ClientEvent::Permission(question) = next(&mut events).await else { panic!() };
    let option = question.request.options[0].option_id.clone();
    question.choose(&option);
    assert_eq!(agent.read().await["result"]["outcome"], json!({ "outcome": "selected", "optionId": "no" }));
    agent.write(ask(2)).await;
    drop(next(&mut events).await);
    assert_eq!(agent.read().await["result"]["outcome"], json!({ "outcome": "cancelled" }));
    agent.write(ask(3)).await;
    let ClientEvent::Permission(question) = next(&mut events).await else { panic!() };
    let withdrawn = question.withdrawn();
    let params = json!({ "requestId": 3 });
    agent.write(json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params })).await;
    tokio::time::timeout(PATIENCE, withdrawn.cancelled()).await.unwrap();
    // Files and terminals are not offered.
    let params = json!({ "sessionId": "s", "path": "/etc/passwd" });
    agent.write(json!({ "jsonrpc": "2.0", "id": 4, "method": "fs/read_text_file", "params": params })).await;
    drop(question);
    let answers = [agent.read().await, agent.read().await];
    let refused = answers.iter().find(|answer| answer["id"] == 4).unwrap();
    assert_eq!(refused["error"]["code"], -32601, "{answers:?}");
    drop(client);
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id() {
    use attache_acp_client::SessionMatch;
    let capabilities = json!({ "sessionCapabilities": { "list": {} } });
    for (start, found) in [("ab", "several"), ("abc", "one"), ("abcd", "one"), ("x", "none")] {
        let (Connected { client, events: _events }, mut agent) = connected(capabilities.clone()).await;
        let start_of_id = start.to_owned();
        let finding = tokio::spawn(async move { client.find_session(&start_of_id).await });
        let serving = async {
            for (ids, cursor) in [(["abcd", "b"], Some("2")), (["abx", "c"], None)] {
                let request = agent.read().await;
                let sessions: Vec<Value> =
                    ids.iter().map(|id| json!({ "sessionId": id, "cwd": "/" })).collect();
                let mut page = json!({ "sessions": sessions });
                if let Some(cursor) = cursor {
                    page["nextCursor"] = json!(cursor);
                }
                agent.answer(&request, page).await;
            }
            std::future::pending::<()>().await;
        };
        let matched = tokio::select! {
            matched = finding => matched.unwrap().unwrap(),
            () = serving => unreachable!(),
        };
        let kind = match matched {
            SessionMatch::None => "none",
            SessionMatch::One(_) => "one",
            SessionMatch::Several => "several",
        };
        assert_eq!(kind, found, "{start}");
    }
}

fn shell(script: &str) -> CommandDoor {
    let line = format!("sh -c '{script}'");
    CommandDoor::new(&line, std::env::temp_dir()).unwrap()
}

#[tokio::test]
async fn a_process_that_dies_says_how_and_what_it_said() {
    let door = shell("echo first >&2; echo \"last \u{1b}[2J\" >&2; exit 7");
    let failure = door.open(Introduction::unattended("1")).await.unwrap_err();
    let told = failure.to_string();
    assert!(told.contains("exit status: 7") && told.contains("first | last \\u{1b}[2J"), "{told}");
}

/// Reads one line, answers as version 1, then does what the test says.
fn hello_then(then: &str) -> CommandDoor {
    shell(&format!(
        "read line; id=$(echo \"$line\" | sed \"s/.*\\\"id\\\":\\([0-9]*\\).*/\\1/\"); \
         echo \"{{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{{\\\"protocolVersion\\\":1}}}}\"; {then}"
    ))
}

#[tokio::test]
async fn an_agent_that_dies_later_is_an_event_and_can_be_opened_again() {
    let door = hello_then("read line; echo boom >&2; kill -9 $$");
    for _ in 0..2 {
        let Connected { client, mut events } = door.open(Introduction::unattended("1")).await.unwrap();
        client.start_prompt(SessionId::new("s"), vec!["hi".to_owned().into()]);
        let (mut ended, mut answered) = (None, None);
        while ended.is_none() || answered.is_none() {
            match next(&mut events).await {
                ClientEvent::Ended(end) => ended = Some(end),
                ClientEvent::PromptEnded { answer, .. } => answered = Some(answer.unwrap_err()),
                other => panic!("{other:?}"),
            }
        }
        let end = ended.unwrap();
        assert!(end.status.as_deref().unwrap().contains("signal: 9"), "{end:?}");
        assert_eq!(end.last_words, ["boom"]);
        assert_eq!(answered, Some(ClientFailure::Ended(end)));
    }
}

#[tokio::test]
async fn the_whole_group_goes_with_the_last_handle() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let door = hello_then(&format!("sleep 600 & echo $! > {}; wait", file.display()));
    let Connected { client, events } = door.open(Introduction::unattended("1")).await.unwrap();
    let child = async {
        loop {
            match std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
                Some(pid) => return rustix::process::Pid::from_raw(pid).unwrap(),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let child = tokio::time::timeout(PATIENCE, child).await.unwrap();
    drop((client, events));
    let gone = async {
        // A zombie that nobody has reaped yet counts as gone.
        let is_there = || {
            std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero()))
                .is_ok_and(|stat| !stat.contains(") Z "))
        };
        while is_there() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("what the agent started is gone");
}

/// A client that serves what `fs` says and no terminals.
async fn serving(fs: FileSystemCapabilities) -> (Connected, FakeAgent, Value) {
    let (mut agent, ours) = wire();
    let (source, sink) = json_lines(ours, 1024 * 1024);
    let introduction = Introduction::new("tester", "1.2.3", ClientCapabilities::new().fs(fs));
    let connecting = tokio::spawn(connect(source, sink, None, introduction));
    let request = agent.read().await;
    agent.answer(&request, json!({ "protocolVersion": 1 })).await;
    (connecting.await.unwrap().unwrap(), agent, request)
}

#[tokio::test]
async fn what_is_offered_of_files_and_terminals_comes_as_a_call_and_the_rest_is_refused() {
    let fs = FileSystemCapabilities::new().read_text_file(true);
    let (Connected { client: _client, mut events }, mut agent, hello) = serving(fs).await;
    assert_eq!(hello["params"]["clientInfo"]["name"], "tester");
    assert_eq!(hello["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
    let ask = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let read = json!({ "sessionId": "s", "path": "/a.txt", "line": 3, "limit": 2 });
    agent.write(ask(1, "fs/read_text_file", read.clone())).await;
    let ClientEvent::Call(call) = next(&mut events).await else { panic!("no call") };
    assert_eq!(&*call.session_id().0, "s");
    let ClientCall::ReadTextFile(request, reply) = *call else { panic!("another call") };
    assert_eq!((request.line, request.limit), (Some(3), Some(2)));
    reply.give(&ReadTextFileResponse::new("three\nfour\n"));
    assert_eq!(agent.read().await["result"]["content"], "three\nfour\n");

    // Dropped unanswered, it is an error.
    agent.write(ask(2, "fs/read_text_file", read)).await;
    drop(next(&mut events).await);
    assert_eq!(agent.read().await["error"]["code"], -32603);

    for (id, method, params, code) in [
        (3, "fs/write_text_file", json!({ "sessionId": "s", "path": "/a.txt", "content": "" }), -32601),
        (4, "terminal/create", json!({ "sessionId": "s", "command": "ls" }), -32601),
        (5, "fs/read_text_file", json!({ "path": "/a.txt" }), -32602),
    ] {
        agent.write(ask(id, method, params)).await;
        assert!(matches!(next(&mut events).await, ClientEvent::Skipped(_)), "{method}");
        assert_eq!(agent.read().await["error"]["code"], code, "{method}");
    }
}
