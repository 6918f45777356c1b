//! What a server offers beside tools, and what it wants of people: prompts as commands, resources that change,
//! addresses to visit, questions to a model.

use attache_testkit::binary::{Agent, Home};
use attache_testkit::client::Reply;
use serde_json::{Value, json};

use crate::stage::{call, home, named, open, session, shown, until_settled};

/// What the model was sent of a prompt: it says so itself, where its script has no answer.
async fn sent(agent: &Agent, id: &str, prompt: &str) -> String {
    let mark = agent.client.mark();
    agent.prompt(id, prompt).await.unwrap_or_else(|error| panic!("{prompt}: {error:?}"));
    let updates = agent.client.updates_since(mark, id);
    let said = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    said.filter_map(|update| update["content"]["text"].as_str()).collect()
}

fn is_listed(message: &Value, name: &str) -> bool {
    let commands = message["params"]["update"]["availableCommands"].as_array();
    commands.is_some_and(|commands| commands.iter().any(|command| command["name"] == name))
}

#[tokio::test]
async fn prompts_of_servers_are_commands() {
    let home = home("model vision images=true\non \"grow\"\n  call srv_grow {}\n  ---\n  text \"done\"\n");
    let agent = home.start_with(&["--model", "script/vision"]);
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, &home, &[named("srv", "rich")]).await;
    // Before the server is there: its prompt waits for it.
    let said = sent(&agent, &id, "/srv:greet 'Ada Lovelace' very politely").await;
    assert!(
        said.contains("matches the prompt \\\"Greet Ada Lovelace very politely.\\\"")
            || said.contains("\"Greet Ada Lovelace very politely.\""),
        "{said}"
    );
    let listed = agent.client.wait_for("its commands", |message| is_listed(message, "srv:greet")).await;
    let commands = listed["params"]["update"]["availableCommands"].as_array().unwrap();
    let greet = commands.iter().find(|command| command["name"] == "srv:greet").unwrap();
    assert_eq!(greet["input"]["hint"], "who [how]");
    assert_eq!(greet["description"], "Greets somebody (MCP server srv)");
    let missing = agent.prompt(&id, "/srv:greet").await.unwrap_err();
    let text = missing.message;
    assert!(
        text.contains("needs `who`: /srv:greet who [how]. Its server suggests: Ada, Alan, Grace"),
        "{text}"
    );
    let surplus = agent.prompt(&id, "/srv:draw_it now").await.unwrap_err().message;
    assert!(surplus.contains("takes no arguments"), "{surplus}");
    agent.prompt(&id, "/srv:draw_it").await.unwrap();
    agent.prompt(&id, "grow").await.unwrap();
    agent.client.wait_for("the new one", |message| is_listed(message, "srv:grown")).await;
    let shown: Vec<Value> = agent.load(&id, &home.workspace()).await;
    assert!(
        shown.iter().any(|update| update["content"]["type"] == "image"),
        "the picture was sent: {shown:?}"
    );
    agent.finish(&home).await;
}

#[tokio::test]
async fn a_resource_that_changes_is_told_of_once() {
    let home = home(
        "on \"read\"\n  call srv_resources {\"uri\":\"demo://one\"}\n  ---\n  text \"done\"\non \"touch\"\n  call srv_touch {}\n  ---\n  text \"done\"\non \"told\"\n  call srv_told {}\n  ---\n  text \"done\"\non \"list\"\n  call srv_resources {}\n  ---\n  text \"done\"\non \"complete\"\n  call srv_resources {\"template\":\"demo://{id}\",\"argument\":\"id\",\"value\":\"1\"}\n  ---\n  text \"done\"\n",
    );
    let agent = home.start();
    let id = session(&agent, &home, &[named("srv", "rich")]).await;
    let listed = shown(&call(&agent, &id, "list").await);
    assert!(listed.contains("demo://one: one") && listed.contains("demo://{id}: any"), "{listed}");
    let values = shown(&call(&agent, &id, "complete").await);
    assert!(values.contains("17\n18"), "{values}");
    assert!(shown(&call(&agent, &id, "read").await).contains("what it holds"));
    let told = shown(&call(&agent, &id, "told").await);
    assert!(told.contains("subscribe demo://one"), "{told}");
    call(&agent, &id, "touch").await;
    agent.prompt(&id, "next").await.unwrap();
    agent.prompt(&id, "last").await.unwrap();
    agent.finish(&home).await;
    let exported = home.command().args(["sessions", "export", &id]).output().await.unwrap();
    let rows = String::from_utf8(exported.stdout).unwrap();
    let news = "Resources that you have read have changed: demo://one\\n";
    assert_eq!(rows.matches(news).count(), 1, "{rows}");
    assert!(!rows.contains("never-read</"), "{rows}");
}

async fn with_addresses(home: &Home, action: &str) -> (Agent, String) {
    let agent = home.start();
    let params = json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "url": {} } } });
    agent.client.expect("initialize", params).await;
    let action = action.to_owned();
    agent.client.set_policy(move |method, params| match method {
        "elicitation/create" => Reply::Result(json!({ "action": action })),
        _ => Reply::choose("allow_once", params),
    });
    let id = open(&agent, home, &[named("srv", "rich")]).await;
    until_settled(&agent, &id).await;
    (agent, id)
}

