//! Servers that exit, hang, flood and lie (M7, S15): the session goes on, and so do the other servers.

use std::time::{Duration, Instant};

use attache_testkit::binary::Agent;
use serde_json::{Value, json};

use crate::stage::{call, calls, home, named, open, session, shown, thoughts, until_settled};

const SCRIPT: &str = "on \"go\"\n  call good_echo {\"text\":\"still here\"}\n  ---\n  text \"done\"\non \"bad\"\n  call bad_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n";

/// Until `/mcp` says that this one is ready.
async fn until_there(agent: &Agent, id: &str, name: &str) {
    for _ in 0..240 {
        let mark = agent.client.mark();
        agent.prompt(id, "/mcp").await.unwrap();
        let said: String = agent.client.updates_since(mark, id).iter().map(Value::to_string).collect();
        if said.contains(&format!("`{name}` (stdio, of the editor): ready")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} does not come");
}

/// The others work, whatever one does.
#[tokio::test]
async fn a_server_that_does_not_come_up_leaves_the_others_usable() {
    for mode in ["exit", "hang-initialize", "hang-list", "flood", "many-tools", "large-schema", "recursive"] {
        let home = home(SCRIPT);
        let agent = home.start();
        agent.initialize().await;
        agent.client.always_choose("allow_once");
        let began = Instant::now();
        let id = open(&agent, &home, &[named("bad", mode), named("good", "good")]).await;
        assert!(began.elapsed() < Duration::from_secs(2), "{mode}: session/new took {:?}", began.elapsed());
        until_there(&agent, &id, "good").await;
        let began = Instant::now();
        let result = call(&agent, &id, "go").await;
        assert!(shown(&result).contains("echo: still here"), "{mode}: {result}");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{mode}: the first prompt took {:?}",
            began.elapsed()
        );
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_is_told_of_and_named_by_its_tool() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "dies"), named("good", "good")]).await;
    let result = call(&agent, &id, "bad").await;
    assert_eq!(result["status"], "failed");
    assert!(shown(&result).contains("mcp server bad ended during the call"), "{result}");
    let again = call(&agent, &id, "bad").await;
    assert!(shown(&again).contains("mcp server bad"), "{again}");
    agent
        .client
        .wait_for("a notice", |message| {
            let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
            text.contains("The MCP server bad is not available")
        })
        .await;
    assert!(thoughts(&agent, &id).contains("it exited with code 3"));
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_message_of_100_mb_is_skipped_in_bounded_memory() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "long-line")]).await;
    agent.prompt(&id, "hello").await.unwrap();
    let before = agent.resident_bytes();
    let result = call(&agent, &id, "bad").await;
    assert!(shown(&result).contains("more than 8 MiB"), "{result}");
    let grown = agent.peak_resident_bytes().saturating_sub(before);
    println!("memory more than before, with a line of 100 MB: {} KiB", grown / 1024);
    assert!(grown < 32 * 1024 * 1024, "grown by {} KiB", grown / 1024);
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_flood_and_ten_thousand_tools_take_bounded_memory() {
    for mode in ["flood", "many-tools", "large-schema"] {
        let home = home("on *\n  text \"ok\"\n");
        let agent = home.start();
        let id = session(&agent, &home, &[named("bad", mode)]).await;
        agent.prompt(&id, "hello").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let peak = agent.peak_resident_bytes();
        println!("memory at most, with {mode}: {} KiB", peak / 1024);
        assert!(peak < 110 * 1024 * 1024, "{mode}: {} KiB", peak / 1024);
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn answers_that_nobody_asked_for_change_nothing() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "twice")]).await;
    for _ in 0..3 {
        let result = call(&agent, &id, "bad").await;
        assert_eq!(result["rawOutput"]["output"], "echo: x", "{result}");
    }
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_does_not_get_at_the_model() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "sampling")]).await;
    let result = call(&agent, &id, "bad").await;
    assert!(shown(&result).contains("does not let servers ask its model"), "{result}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn annotations_lower_no_verdict_and_no_built_in_name_is_given_away() {
    let home = home(
        "on \"go\"\n  call web_fetch {\"path\":\"a\"}\n  ---\n  text \"done\"\non \"mode\"\n  text \"planned\"\n",
    );
    let agent = home.start();
    agent.initialize().await;
    // `web` and `fetch` would be the name of a built-in tool, and the server says that it only reads.
    let id = open(&agent, &home, &[named("web", "lies")]).await;
    until_settled(&agent, &id).await;
    agent.prompt(&id, "mode").await.unwrap();
    agent.client.always_choose("reject_once");
    agent.prompt(&id, "go").await.unwrap();
    assert!(!home.workspace().join("a").exists(), "nothing was written");
    let mark = agent.client.mark();
    agent.prompt(&id, "/mcp").await.unwrap();
    let told: String = agent
        .client
        .updates_since(mark, &id)
        .iter()
        .filter_map(|update| update["content"]["text"].as_str().map(str::to_owned))
        .collect();
    let name = told.split("tools: `").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert!(name.starts_with("web_fetch_"), "{name}");
    home.write_script(&format!("on *\n  call {name} {{\"path\":\"a\"}}\n  ---\n  text \"done\"\n"));
    agent.finish(&home).await;
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("reject_once");
    let id = open(&agent, &home, &[named("web", "lies")]).await;
    until_settled(&agent, &id).await;
    let result = call(&agent, &id, "write").await;
    assert_eq!(result["status"], "failed", "it was asked about, and refused: {result}");
    assert!(!home.workspace().join("a").exists());
    agent.finish(&home).await;
}

