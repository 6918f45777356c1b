//! Agents that speak ACP as agents of attache: the official SDK's agent side, attache itself, and bad ones.

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::peer::*;

/// Speaks the protocol as badly as its argument says.
const ROGUE: &str = include_str!("../chat/rogue.py");

/// The agent on the official SDK.
fn sdk() -> Home {
    sdk_with("")
}

fn sdk_with(more: &str) -> Home {
    home_with(&format!("{}{more}", sdk_entry()), "on *\n text \"not asked\"")
}

/// A home whose agent is attache on another home, with this model.
fn nested(script: &str) -> (Home, Home) {
    let inner = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    let env = format!("env = {{ ATTACHE_HOME = {} }}\n", json!(inner.home()));
    let outer =
        home_with(&acp_entry(&[env!("CARGO_BIN_EXE_attache"), "acp"], &env), "on *\n text \"not asked\"");
    (outer, inner)
}

async fn loaded_again(home: &Home, session: &str) -> (Agent, Vec<Value>) {
    let again = home.start();
    again.initialize().await;
    let updates = again.load(session, &home.workspace()).await;
    (again, updates)
}

/// The attache behind attache; what was started with `--agent` is the one in front, and its guard.
fn inner_processes(home: &Home) -> Vec<i32> {
    let is_inner = |command: &str| command.contains("attache acp") && !command.contains("--agent");
    let processes = home.processes().into_iter();
    processes.filter(|process| is_inner(&process.command)).map(|process| process.pid).collect()
}

/// Waits until this was shown.
async fn shown_since(agent: &Agent, mark: usize, session: &str, text: &str) {
    for _ in 0..6_000 {
        if text_of(&agent.client.updates_since(mark, session)).contains(text) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{text:?} was not shown");
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn its_answer_is_the_answer_and_a_new_process_tells_it_the_conversation() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hello").await, "You said: hello");
    assert_eq!(told(&agent, &session, "again").await, "You said: again");
    agent.finish(&home).await;
    // The agent has no sessions that last; ours has.
    let (again, updates) = loaded_again(&home, &session).await;
    assert_eq!(text_of(&updates), "You said: helloYou said: again");
    let said = told(&again, &session, "third").await;
    assert!(said.contains("User:\nhello\n\nAssistant:\nYou said: hello"), "{said}");
    assert!(said.ends_with("|third"), "{said}");
    assert_eq!(told(&again, &session, "fourth").await, "You said: fourth");
    let listed = again.client.expect("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    again.finish(&home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn plan_title_and_usage_are_those_of_the_agent() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    let mark = agent.client.mark();
    assert_eq!(told(&agent, &session, "plan").await, "Well: planned");
    let updates = agent.client.updates_since(mark, &session);
    // The last one: a session has the beginning of its prompt as a title until its agent finds one.
    let of = |kind: &str| updates.iter().rfind(|update| update["sessionUpdate"] == kind).unwrap();
    assert_eq!(of("plan")["entries"][0]["content"], "think");
    assert_eq!(of("session_info_update")["title"], "A plan");
    assert_eq!((&of("usage_update")["used"], &of("usage_update")["size"]), (&json!(1200), &json!(8000)));
    // What it does not count is not told as nothing.
    assert_eq!(of("usage_update")["_meta"], Value::Null);
    agent.finish(&home).await;
}

#[tokio::test]
async fn its_commands_are_listed_and_typed_to_it() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "commands").await, "Well: listed");
    let is_list = |message: &Value| {
        let update = &message["params"]["update"];
        update["sessionUpdate"] == "available_commands_update" && update.to_string().contains("deploy")
    };
    let listed = agent.client.wait_for("its commands", is_list).await;
    let listed = listed["params"]["update"]["availableCommands"].as_array().unwrap();
    let of = |name: &str| listed.iter().find(|command| command["name"] == name).unwrap();
    assert_eq!(
        (&of("deploy")["description"], &of("deploy")["input"]["hint"]),
        (&json!("Deploys it"), &json!("where"))
    );
    assert_eq!(told(&agent, &session, "/deploy  to x").await, "You said: /deploy to x");
    // Ours keep their names, and its own of the same name can be reached.
    assert!(told(&agent, &session, "/status").await.contains("- Mode: `support`"));
    assert_eq!(of("agent.status")["description"], "Of the agent");
    assert_eq!(told(&agent, &session, "/agent.status now").await, "You said: /status now");
    // They are the agent's: another mode has others.
    let mark = agent.client.mark();
    agent.client.expect("session/set_mode", json!({ "sessionId": session, "modeId": "build" })).await;
    let others =
        |message: &Value| message["params"]["update"]["sessionUpdate"] == "available_commands_update";
    let listed = loop {
        if let Some(listed) = agent.client.received()[mark..].iter().rfind(|message| others(message)) {
            break listed.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert!(!listed.to_string().contains("deploy"), "{listed}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn allowed_it_goes_on_and_rejected_it_is_told_so() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    for (choice, said, status) in [("allow_once", "yes", "failed"), ("reject_once", "no", "failed")] {
        agent.client.always_choose(choice);
        let mark = agent.client.mark();
        let answer = told(&agent, &session, "delete it").await;
        assert_eq!(answer, format!("You said: delete it; the answer is {said}"));
        // The agent never says how its call ended.
        let updates = agent.client.updates_since(mark, &session);
        assert_eq!(calls(&updates).last().map(|(_, status)| status.as_str()), Some(status));
    }
    let asked = agent.client.received().into_iter().find(is_question).unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "Delete everything");
    agent.finish(&home).await;
}

