//! A chat app of the AI SDK as an agent of attache.

use serde_json::json;

use crate::peer::*;

const VERSIONS: [&str; 2] = ["ai", "ai7"];

#[tokio::test]
async fn its_answer_is_the_answer_and_a_new_process_tells_it_again() {
    for version in VERSIONS {
        let peer = Peer::ai_sdk(version).await;
        let home = home_with(&ai_sdk_entry(&peer.address, ""), "on *\n text \"not asked\"");
        let (agent, session) = opened(&home).await;
        assert_eq!(told(&agent, &session, "hi").await, "Hello world");
        assert_eq!(told(&agent, &session, "what is the history").await, "user assistant user");
        agent.finish(&home).await;
        let again = home.start();
        again.initialize().await;
        let loaded = again.load(&session, &home.workspace()).await;
        assert_eq!(text_of(&loaded), "Hello worlduser assistant user");
        // Its mode is what it was begun with.
        assert_eq!(told(&again, &session, "and the history").await, "user assistant user assistant user");
        again.finish(&home).await;
        let posts = peer.posts().await;
        assert_eq!(posts[0]["authorization"], "Bearer s3cret");
        assert_eq!(posts[0]["body"]["id"], session.as_str());
        for place in [home.home().join("sessions.db"), home.log_path()] {
            let bytes = std::fs::read(&place).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&bytes).contains("s3cret"), "{}", place.display());
        }
    }
}

#[tokio::test]
async fn a_tool_that_the_app_runs_is_one_call_from_its_arguments_to_its_result() {
    for version in VERSIONS {
        let peer = Peer::ai_sdk(version).await;
        let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
        let (agent, session) = opened(&home).await;
        for turn in 0..2 {
            let mark = agent.client.mark();
            let said = told(&agent, &session, "the weather").await;
            assert_eq!(said, "It is {\"sky\":\"clear\"}.");
            let updates = agent.client.updates_since(mark, &session);
            let calls = calls(&updates);
            // Ids of the mock repeat in every turn; those of a session must not.
            let expected = if turn == 0 { "call-1" } else { "call-1-2" };
            assert_eq!(calls, [(expected.to_owned(), "completed".to_owned())]);
            let thought = updates.iter().find(|update| update["sessionUpdate"] == "agent_thought_chunk");
            assert_eq!(thought.unwrap()["content"]["text"], "look it up");
        }
        agent.finish(&home).await;
        // Two calls of its model in each turn, as the app counts them.
        let usage = home.command().arg("usage").output().await.unwrap();
        let usage = String::from_utf8(usage.stdout).unwrap();
        let sums: Vec<&str> = usage.lines().nth(1).unwrap().split_whitespace().skip(1).collect();
        assert_eq!(sums, ["2", "40", "16", "4", "8", "0"], "{usage}");
    }
}

#[tokio::test]
async fn blocks_arrive_as_documented_and_what_it_does_not_take_is_refused_by_name() {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
    let (agent, session) = opened(&home).await;
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let blocks = json!([
        { "type": "resource_link", "name": "a.txt", "uri": "file:///w/a.txt" },
        { "type": "resource", "resource": { "uri": "zed:///agent/git-diff?base=main", "text": "diff" } },
        { "type": "image", "mimeType": "image/png", "data": png },
        { "type": "text", "text": "what is attached" },
    ]);
    let mark = agent.client.mark();
    agent.client.expect("session/prompt", prompt(&session, blocks)).await;
    let told: serde_json::Value =
        serde_json::from_str(&text_of(&agent.client.updates_since(mark, &session))).unwrap();
    let expected = json!({
        "said": [
            "[@a.txt](file:///w/a.txt)",
            "[@git-diff?base=main](zed:///agent/git-diff?base=main)\n<context ref=\"zed:///agent/git-diff?base=main\">\ndiff\n</context>",
            "what is attached",
        ],
        "files": ["image/png"],
    });
    assert_eq!(told, expected);
    let audio = json!([{ "type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZF" }]);
    let error = agent.client.request("session/prompt", prompt(&session, audio)).await.unwrap_err();
    assert_eq!(error.message, "prompt[0]: the agent `support` does not take audio; leave it out");
    agent.finish(&home).await;
}

#[tokio::test]
async fn nothing_is_advertised_that_it_chooses_itself() {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "on *\n text \"of the model\"");
    let agent = home.start_with(&["--agent", "support"]);
    agent.initialize().await;
    let new = json!({ "cwd": home.workspace(), "mcpServers": [{ "name": "tools", "command": "/bin/false", "args": [], "env": [] }] });
    let answer = agent.client.expect("session/new", new).await;
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    let ids = |options: &serde_json::Value| -> Vec<String> {
        options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&answer["configOptions"]), ["mode", "approval"]);
    let choice = json!({ "sessionId": session, "configId": "model", "value": "script/default" });
    let error = agent.client.request("session/set_config_option", choice).await.unwrap_err();
    assert!(error.message.contains("the agent `support` chooses the model itself"), "{error:?}");
    let told = agent
        .client
        .wait_for("a notice", |message| message.to_string().contains("does not use MCP servers"))
        .await;
    assert!(told.to_string().contains("tools"), "{told}");
    // Another mode is an agent of this process, with the conversation so far.
    assert_eq!(self::told(&agent, &session, "hi").await, "Hello world");
    let mode = json!({ "sessionId": session, "modeId": "build" });
    agent.client.expect("session/set_mode", mode).await;
    assert_eq!(self::told(&agent, &session, "and you").await, "of the model");
    let mode = json!({ "sessionId": session, "modeId": "support" });
    agent.client.expect("session/set_mode", mode).await;
    assert_eq!(self::told(&agent, &session, "the history").await, "user assistant user assistant user");
    agent.finish(&home).await;
}

