//! What clients do themselves: texts and terminals over the wire, and clients that do not answer.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use attache_acp::ClientFs;
use attache_core::ports::delegate::{Delegate, Lines, TerminalCommand, TerminalLoss};
use attache_core::ports::tool::{Effect, Presentation, Shown, Site, ToolKind};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_testkit::client::Reply;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::*;

/// Does what its one argument says with whatever the client offers; without an offer it says `local`.
#[derive(Debug)]
struct Borrow;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    id: "borrow".into(),
    description: "A tool for tests.".into(),
    parameters: json!({ "type": "object" }).into(),
    kind: ToolKind::Other,
    // It touches nothing of this machine, so no one is asked.
    effect: Effect::ReadOnly,
    hidden: false,
});

impl Tool for Borrow {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, _input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        Box::pin(async { Ok(ToolPlan::new(Vec::new(), SPEC.presentation())) })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let said = match &runtime.site.client {
                Some(client) => borrowed(input["do"].as_str().unwrap(), &**client, &runtime).await,
                None => Ok("local".to_owned()),
            };
            match said {
                Ok(said) => ToolOutcome::Output { data: json!(said), presentation: SPEC.presentation() },
                Err(text) => ToolOutcome::Error { text, presentation: None },
            }
        })
    }
}

async fn borrowed(what: &str, client: &dyn Delegate, runtime: &ToolRuntime) -> Result<String, String> {
    let path = Path::new("/w/a.txt");
    let offers = client.offers();
    match what {
        "read" if offers.reads_texts => {
            let lines = Lines { first: Some(3), count: Some(2) };
            client.read_text(path, lines).await.map_err(|error| error.to_string())
        }
        "write" if offers.writes_texts => {
            let written = client.write_text(path, "new\n".to_owned()).await;
            written.map(|()| "written".to_owned()).map_err(|error| error.to_string())
        }
        "run" if offers.terminals => run(client, runtime)
            .await
            .map_err(|error: attache_core::ports::delegate::DelegateError| error.to_string()),
        "lose" if offers.terminals => {
            for loss in [TerminalLoss::NotStarted, TerminalLoss::Unheld] {
                client.terminals_lost(loss).await;
            }
            Ok("lost".to_owned())
        }
        _ => Ok("local".to_owned()),
    }
}

async fn run(
    client: &dyn Delegate,
    runtime: &ToolRuntime,
) -> Result<String, attache_core::ports::delegate::DelegateError> {
    let command = TerminalCommand {
        program: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), "make".to_owned()],
        environment: vec![("TERM".to_owned(), "dumb".to_owned())],
        directory: "/w".into(),
        output_bytes: 1000,
    };
    let terminal = client.open_terminal(command).await?;
    let content = vec![Shown::Terminal { terminal_id: terminal.id().to_owned(), printed: None }];
    runtime.progress.show(Presentation { content, ..SPEC.presentation() });
    let exit = terminal.wait_for_exit().await?;
    let output = terminal.output().await?;
    terminal.kill().await?;
    terminal.release().await?;
    Ok(format!("{} {:?} {:?} {}", output.text, exit.code, exit.signal, output.truncated))
}

fn script(what: &str, times: usize) -> String {
    let mut script = "on *\n".to_owned();
    for number in 0..times {
        script += &format!(" call id=b{number} borrow {{\"do\":\"{what}\",\"n\":{number}}}\n ---\n");
    }
    script + " text \"done\""
}

fn everything() -> Value {
    json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true, "session": { "notices": {} } })
}

fn world(what: &str, times: usize) -> World {
    let mut world = World::new(&script(what, times));
    world.tools.push(Arc::new(Borrow));
    world
}

/// What became of the calls, in order: results as they are, errors behind a `!`.
fn results(line: &Line, session: &str) -> Vec<String> {
    let updates = line.client.updates(session);
    let ended = updates.iter().filter_map(|update| match update["status"].as_str()? {
        "completed" => Some(update["rawOutput"]["output"].as_str()?.to_owned()),
        "failed" => {
            Some(format!("!{}", update["content"][0]["content"]["text"].as_str()?.trim_matches(['`', '\n'])))
        }
        _ => None,
    });
    ended.collect()
}