#[tokio::test]
async fn always_is_remembered_and_rules_come_before_people() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_always");
    for _ in 0..2 {
        assert!(told(&agent, &session, "delete it").await.ends_with("the answer is yes"));
    }
    assert_eq!(agent.client.received().iter().filter(|message| is_question(message)).count(), 1);
    agent.finish(&home).await;
    for (action, said) in [("allow", "yes"), ("deny", "no")] {
        let rule = format!(
            "\n[[permissions]]\npermission = \"agent:support:delete\"\npattern = \"*\"\naction = \"{action}\"\n"
        );
        let home = sdk_with(&rule);
        let (agent, session) = opened(&home).await;
        let answer = told(&agent, &session, "delete it").await;
        assert!(answer.ends_with(&format!("the answer is {said}")), "{action}: {answer}");
        assert!(!agent.client.received().iter().any(is_question));
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn cancelled_while_it_asks_the_turn_ends_and_the_next_prompt_works() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    let pending = agent.start_prompt(&session, "delete it");
    let asked = agent.client.wait_for("a question", is_question).await;
    agent.client.notify("session/cancel", json!({ "sessionId": session }));
    agent.client.reply(&asked["id"], Reply::cancelled());
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    assert_eq!(told(&agent, &session, "hi").await, "You said: hi");
    agent.finish(&home).await;
}