#[tokio::test]
async fn what_a_server_lists_later_is_there_from_the_next_turn_on() {
    let home = home(
        "on \"first\"\n  call bad_first {}\n  ---\n  text \"done\"\non \"second\"\n  call bad_second {}\n  call bad_first {}\n  ---\n  text \"done\"\n",
    );
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "renames")]).await;
    assert_eq!(call(&agent, &id, "first").await["status"], "completed");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let results = calls(&agent, &id, "second").await;
    assert_eq!(results[0]["status"], "completed", "{}", results[0]);
    assert!(shown(&results[1]).contains("no longer has the tool first"), "{}", results[1]);
    agent.finish(&home).await;
}

/// No server is waited for.
#[tokio::test]
async fn ten_dead_servers_cost_a_new_session_nothing() {
    let home = home("on *\n  text \"ok\"\n");
    let agent = home.start();
    agent.initialize().await;
    let dead: Vec<Value> = (0..10).map(|number| named(&format!("dead{number}"), "hang-initialize")).collect();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..9 {
        for (servers, times) in [&[][..], &dead[..]].into_iter().zip(&mut times) {
            let began = Instant::now();
            let id = open(&agent, &home, servers).await;
            times.push(began.elapsed());
            agent.client.expect("session/close", json!({ "sessionId": id })).await;
        }
    }
    // The shortest: what else the machine does only adds to it.
    let [without, with] = times.map(|times| times.into_iter().min().unwrap());
    assert!(with <= without * 2 + Duration::from_millis(5), "{with:?} with, {without:?} without");
    agent.finish(&home).await;
}