#[tokio::test]
async fn no_model_has_to_be_configured_for_it() {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_without_model(&ai_sdk_entry(&peer.address, ""));
    let mut command = home.command();
    command.args(["chat", "-p", "--agent", "support", "hi"]).stdin(std::process::Stdio::null());
    let ran = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{ran:?}");
    assert!(said.contains("Hello world"), "{ran:?}");
    let (agent, session) = opened(&home).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    let said = told(&agent, &session, "/model").await;
    assert_eq!(said, "The agent `support` chooses the model itself.");
    let said = told(&agent, &session, "/thought").await;
    assert_eq!(said, "The agent `support` chooses how much it thinks itself.");
    let said = told(&agent, &session, "/status").await;
    assert!(said.contains("- Model: The agent `support` chooses the model itself."), "{said}");
    let said = told(&agent, &session, "/help").await;
    assert!(said.contains("/status") && !said.contains("/compact"), "{said}");
    agent.finish(&home).await;
    // An agent of this process does need one.
    let build = home.start();
    build.initialize().await;
    let new = json!({ "cwd": home.workspace(), "mcpServers": [] });
    assert_eq!(build.client.request("session/new", new).await.unwrap_err().code, -32000);
    build.finish(&home).await;
    let path = home.home().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("agent = \"support\"\n{config}")).unwrap();
    let doctor = home.command().arg("doctor").output().await.unwrap();
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains("none is needed: the agent support has its own"), "{found}");
}

#[tokio::test]
async fn a_server_with_a_history_of_its_own_is_sent_the_last_message() {
    let peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, "history = \"last\"\n"), "");
    let (agent, session) = opened(&home).await;
    told(&agent, &session, "hi").await;
    told(&agent, &session, "hi again").await;
    let posts = peer.posts().await;
    assert!(posts.iter().all(|post| post["body"].get("messages").is_none()), "{posts:?}");
    assert_eq!(posts[1]["body"]["message"]["parts"][0]["text"], "hi again");
    assert_eq!(posts[1]["body"]["id"], posts[0]["body"]["id"]);
    // A copy is a conversation that the server has never seen.
    let fork = json!({ "sessionId": session, "cwd": home.workspace(), "mcpServers": [] });
    let copy = agent.client.expect("session/fork", fork).await;
    let copy = copy["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(told(&agent, &copy, "the history").await, "user assistant user assistant user");
    let last = peer.posts().await.pop().unwrap();
    assert_ne!(last["body"]["id"], posts[0]["body"]["id"]);
    agent.finish(&home).await;
}

#[tokio::test]
async fn what_goes_wrong_is_said_and_the_next_prompt_works() {
    let mut peer = Peer::ai_sdk("ai").await;
    let home = home_with(&ai_sdk_entry(&peer.address, ""), "");
    let (agent, session) = opened(&home).await;
    let error = agent.prompt(&session, "please fail").await.unwrap_err();
    assert!(error.message.contains("the agent `support`: "), "{error:?}");
    assert!(error.message.contains("the model is broken"), "{error:?}");
    let error = agent.prompt(&session, "open a page").await.unwrap_err();
    assert!(error.message.contains("left the call of `page` without a result"), "{error:?}");
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    let port = peer.port();
    peer.kill().await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert!(error.message.contains("can't be reached"), "{error:?}");
    let _peer = Peer::ai_sdk_at("ai", port).await;
    assert_eq!(told(&agent, &session, "hi").await, "Hello world");
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_named_and_the_session_stays() {
    let entry = "backend = \"ai-sdk\"\nurl = \"http://127.0.0.1:9/x\"\nheaders = { Authorization = \"${NOT_SET_HERE}\" }\n";
    let home = home_with(entry, "on *\n text \"of the model\"");
    let (agent, session) = opened(&home).await;
    agent.client.wait_for("a notice", |message| message.to_string().contains("NOT_SET_HERE")).await;
    let error = agent.prompt(&session, "hi").await.unwrap_err();
    assert!(error.message.contains("the variable NOT_SET_HERE is not set"), "{error:?}");
    let mode = json!({ "sessionId": session, "modeId": "build" });
    agent.client.expect("session/set_mode", mode).await;
    assert_eq!(told(&agent, &session, "hi").await, "of the model");
    agent.finish(&home).await;
}

#[tokio::test]
async fn the_native_agent_gives_it_work_by_task() {
    let peer = Peer::ai_sdk("ai").await;
    let script = "on \"please delegate\"\n call task {\"subagent_type\":\"support\",\"prompt\":\"the weather\"}\n ---\n text \"done\"\n";
    let home = home_with(&ai_sdk_entry(&peer.address, ""), script);
    let agent = home.start();
    let session = agent.open_session(&home).await;
    assert_eq!(told(&agent, &session, "please delegate").await, "done");
    let updates: String = agent.client.updates(&session).iter().map(ToString::to_string).collect();
    assert!(updates.contains("sky"), "{updates}");
    agent.finish(&home).await;
}