fn requests(line: &Line) -> Vec<(String, Value)> {
    let received = line.client.received();
    let asked = received.iter().filter(|message| message["id"].is_u64() && message["method"].is_string());
    asked.map(|message| (message["method"].as_str().unwrap().to_owned(), message["params"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_text_is_read_from_the_client_with_its_lines() {
    let world = world("read", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|_, _| Reply::Result(json!({ "content": "unsaved\n" })));
    assert_eq!(line.say(&session, "go").await, "end_turn");
    assert_eq!(results(&line, &session), ["unsaved\n"]);
    let asked = json!({ "sessionId": session, "path": "/w/a.txt", "line": 3, "limit": 2 });
    assert_eq!(requests(&line), [("fs/read_text_file".to_owned(), asked)]);
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_text_is_written_through_the_client_and_a_refusal_is_told_in_its_words() {
    for (reply, result) in [
        (Reply::Result(json!({})), "written"),
        (Reply::Result(Value::Null), "written"),
        (
            Reply::Error { code: -32603, message: "the file is locked".into() },
            "!the client refused: the file is locked",
        ),
    ] {
        let world = world("write", 1);
        let line = world.process().connect_with(everything()).await;
        let session = line.new_session().await;
        line.client.set_policy(move |_, _| reply.clone());
        line.say(&session, "go").await;
        assert_eq!(results(&line, &session), [result]);
        let asked = json!({ "sessionId": session, "path": "/w/a.txt", "content": "new\n" });
        assert_eq!(requests(&line), [("fs/write_text_file".to_owned(), asked)]);
        line.client.finish();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_none_is_an_error_of_the_call() {
    let world = world("read", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|_, _| Reply::Result(json!({ "text": "unsaved" })));
    line.say(&session, "go").await;
    let [result] = &results(&line, &session)[..] else { panic!("one result") };
    assert!(result.starts_with("!the client refused: its answer could not be read"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_of_a_client_that_did_not_offer_it_or_whose_user_forbade_it() {
    let nothing = json!({});
    let only_writes = json!({ "fs": { "writeTextFile": true } });
    for (what, capabilities, client_fs) in [
        ("read", nothing, ClientFs::Auto),
        ("read", only_writes, ClientFs::Auto),
        ("read", everything(), ClientFs::Never),
        ("write", everything(), ClientFs::Never),
        ("run", everything(), ClientFs::Never),
    ] {
        let world = world(what, 1);
        let mut process = world.process();
        process.client_fs = client_fs;
        let line = process.connect_with(capabilities).await;
        let session = line.new_session().await;
        line.say(&session, "go").await;
        assert_eq!((results(&line, &session), requests(&line)), (vec!["local".to_owned()], vec![]));
        line.client.finish();
    }
}

#[tokio::test(start_paused = true)]
async fn three_silences_in_a_row_end_the_delegation_of_texts_with_one_notice() {
    let world = world("read", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|_, _| Reply::Never);
    let started = Instant::now();
    for _ in 0..5 {
        assert_eq!(line.say(&session, "go").await, "end_turn");
    }
    let silent = "!the client did not answer in time";
    assert_eq!(results(&line, &session), [silent, silent, silent, "local", "local"]);
    assert_eq!(started.elapsed().as_secs(), 30);
    let notices: Vec<_> =
        line.client.updates(&session).into_iter().filter(|u| u["sessionUpdate"] == "notice").collect();
    assert_eq!(notices.len(), 1, "{notices:?}");
    // A load on the same connection does not make the client answer.
    line.load(&session).await;
    line.say(&session, "again").await;
    assert_eq!(requests(&line).len(), 3);
    // What comes after its time is ignored.
    line.client.reply(&json!(1), Reply::Result(json!({ "content": "late" })));
    line.say(&session, "once more").await;
}

/// Some clients answer a write that failed with its error as the result.
#[tokio::test(start_paused = true)]
async fn a_write_is_done_unless_the_answer_says_why_not() {
    for (result, told) in [
        (json!({}), "written"),
        (json!(null), "written"),
        (json!("Failed to write file: /w/a.txt"), "!the client refused: Failed to write file: /w/a.txt"),
    ] {
        let world = world("write", 1);
        let line = world.process().connect_with(everything()).await;
        let session = line.new_session().await;
        let answer = result.clone();
        line.client.set_policy(move |_, _| Reply::Result(answer.clone()));
        assert_eq!(line.say(&session, "go").await, "end_turn");
        assert_eq!(results(&line, &session), [told], "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_between_silences_starts_the_count_anew() {
    let world = world("read", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    let mut count = 0;
    line.client.set_policy(move |_, _| {
        count += 1;
        match count % 3 {
            // A refusal is an answer too.
            0 => Reply::Error { code: -32603, message: "no".into() },
            _ => Reply::Never,
        }
    });
    for _ in 0..6 {
        line.say(&session, "go").await;
    }
    assert_eq!(requests(&line).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_lives_from_its_start_to_its_release_and_is_shown_in_between() {
    let world = world("run", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|method, _| {
        Reply::Result(match method {
            "terminal/create" => json!({ "terminalId": "term_7" }),
            "terminal/wait_for_exit" => json!({ "exitCode": 2 }),
            "terminal/output" => {
                json!({ "output": "made", "truncated": true, "exitStatus": { "exitCode": 2 } })
            }
            _ => json!({}),
        })
    });
    line.say(&session, "go").await;
    assert_eq!(results(&line, &session), ["made Some(2) None true"]);
    let asked = requests(&line);
    let create = json!({
        "sessionId": session, "command": "sh", "args": ["-c", "make"], "cwd": "/w",
        "env": [{ "name": "TERM", "value": "dumb" }], "outputByteLimit": 1000
    });
    assert_eq!(asked[0], ("terminal/create".to_owned(), create));
    let rest: Vec<_> = asked[1..].iter().map(|(method, params)| (method.as_str(), params.clone())).collect();
    let named = json!({ "sessionId": session, "terminalId": "term_7" });
    let methods = ["terminal/wait_for_exit", "terminal/output", "terminal/kill", "terminal/release"];
    assert_eq!(rest, methods.map(|method| (method, named.clone())));
    let received = line.client.received();
    let shown = received.iter().position(|m| m["params"]["update"]["content"][0]["terminalId"] == "term_7");
    let released = received.iter().position(|m| m["method"] == "terminal/release");
    assert!(shown.unwrap() < released.unwrap(), "a client forgets what it has released");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn terminals_that_were_lost_are_not_asked_for_again_and_one_notice_says_so() {
    let world = world("lose", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    for _ in 0..3 {
        assert_eq!(line.say(&session, "go").await, "end_turn");
    }
    assert_eq!(results(&line, &session), ["lost", "local", "local"]);
    let updates = line.client.updates(&session);
    let notices: Vec<_> = updates.iter().filter(|update| update["sessionUpdate"] == "notice").collect();
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.to_string().contains("did not start attache's program"), "{notice}");
    line.client.finish();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_command_has_no_dead_line_and_everything_else_of_a_terminal_has() {
    let world = world("run", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|method, _| match method {
        "terminal/create" => Reply::Result(json!({ "terminalId": "term_7" })),
        _ => Reply::Never,
    });
    let started = Instant::now();
    let pending = line.client.start("session/prompt", prompt(&session, "go"));
    let wait = line.client.wait_for("the wait", |m| m["method"] == "terminal/wait_for_exit").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    line.client.reply(&wait["id"], Reply::Result(json!({ "signal": "SIGKILL" })));
    pending.answer().await.unwrap();
    assert_eq!(results(&line, &session), ["!the client did not answer in time"]);
    assert_eq!(started.elapsed().as_secs(), 3610);
}

#[tokio::test(start_paused = true)]
async fn the_client_whose_prompt_runs_is_asked_and_no_other() {
    let world = world("read", 1);
    let process = world.process();
    let one = process.connect_with(everything()).await;
    let session = one.new_session().await;
    let two = process.connect_with(everything()).await;
    two.resume(&session).await;
    for line in [&one, &two] {
        line.client.set_policy(|_, _| Reply::Result(json!({ "content": "mine" })));
    }
    two.say(&session, "go").await;
    assert_eq!((requests(&one).len(), requests(&two).len()), (0, 1));
    one.say(&session, "go").await;
    assert_eq!((requests(&one).len(), requests(&two).len()), (1, 1));
    one.client.finish();
    two.client.finish();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_request_and_the_turn_goes_on_without_it() {
    let world = world("read", 2);
    let process = world.process();
    let gone = process.connect_with(everything()).await;
    let session = gone.new_session().await;
    let watching = process.connect_with(everything()).await;
    watching.resume(&session).await;
    gone.client.set_policy(|_, _| Reply::Never);
    drop(gone.client.start("session/prompt", prompt(&session, "go")));
    gone.client.wait_for("a request", |m| m["method"] == "fs/read_text_file").await;
    gone.client.end_input();
    watching.client.wait_for("the end", |m| m["params"]["update"]["content"]["text"] == "done").await;
    assert_eq!(results(&watching, &session), ["!the client is gone", "local"]);
}

#[tokio::test(start_paused = true)]
async fn cancel_withdraws_the_request() {
    let world = world("read", 1);
    let line = world.process().connect_with(everything()).await;
    let session = line.new_session().await;
    line.client.set_policy(|_, _| Reply::Never);
    let pending = line.client.start("session/prompt", prompt(&session, "go"));
    let asked = line.client.wait_for("a request", |m| m["method"] == "fs/read_text_file").await;
    line.client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    let withdrawn = line.client.wait_for("its end", |m| m["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
}