#[tokio::test]
async fn dead_lines_are_the_configurations() {
    let home = home(SCRIPT);
    let entry = |name: &str, mode: &str, line: &str| {
        format!(
            "[mcp.{name}]\ncommand = [\"python3\", {}, \"{mode}\"]\n{line}\n",
            json!(crate::stage::server_path())
        )
    };
    home.write_config(&format!(
        "{}{}{}",
        entry("silent", "hang-initialize", "connect_timeout_ms = 1500"),
        entry("listless", "hang-list", "list_timeout_ms = 900"),
        entry("bad", "hang-call", "call_timeout_ms = 700"),
    ));
    let agent = home.start();
    let id = session(&agent, &home, &[]).await;
    let result = call(&agent, &id, "bad").await;
    assert_eq!(result["status"], "failed");
    assert!(shown(&result).contains("did not answer within 700 ms; it was told to stop"), "{result}");
    for why in ["did not answer initialize within 1500 ms", "did not answer tools/list within 900 ms"] {
        agent
            .client
            .wait_for(why, |message| {
                let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
                text.contains(why) && text.contains("it is tried again in 1 s")
            })
            .await;
    }
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_that_nags_bothers_nobody_who_shows_no_forms_and_asks_few_at_once() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "nags"), named("good", "good")]).await;
    assert_eq!(call(&agent, &id, "bad").await["status"], "completed");
    assert!(shown(&call(&agent, &id, "go").await).contains("still here"));
    let asked = agent.client.received();
    assert!(asked.iter().all(|message| message["method"] != "elicitation/create"));
    agent.finish(&home).await;
    let agent = home.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" => attache_testkit::client::Reply::Never,
        _ => attache_testkit::client::Reply::choose("allow_once", params),
    });
    let id = open(&agent, &home, &[named("bad", "nags")]).await;
    until_settled(&agent, &id).await;
    assert_eq!(call(&agent, &id, "bad").await["status"], "completed");
    let asked = agent.client.received();
    let count = asked.iter().filter(|message| message["method"] == "elicitation/create").count();
    assert_eq!(count, 1, "one question at a time");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_server_that_names_its_tools_anew_all_the_time_takes_bounded_memory() {
    let home = home("on *\n  text \"ok\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "renames-all")]).await;
    agent.prompt(&id, "hello").await.unwrap();
    let before = agent.resident_bytes();
    // Each time 4 MiB of schemas that were not there before.
    for _ in 0..24 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        agent.prompt(&id, "hello").await.unwrap();
    }
    let grown = agent.peak_resident_bytes().saturating_sub(before);
    println!("memory more than before, with other tools all the time: {} KiB", grown / 1024);
    assert!(grown < 48 * 1024 * 1024, "grown by {} KiB", grown / 1024);
    let told = thoughts(&agent, &id);
    assert_eq!(told.matches("The MCP server bad changes its tools all the time").count(), 1, "{told}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_call_asks_its_user_one_thing_at_a_time_and_not_for_ever() {
    let home = home(SCRIPT);
    let agent = home.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    agent.client.expect("initialize", params).await;
    agent.client.set_policy(|method, params| match method {
        "elicitation/create" => attache_testkit::client::Reply::Result(json!({ "action": "decline" })),
        _ => attache_testkit::client::Reply::choose("allow_once", params),
    });
    let id = open(&agent, &home, &[named("bad", "nags")]).await;
    until_settled(&agent, &id).await;
    for asked in [20, 40] {
        assert_eq!(call(&agent, &id, "bad").await["status"], "completed");
        let received = agent.client.received();
        let count = received.iter().filter(|message| message["method"] == "elicitation/create").count();
        assert_eq!(count, asked, "another call may ask again");
    }
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_flood_of_progress_is_shown_as_often_as_anybody_looks() {
    let home = home(SCRIPT);
    let agent = home.start();
    let id = session(&agent, &home, &[named("bad", "tells-all")]).await;
    let (mark, began) = (agent.client.mark(), Instant::now());
    assert_eq!(call(&agent, &id, "bad").await["status"], "completed");
    let most = began.elapsed().as_millis() / 100 + 5;
    let updates = agent.client.updates_since(mark, &id);
    let live = updates.iter().filter(|update| update["status"] == "in_progress").count();
    assert!(live as u128 <= most, "{live} updates in {:?}", began.elapsed());
    agent.finish(&home).await;
}

/// What a server says is shown, and nothing in it is obeyed by a terminal or hidden from its reader.
#[tokio::test]
async fn nothing_that_a_server_says_reaches_a_client_unseen() {
    let home = home("on *\n  call b_ad_say {}\n  ---\n  text \"done\"\n");
    std::fs::write(
        home.workspace().join(".mcp.json"),
        json!({ "mcpServers": { "wait\u{1b}[2J`ing": { "command": "true" } } }).to_string(),
    )
    .unwrap();
    let agent = home.start();
    let id =
        session(&agent, &home, &[named("b\u{1b}ad\u{202e}", "unseen"), named("gone\u{7}", "exit")]).await;
    agent.prompt(&id, "hello").await.unwrap();
    agent
        .client
        .wait_for("a notice", |message| {
            let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
            text.contains("is not available")
        })
        .await;
    agent.prompt(&id, "/mcp").await.unwrap();
    let mut shown = Value::from(agent.client.received());
    for message in shown.as_array_mut().unwrap() {
        // What the model is given stays as it is: the raw output is for programs.
        message["params"]["update"]["rawOutput"].take();
    }
    let text = shown.to_string();
    for part in ["a title", "what it says", "passwd: file:///etc/passwd", "waiting for consent"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut hidden = Vec::new();
    unseen(&shown, &mut hidden);
    assert!(hidden.is_empty(), "{hidden:?}");
    agent.finish(&home).await;
}

/// The texts with something in them that can't be seen.
fn unseen(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let plain = text.replace(['\n', '\t'], "");
            if attache_core::legible::visible_block(&plain) != plain {
                found.push(text.clone());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| unseen(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| unseen(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
