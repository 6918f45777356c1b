//! What a call of a server's tool gives: asked about, validated, shown live, cut, cancelled.

use std::time::Duration;

use attache_testkit::binary::Agent;
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::stage::{call, calls, home, named, open, session, shown, thoughts, until_settled};

#[tokio::test]
async fn a_call_is_asked_about_and_its_result_shown() {
    let home = home("on \"go\"\n  call test_echo {\"text\":\"hi\"}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    let result = call(&agent, &id, "go").await;
    assert_eq!(result["status"], "completed", "{result}");
    assert!(shown(&result).contains("echo: hi"), "{result}");
    assert_eq!(result["rawOutput"]["output"], "echo: hi");
    let asked = agent.client.received();
    let asked = asked.iter().find(|message| message["method"] == "session/request_permission").unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "test: echo");
    assert_eq!(asked["params"]["toolCall"]["rawInput"], json!({ "text": "hi" }));
    agent.finish(&home).await;
}

#[tokio::test]
async fn an_answer_for_always_covers_the_tool_and_no_other() {
    let home = home(
        "on \"go\"\n  call test_echo {\"text\":\"1\"}\n  ---\n  call test_echo {\"text\":\"2\"}\n  ---\n  call test_fail {}\n  ---\n  text \"done\"\n",
    );
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    agent.client.always_choose("allow_always");
    let results = calls(&agent, &id, "go").await;
    assert_eq!(results.len(), 3);
    let asked = |message: &&Value| message["method"] == "session/request_permission";
    assert_eq!(agent.client.received().iter().filter(asked).count(), 2, "echo once, fail once");
    assert_eq!(results[2]["status"], "failed");
    assert!(shown(&results[2]).contains("it went wrong"), "{}", results[2]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn rules_of_the_configuration_name_servers_and_tools() {
    let home =
        home("on \"go\"\n  call test_echo {\"text\":\"1\"}\n  call test_fail {}\n  ---\n  text \"done\"\n");
    home.write_config(
        "[[permissions]]\npermission = \"mcp:test:*\"\naction = \"allow\"\n[[permissions]]\npermission = \"mcp:test:fail\"\naction = \"deny\"\n",
    );
    let agent = home.start();
    agent.initialize().await;
    let id = open(&agent, &home, &[named("test", "good")]).await;
    until_settled(&agent, &id).await;
    let results = calls(&agent, &id, "go").await;
    assert_eq!(results[0]["status"], "completed", "{}", results[0]);
    assert_eq!(results[1]["status"], "failed");
    assert!(!shown(&results[1]).contains("it went wrong"), "it was not called: {}", results[1]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_server() {
    let home =
        home("on \"go\"\n  call test_echo {\"text\":5}\n  call test_echo {}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    let results = calls(&agent, &id, "go").await;
    assert!(shown(&results[0]).contains("field `text` must be string, not 5"), "{}", results[0]);
    assert!(shown(&results[1]).contains("field `text` is missing"), "{}", results[1]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn every_kind_of_content_is_shown() {
    let home = home(
        "model vision images=true\non \"draw\"\n  call test_draw {}\n  ---\n  text \"done\"\non \"mixed\"\n  call test_mixed {}\n  ---\n  text \"done\"\n",
    );
    let agent = home.start_with(&["--model", "script/vision"]);
    let id = session(&agent, &home, &[named("test", "good")]).await;
    let drawn = call(&agent, &id, "draw").await;
    assert_eq!(drawn["status"], "completed", "{drawn}");
    let blocks = drawn["content"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["content"]["type"] == "image"), "{drawn}");
    assert!(shown(&drawn).contains("a picture") && drawn["rawOutput"]["mime"] == "image/png", "{drawn}");
    let mixed = call(&agent, &id, "mixed").await;
    let text = shown(&mixed);
    for part in [
        "audio/wav",
        "[resource demo://a]\na text",
        "[resource y.txt: file:///x/y.txt]",
        "\"shape\": \"cube\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let path = text.split("bytes, in ").nth(1).unwrap().split([']', ';']).next().unwrap();
    assert!(std::fs::read(path).unwrap().starts_with(b"RIFF"), "{path}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept() {
    let home = home("on \"go\"\n  call test_long {\"lines\":20000}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    let result = call(&agent, &id, "go").await;
    let text = result["rawOutput"]["output"].as_str().unwrap();
    assert!(text.len() <= 16 * 1024, "{}", text.len());
    assert!(text.starts_with("line 0\n") && text.trim_end().ends_with("line 19999"), "{text}");
    let path = text.split("the whole is in ").nth(1).unwrap().split(" …]").next().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 20_000);
    agent.finish(&home).await;
}

#[tokio::test]
async fn progress_is_live_and_cancel_reaches_the_server() {
    let home = home("on \"go\"\n  call test_wait {\"seconds\":30}\n  ---\n  text \"done\"\n");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    let pending = agent.start_prompt(&id, "go");
    agent
        .client
        .wait_for("progress", |message| {
            let update = &message["params"]["update"];
            update["status"] == "in_progress" && shown(update).contains("2 of 300: step")
        })
        .await;
    agent.client.notify("session/cancel", json!({ "sessionId": id }));
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "cancelled");
    let scratch = home.home().join("scratch");
    let was_told = || {
        let own = std::fs::read_dir(&scratch).unwrap().flatten();
        own.filter(|entry| entry.file_name().to_string_lossy().starts_with(".mcp-test"))
            .any(|entry| entry.path().join("cancelled").exists())
    };
    for _ in 0..50 {
        if was_told() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(was_told(), "the server was told");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_question_of_a_server_reaches_the_user_in_the_middle_of_its_call() {
    let home = home("on *\n  call test_ask {}\n  ---\n  text \"done\"\n");
    for (forms, reply, expected) in [
        (
            true,
            json!({ "action": "accept", "content": { "colour": "blue" } }),
            r#"{"action": "accept", "content": {"colour": "blue"}}"#,
        ),
        (true, json!({ "action": "decline" }), r#"{"action": "decline"}"#),
        (true, json!({ "action": "cancel" }), r#"{"action": "cancel"}"#),
        (false, json!({}), r#"{"action": "decline"}"#),
    ] {
        let agent = home.start();
        let capabilities = if forms { json!({ "elicitation": { "form": {} } }) } else { json!({}) };
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        agent.client.expect("initialize", params).await;
        let answer = reply.clone();
        agent.client.set_policy(move |method, params| match method {
            "elicitation/create" => Reply::Result(answer.clone()),
            _ => Reply::choose("allow_once", params),
        });
        let id = open(&agent, &home, &[named("test", "good")]).await;
        until_settled(&agent, &id).await;
        let result = call(&agent, &id, "go").await;
        assert_eq!(result["rawOutput"]["output"], expected);
        let received = agent.client.received();
        let asked = received.iter().find(|message| message["method"] == "elicitation/create");
        assert_eq!(asked.is_some(), forms);
        if let Some(asked) = asked {
            let message = asked["params"]["message"].as_str().unwrap();
            assert_eq!(message, r"The MCP server test asks: Which\u{202e} colour?");
            assert_eq!(asked["params"]["toolCallId"], result["toolCallId"]);
        }
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_tool_is_known_from_the_first_prompt_on_and_mcp_lists_it() {
    let home = home("on *\n  text \"ok\"\n");
    let agent = home.start();
    agent.initialize().await;
    let id = open(&agent, &home, &[named("test", "good"), named("dead", "exit")]).await;
    agent.prompt(&id, "hello").await.unwrap();
    until_settled(&agent, &id).await;
    let mark = agent.client.mark();
    agent.prompt(&id, "/mcp").await.unwrap();
    let text: String = agent
        .client
        .updates_since(mark, &id)
        .iter()
        .filter_map(|update| update["content"]["text"].as_str().map(str::to_owned))
        .collect();
    assert!(text.contains("`test` (stdio, of the editor): ready; tools: `test_echo`, `test_draw`"), "{text}");
    assert!(
        text.contains(
            "`dead` (stdio, of the editor): failed: it exited with code 7; it said: no license found"
        ),
        "{text}"
    );
    assert!(thoughts(&agent, &id).contains("The MCP server dead is not available"));
    agent.finish(&home).await;
}

/// What `/mcp` says.
async fn told(agent: &Agent, id: &str) -> String {
    let mark = agent.client.mark();
    agent.prompt(id, "/mcp").await.unwrap();
    agent.client.updates_since(mark, id).iter().map(Value::to_string).collect()
}

#[tokio::test]
async fn servers_of_a_request_come_with_load_resume_and_fork() {
    let home = home(
        "on \"hello\"\n  text \"hi\"\non *\n  call test_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n",
    );
    let agent = home.start();
    let id = session(&agent, &home, &[]).await;
    agent.prompt(&id, "hello").await.unwrap();
    assert!(told(&agent, &id).await.contains("There are no MCP servers here"));
    let mut known = id.clone();
    for (method, servers) in [
        ("session/load", vec![named("test", "good")]),
        ("session/resume", vec![]),
        ("session/resume", vec![named("test", "good")]),
        ("session/fork", vec![named("test", "good")]),
    ] {
        let has = !servers.is_empty();
        let params = json!({ "sessionId": known, "cwd": home.workspace(), "mcpServers": servers });
        let answer = agent.client.expect(method, params).await;
        known = answer["sessionId"].as_str().unwrap_or(&known).to_owned();
        until_settled(&agent, &known).await;
        let result = call(&agent, &known, "go").await;
        assert_eq!(result["status"] == "completed", has, "{method}: {result}");
        assert_eq!(
            told(&agent, &known).await.contains("`test` (stdio, of the editor): ready"),
            has,
            "{method}"
        );
    }
    assert_ne!(known, id);
    agent.finish(&home).await;
}

/// The same command, and another tool of the same name.
#[tokio::test]
async fn a_tool_that_has_changed_is_asked_about_again_and_what_changed_is_said() {
    let home = home("on *\n  call test_echo {\"text\":\"x\"}\n  ---\n  text \"done\"\n");
    let server = |argument: &str| {
        let mut server = named("test", "good");
        server["env"] = json!([{ "name": "ECHO_ARGUMENT", "value": argument }]);
        server
    };
    let agent = home.start();
    let id = session(&agent, &home, &[server("")]).await;
    agent.client.always_choose("allow_always");
    for _ in 0..2 {
        assert_eq!(call(&agent, &id, "go").await["status"], "completed");
    }
    let asked = |agent: &Agent| {
        let received = agent.client.received();
        received.iter().filter(|message| message["method"] == "session/request_permission").count()
    };
    assert_eq!(asked(&agent), 1);
    agent.finish(&home).await;
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let params = json!({ "sessionId": id, "cwd": home.workspace(), "mcpServers": [server("extra")] });
    agent.client.expect("session/load", params).await;
    until_settled(&agent, &id).await;
    assert_eq!(call(&agent, &id, "go").await["status"], "completed");
    assert_eq!(asked(&agent), 1, "asked again");
    let told = thoughts(&agent, &id);
    assert!(told.contains("You are asked again about tools that have changed"), "{told}");
    assert!(told.contains("mcp:test:echo") && told.contains("extra"), "{told}");
    agent.finish(&home).await;
}

#[tokio::test]
async fn what_a_server_logs_is_in_the_log() {
    let home =
        home("on *\n  call test_log {}\n  ---\n  text \"done\"\n").with_variable("ATTACHE_LOG", "debug");
    let agent = home.start();
    let id = session(&agent, &home, &[named("test", "good")]).await;
    assert_eq!(call(&agent, &id, "go").await["status"], "completed");
    agent.finish(&home).await;
    let log = home.all_logs();
    let line =
        log.lines().find(|line| line.contains("an MCP server says")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("disk is full") && !line.contains('\u{1b}'), "{line}");
}