#[tokio::test]
async fn an_address_is_shown_with_its_place_and_never_opened_by_us() {
    let home = home(
        "on \"visit\"\n  call srv_visit {\"url\":\"https://login.test/a?b=c\"}\n  ---\n  text \"done\"\non \"file\"\n  call srv_visit {\"url\":\"file:///etc/passwd\"}\n  ---\n  text \"done\"\non \"user\"\n  call srv_visit {\"url\":\"https://good.test@evil.test/\"}\n  ---\n  text \"done\"\non \"done\"\n  call srv_done {}\n  ---\n  text \"done\"\non \"needs\"\n  call srv_needs {}\n  ---\n  text \"done\"\n",
    );
    let (agent, id) = with_addresses(&home, "accept").await;
    let result = call(&agent, &id, "visit").await;
    assert_eq!(result["rawOutput"]["output"], r#"{"action": "accept"}"#);
    let received = agent.client.received();
    let asked = received.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    let params = &asked["params"];
    assert_eq!(params["mode"], "url");
    assert_eq!(params["url"], "https://login.test/a?b=c");
    assert_eq!(params["message"], r"The MCP server srv asks you to visit https://login.test: Log\u{202e} in");
    assert_eq!(params["toolCallId"], result["toolCallId"]);
    let ours = params["elicitationId"].as_str().unwrap().to_owned();
    call(&agent, &id, "done").await;
    agent
        .client
        .wait_for("that it is done", |message| {
            message["method"] == "elicitation/complete" && message["params"]["elicitationId"] == ours
        })
        .await;
    for (prompt, why) in [("file", "must be http or https, not file"), ("user", "names a user")] {
        let result = call(&agent, &id, prompt).await;
        assert!(shown(&result).contains(why), "{result}");
    }
    let needed = call(&agent, &id, "needs").await;
    assert_eq!(needed["status"], "failed");
    assert!(shown(&needed).contains("The user goes to https://login.test now"), "{needed}");
    let count = |message: &&Value| message["method"] == "elicitation/create";
    assert_eq!(agent.client.received().iter().filter(count).count(), 2, "no other place was shown");
    agent.finish(&home).await;
    let (agent, id) = with_addresses(&home, "decline").await;
    assert_eq!(call(&agent, &id, "visit").await["rawOutput"]["output"], r#"{"action": "decline"}"#);
    agent.finish(&home).await;
    let agent = home.start();
    let id = session(&agent, &home, &[named("srv", "rich")]).await;
    let result = call(&agent, &id, "visit").await;
    assert_eq!(result["rawOutput"]["output"], r#"{"action": "decline"}"#, "a client that shows none");
    agent.finish(&home).await;
}

const SAMPLING: &str = "model small\non \"ask\"\n  call srv_sample {\"text\":\"What is\u{202e} 2+2?\"}\n  ---\n  text \"done\"\non \"What\"*\n  text \"Four.\"\non \"told\"\n  call srv_told {}\n  ---\n  text \"done\"\n";

fn configured(more: &str) -> Home {
    let home = home(SAMPLING);
    let path = crate::stage::server_path();
    home.write_config(&format!(
        "small_model = \"script/small\"\n[mcp.srv]\ncommand = [\"python3\", {}, \"rich\"]\n{more}",
        json!(path)
    ));
    home
}

#[tokio::test]
async fn a_server_gets_an_answer_of_the_small_model_with_the_users_word_for_it() {
    let home = configured("sampling = true\n");
    for (choice, expected) in [("allow_once", "\"text\": \"Four.\""), ("reject_once", "the user refused")] {
        let agent = home.start();
        agent.initialize().await;
        agent.client.set_policy(move |_, params| {
            let title = params["toolCall"]["title"].as_str().unwrap_or_default();
            Reply::choose(if title.contains("wants to ask") { choice } else { "allow_once" }, params)
        });
        let id = open(&agent, &home, &[]).await;
        until_settled(&agent, &id).await;
        let result = call(&agent, &id, "ask").await;
        assert!(shown(&result).contains(expected), "{choice}: {result}");
        let received = agent.client.received();
        let is_asked = |message: &&Value| {
            let call = &message["params"]["toolCall"];
            message["method"] == "session/request_permission"
                && call["title"] == "The MCP server srv wants to ask your model"
        };
        let asked = received.iter().find(is_asked).unwrap_or_else(|| panic!("{received:?}"));
        let text = asked["params"]["toolCall"]["content"].to_string();
        assert!(text.contains("system: Be brief") && text.contains(r"What is\\u{202e} 2+2?"), "{text}");
        assert_eq!(asked["params"]["options"].as_array().unwrap().len(), 2, "never for always");
        agent.finish(&home).await;
    }
}

#[tokio::test]
async fn a_server_that_may_not_ask_a_model_is_told_so_from_the_start() {
    let home = configured("");
    let agent = home.start();
    agent.initialize().await;
    agent.client.always_choose("allow_once");
    let id = open(&agent, &home, &[]).await;
    until_settled(&agent, &id).await;
    assert!(shown(&call(&agent, &id, "ask").await).contains("does not let servers ask its model"));
    let told = shown(&call(&agent, &id, "told").await);
    assert!(!told.contains("sampling") && told.contains("elicitation"), "{told}");
    agent.finish(&home).await;
    std::fs::create_dir_all(home.workspace().join(".attache")).unwrap();
    std::fs::write(
        home.workspace().join(".attache/config.toml"),
        "[mcp.theirs]\ncommand = [\"true\"]\nsampling = true\n",
    )
    .unwrap();
    let trusted = home.command().args(["trust", "--yes"]).output().await.unwrap();
    assert!(trusted.status.success());
    let listed = home.command().args(["mcp", "list"]).output().await.unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("`mcp.theirs.sampling` counts only in your own configuration"), "{listed}");
}