#[tokio::test]
async fn killed_while_it_asks_the_call_has_failed_and_the_next_prompt_works() {
    let home = sdk();
    let (mut agent, session) = opened(&home).await;
    agent.client.set_policy(|_, _| Reply::Never);
    drop(agent.start_prompt(&session, "delete it"));
    agent.client.wait_for("a question", is_question).await;
    agent.kill().await;
    let (again, updates) = loaded_again(&home, &session).await;
    assert_eq!(calls(&updates).last().map(|(_, status)| status.as_str()), Some("failed"), "{updates:?}");
    let said = told(&again, &session, "hi").await;
    assert!(said.ends_with("|hi"), "{said}");
    again.finish(&home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn files_and_terminals_are_served_within_the_session_where_the_client_has_none() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    let file = home.workspace().join("a.txt");
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    assert_eq!(told(&agent, &session, &format!("read {}", file.display())).await, "Well: two\n");
    let new = home.workspace().join("new/b.txt");
    assert_eq!(told(&agent, &session, &format!("write {}", new.display())).await, "Well: done");
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "written\n");
    let mark = agent.client.mark();
    assert_eq!(told(&agent, &session, "run echo hi && pwd").await, {
        format!("Well: 0 hi\n{}\n", home.workspace().canonicalize().unwrap().display())
    });
    let updates = agent.client.updates_since(mark, &session);
    let last = updates.iter().rfind(|update| update["status"] == "completed").unwrap();
    assert!(last["content"].to_string().contains("hi"), "{last}");
    // Neither what lies outside, nor what a link leads to there.
    let outside = home.home().join("config.toml");
    std::os::unix::fs::symlink(&outside, home.workspace().join("link")).unwrap();
    for path in [outside.clone(), home.workspace().join("link"), "/etc/hostname".into()] {
        let said = told(&agent, &session, &format!("read {}", path.display())).await;
        assert!(!said.contains("script") && said.starts_with("Well: "), "{said}");
        let said = told(&agent, &session, &format!("write {}", path.display())).await;
        assert_ne!(said, "Well: done", "{}", path.display());
    }
    assert!(std::fs::read_to_string(&outside).unwrap().contains("backend"));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_client_that_offers_files_and_forms_serves_them_itself() {
    let home = sdk();
    let agent = home.start_with(&["--agent", "support"]);
    agent.client.set_policy(|method, _| match method {
        "fs/read_text_file" => Reply::Result(json!({ "content": "of the editor" })),
        "elicitation/create" => Reply::Result(json!({ "action": "accept", "content": { "name": "Ada" } })),
        _ => Reply::Never,
    });
    let capabilities =
        json!({ "fs": { "readTextFile": true, "writeTextFile": false }, "elicitation": { "form": {} } });
    agent
        .client
        .expect("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }))
        .await;
    let session = agent.new_session(&home.workspace()).await;
    let file = home.workspace().join("a.txt");
    assert_eq!(told(&agent, &session, &format!("read {}", file.display())).await, "Well: of the editor");
    let said = told(&agent, &session, "form").await;
    assert_eq!(said, "Well: {\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn mcp_servers_of_the_client_are_passed_on() {
    let home = sdk();
    let agent = home.start_with(&["--agent", "support"]);
    agent.initialize().await;
    let server = json!({ "name": "notes", "command": "/bin/true", "args": [], "env": [] });
    let params = json!({ "cwd": home.workspace(), "mcpServers": [server] });
    let session = agent.client.expect("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(told(&agent, &session, "servers").await, "[\"notes\"]");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_cancelled_agent_has_ended_soon_whether_it_listens_or_not() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    for deed in ["wait", "hang"] {
        let mark = agent.client.mark();
        let pending = agent.start_prompt(&session, deed);
        shown_since(&agent, mark, &session, "Well: ").await;
        agent.client.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled", "{deed}");
        let said = told(&agent, &session, "hi").await;
        assert!(said.ends_with("hi"), "{deed}: {said}");
    }
    agent.finish(&home).await;
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn an_agent_that_dies_ends_its_turn_and_is_started_again_with_the_conversation() {
    let home = sdk();
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hello").await, "You said: hello");
    let error = agent.prompt(&session, "die").await.unwrap_err().message;
    assert!(error.contains("the agent `support`: the agent ended (exit status: 7)"), "{error}");
    let said = told(&agent, &session, "and now").await;
    assert!(said.contains("User:\nhello") && said.contains("Well:") && said.ends_with("|and now"), "{said}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn bad_agents_are_clear_errors() {
    for (fault, told) in [
        ("dies", "the agent ended (exit status: 3); it said: boom"),
        ("dies-later", "the agent ended (exit status: 3); it said: boom"),
        ("version-0", "speaks version 0 of the Agent Client Protocol"),
        ("version-7", "speaks version 7 of the Agent Client Protocol"),
        ("floods-first", "messages without end"),
        ("garbage", "this is no ACP agent"),
        ("nonsense", "answer to initialize is not understood"),
        ("refuses", "wants you to log in first"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("rogue.py");
        std::fs::write(&program, ROGUE).unwrap();
        let home = home_with(&acp_entry(&["python3", program.to_str().unwrap(), fault], ""), "");
        let (agent, session) = opened(&home).await;
        let error = agent.prompt(&session, "hello").await.unwrap_err().message;
        assert!(error.contains(told), "{fault}: {error}");
        agent.finish(&home).await;
        assert_eq!(home.orphans(), [], "{fault}");
    }
    let home = home_with(&acp_entry(&["no-such-program"], ""), "");
    let (agent, session) = opened(&home).await;
    let error = agent.prompt(&session, "hello").await.unwrap_err().message;
    assert!(error.contains("can't start the agent `no-such-program`: there is no such program"), "{error}");
    agent.finish(&home).await;
}

const LONG: &str = "on \"long\"\n  stream 100000 \"word \" every 2ms\non *\n  text \"Hi there.\"\n";

const EDIT: &str = "on \"change it\"\n  reasoning \"look first\"\n  call write {\"path\": \"a.txt\", \"content\": \"new\\n\"}\n  ---\n  text \"Changed.\"\non *\n  text \"Hi there.\"\n";

#[tokio::test]
async fn attache_behind_attache_shows_thoughts_calls_and_diffs_as_its_own() {
    let (home, inner) = nested(EDIT);
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    let mark = agent.client.mark();
    assert_eq!(told(&agent, &session, "change it").await, "Changed.");
    assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).unwrap(), "new\n");
    let updates = agent.client.updates_since(mark, &session);
    let done = updates.iter().rfind(|update| update["status"] == "completed").unwrap();
    assert_eq!(done["content"][0]["type"], "diff", "{done}");
    assert_eq!(done["kind"], "edit");
    assert!(updates.iter().any(|update| update["sessionUpdate"] == "agent_thought_chunk"));
    let asked = agent.client.received().into_iter().find(is_question).unwrap();
    assert!(asked["params"]["toolCall"]["title"].as_str().unwrap().contains("a.txt"), "{asked}");
    // The reason of the one behind, once; it is told in the question alone.
    assert_eq!(asked.to_string().matches("Asks because: ").count(), 1, "{asked}");
    assert!(!asked.to_string().contains("unknown what this tool touches"), "{asked}");
    assert!(!updates.iter().any(|update| update.to_string().contains("Asks because")), "{updates:?}");
    let runs: Vec<_> = updates.iter().filter(|update| update["status"] == "in_progress").collect();
    assert!(runs.windows(2).all(|pair| pair[0] != pair[1]), "{runs:?}");
    let live = text_of(&updates);
    agent.finish(&home).await;
    // It keeps its sessions: nothing has to be told again.
    let (again, updates) = loaded_again(&home, &session).await;
    assert_eq!(text_of(&updates), live);
    assert_eq!(told(&again, &session, "hello").await, "Hi there.");
    again.finish(&home).await;
    assert_eq!(home.orphans(), []);
    drop(inner);
}

#[tokio::test]
async fn attache_behind_attache_asks_about_each_command_and_runs_it_by_itself() {
    let command = "call bash {\"command\": \"touch new.txt\"}";
    let (home, _inner) =
        nested(&format!("on \"touch\"\n  {command}\n  ---\n  text \"Done.\"\non *\n  text \"Hi.\"\n"));
    let (agent, session) = opened(&home).await;
    agent.client.always_choose("allow_once");
    assert_eq!(told(&agent, &session, "touch").await, "Done.");
    if let Some(asked) = agent.client.received().into_iter().find(is_question) {
        assert!(!asked["params"]["options"].to_string().contains("always"), "{asked}");
    }
    let told = agent.client.received();
    assert!(!told.iter().any(|message| message.to_string().contains("did not start attache")), "{told:?}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn an_agent_that_is_told_the_conversation_does_not_name_the_session_after_it() {
    let (home, _inner) = nested("on *\n  text \"Hi there.\"\n");
    let (agent, session) = opened(&home).await;
    told(&agent, &session, "hello").await;
    let fork = json!({ "sessionId": session, "cwd": home.workspace(), "mcpServers": [] });
    let copy = agent.client.expect("session/fork", fork).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(told(&agent, &copy, "and now").await, "Hi there.");
    assert_eq!(told(&agent, &copy, "and then").await, "Hi there.");
    let listed = agent.client.expect("session/list", json!({})).await.to_string();
    assert!(!listed.contains("began before"), "{listed}");
    agent.finish(&home).await;
}

fn mode_ids(answer: &Value) -> Vec<&str> {
    let modes = answer["modes"]["availableModes"].as_array().unwrap();
    modes.iter().map(|mode| mode["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn its_modes_are_the_modes_where_attache_is_there_for_it() {
    let (home, _inner) = nested(EDIT);
    let agent = home.start_with(&["--agent", "support"]);
    agent.initialize().await;
    let new = json!({ "cwd": home.workspace(), "mcpServers": [] });
    let opened = agent.client.expect("session/new", new).await;
    let modes = mode_ids(&opened);
    assert!(modes.contains(&"plan") && modes.contains(&"build") && !modes.contains(&"support"), "{opened}");
    assert_eq!(opened["modes"]["currentModeId"], "build");
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let mark = agent.client.mark();
    agent.client.expect("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await;
    // It is the mode of the agent itself: it changes nothing now.
    agent.client.always_choose("allow_once");
    told(&agent, &session, "change it").await;
    assert!(!home.workspace().join("a.txt").exists());
    let updates = agent.client.updates_since(mark, &session);
    let of = |kind: &str| updates.iter().rfind(|update| update["sessionUpdate"] == kind).unwrap();
    assert_eq!(of("current_mode_update")["currentModeId"], "plan");
    let options = of("config_option_update")["configOptions"].as_array().unwrap();
    let option = options.iter().find(|option| option["id"] == "mode").unwrap();
    assert_eq!((&option["currentValue"], &option["category"]), (&json!("plan"), &json!("mode")));
    assert!(options.iter().all(|option| option["id"] != "agent.mode"), "{options:?}");
    agent.finish(&home).await;
    // The next process still has it.
    let again = home.start_with(&["--agent", "support"]);
    again.initialize().await;
    let load = json!({ "sessionId": session, "cwd": home.workspace(), "mcpServers": [] });
    let loaded = again.client.expect("session/load", load).await;
    assert_eq!(loaded["modes"]["currentModeId"], "plan", "{loaded}");
    again.finish(&home).await;
}

#[tokio::test]
async fn among_other_agents_its_modes_are_an_option_and_what_was_chosen_holds() {
    let (home, _inner) = nested(EDIT);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    agent.client.expect("session/set_mode", json!({ "sessionId": session, "modeId": "support" })).await;
    told(&agent, &session, "hello").await;
    let params = json!({ "sessionId": session, "configId": "agent.mode", "value": "plan" });
    let answer = agent.client.expect("session/set_config_option", params).await;
    let options = answer["configOptions"].as_array().unwrap();
    let current = |id: &str| &options.iter().find(|option| option["id"] == id).unwrap()["currentValue"];
    assert_eq!((current("mode"), current("agent.mode")), (&json!("support"), &json!("plan")), "{answer}");
    assert_eq!(told(&agent, &session, "hello").await, "Hi there.");
    agent.finish(&home).await;
}

#[tokio::test]
async fn kills_of_the_agent_in_mid_answer_lose_nothing_that_was_shown() {
    let (home, inner) = nested(LONG);
    let (agent, session) = opened(&home).await;
    for round in 0..times() {
        let mark = agent.client.mark();
        let pending = agent.start_prompt(&session, "long");
        shown_since(&agent, mark, &session, "word word word ").await;
        inner_processes(&home).into_iter().for_each(kill);
        let error = pending.answer().await.unwrap_err().message;
        assert!(error.contains("the agent ended"), "round {round}: {error}");
        let shown = text_of(&agent.client.updates_since(mark, &session));
        assert_eq!(told(&agent, &session, "hello").await, "Hi there.", "round {round}");
        let export = json!({ "sessionId": session, "format": "json" });
        let stored = agent.client.expect("_attache/session/export", export).await.to_string();
        assert!(stored.contains(shown.trim_end()), "round {round}: {shown}");
    }
    agent.finish(&home).await;
    assert_eq!(home.orphans(), []);
    drop(inner);
}

#[tokio::test]
async fn kills_of_attache_in_mid_answer_lose_nothing_that_was_shown() {
    let (home, inner) = nested(LONG);
    let (mut agent, session) = opened(&home).await;
    for round in 0..times() {
        let mark = agent.client.mark();
        drop(agent.start_prompt(&session, "long"));
        shown_since(&agent, mark, &session, "word word word ").await;
        let shown = text_of(&agent.client.updates_since(mark, &session));
        agent.kill().await;
        let (again, updates) = loaded_again(&home, &session).await;
        assert!(text_of(&updates).contains(shown.trim_end()), "round {round}: {shown}");
        assert_eq!(told(&again, &session, "hello").await, "Hi there.", "round {round}");
        agent = again;
    }
    agent.finish(&home).await;
    assert_eq!(home.orphans(), []);
    drop(inner);
}
